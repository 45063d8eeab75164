"""Fusion decisions: what each does to overlap, and what another decision would bring."""
