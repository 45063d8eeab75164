"""Chips, the networks between them, and machines made of both."""
