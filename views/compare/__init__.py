"""Variants side by side in figures."""
