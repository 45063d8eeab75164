"""Fusion: which instructions run as one, decided with or without an eye on what then waits for which transfer."""
