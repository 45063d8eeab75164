"""`lapstrake schedulers`: every scheduler with its options."""

from __future__ import annotations

from argparse import Namespace

from app.cli.listing import show_parts
from app.cli.main import DONE
from engine.schedule.registry import SCHEDULERS


def run(arguments: Namespace) -> int:
    """Print the list."""
    show_parts(SCHEDULERS)
    return DONE
