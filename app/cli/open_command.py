"""`lapstrake open`: the explorer."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress
from importlib import import_module

from app import ahead, display
from engine.errors import UnsupportedError
from engine.session.given import take
from engine.session.plan import MachineSpec


def run(arguments: Namespace) -> int:
    """Open the window; returns when it closes. UnsupportedError, with what to install, where no window can open."""
    ahead.begin(arguments.files)
    with display.Trial() as trial:
        with suppress(ImportError):  # a library that is missing; the trial will say it
            import_module("app.explorer")  # late, and meanwhile: nothing else on the command line needs Qt
        trouble = trial.trouble()
    if trouble is not None:
        raise UnsupportedError(display.advice(trouble))
    from app.gui import run as open_window

    costs = tuple(take(path)[0] for path in arguments.costs)
    return open_window(arguments.files, machine=MachineSpec(arguments.chip, arguments.topology, arguments.mesh, costs))
