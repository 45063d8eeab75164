"""Starts the window. Everything heavy is imported here or later, never by the command line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from PySide6.QtWidgets import QApplication

from app import ahead
from app.settings import Settings
from engine.session.plan import MachineSpec


def run(paths: Sequence[str], settings: Settings | None = None, machine: MachineSpec | None = None) -> int:
    """Open the explorer, on the files at `paths` if any are given. Returns when the window is closed."""
    ahead.begin(paths)
    import_module("numpy.ma")  # np.unique would, in the midst of the first picture; the worker is not there yet
    application = QApplication.instance() or QApplication(sys.argv[:1])
    application.setApplicationName("lapstrake")
    # Python's own handler would wait until the event loop ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from app.explorer import Explorer  # late: the application object must exist before pixmaps do

    explorer = Explorer(settings or Settings())
    explorer.show()
    if paths:
        explorer.opening.open(*paths, machine=machine)
    elif not explorer.settings.guided:
        explorer.show_guide()
    code = application.exec()
    explorer.leave()
    return code
