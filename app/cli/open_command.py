"""`lapstrake open`: the explorer."""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module

from app import ahead, display
from app.cli.arguments import COMMANDS
from engine.errors import UnsupportedError, UsageError
from engine.session.given import take
from engine.session.plan import MachineSpec


def run(arguments: Namespace) -> int:
    """Open the window; returns when it closes. UnsupportedError, with what to install, where no window can open."""
    for path in arguments.files:
        _check_there(path)
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


def _check_there(path: str) -> None:
    """Before a window opens for nothing. Raises UsageError for what is neither there nor a command."""
    if path == "-" or os.path.exists(path):
        return
    meant = get_close_matches(path, COMMANDS, 1)
    hint = f" (did you mean {meant[0]}?)" if meant else ""
    raise UsageError(f"{path}: no such file or command{hint}")
