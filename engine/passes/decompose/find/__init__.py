"""Collectives of a module, and the einsums that they could overlap with."""
