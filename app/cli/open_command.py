"""`lapstrake open`: the explorer."""

from __future__ import annotations

from argparse import Namespace

from app import display
from engine.errors import UnsupportedError


def run(arguments: Namespace) -> int:
    """Open the window; returns when it closes. UnsupportedError, with what to install, where no window can open."""
    trouble = display.display_trouble()
    if trouble is not None:
        raise UnsupportedError(display.advice(trouble))
    from app.gui import run as open_window  # late: nothing else on the command line needs Qt

    return open_window(arguments.file)
