"""Passes over HLO modules, and pipelines of them with a text form."""
