"""How long tests of windows wait for what is to happen: far longer than it takes, since a busy machine is no defect."""

from __future__ import annotations

LONG = 60_000
"""Milliseconds after which a test gives up."""
