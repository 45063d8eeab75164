"""Synthetic programs for tests of the simulator."""
