"""Decompositions written into a module."""
