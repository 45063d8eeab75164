"""Keeps the session on disk while it is worked on: after a crash, or at the next start, it can be gone on with."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QObject, QTimer

from engine.session import files
from engine.session.session import TRANSIENT, Session
from engine.session.store import Store

DELAY_MS = 400
"""How long after the last change the session is written."""


class Recovery(QObject):
    """Autosaves into a file of this process, which becomes the last session when the window closes as it should."""

    def __init__(
        self,
        store: Store[Session],
        folder: Path,
        parent: QObject | None = None,
        place_of: Callable[[], str] = lambda: "",
    ) -> None:
        """`place_of`: the file of the user's that the session is saved to; empty for none."""
        super().__init__(parent)
        self._store = store
        self._place_of = place_of
        self._position = -1
        self._folder = folder
        self._place = folder / f"autosave-{os.getpid()}{files.SUFFIX}"
        self._last = folder / f"last{files.SUFFIX}"
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(DELAY_MS)
        self._timer.timeout.connect(self.write)
        self._stop = store.subscribe(self._session_changed)

    def write(self) -> None:
        """Write now. A full disk must not disturb the work."""
        if self._store.state.path and self._store.state.entries:
            with suppress(OSError):
                files.save(self._store.state, self._place, home=self._place_of())

    def left_behind(self) -> tuple[Path, ...]:
        """Autosaved sessions of processes that are gone, newest first."""
        found = [p for p in self._folder.glob(f"autosave-*{files.SUFFIX}") if not _alive(_process(p))]
        return tuple(sorted(found, key=_written, reverse=True))

    def last(self) -> Path | None:
        """What to go on with: what a crash left behind, else the session of the window that was closed last."""
        found = [*self.left_behind(), self._last]
        return next((path for path in found if path.is_file()), None)

    def settle(self) -> None:
        """What was left behind is open again: it is kept as this window's, and forgotten as another's."""
        self.write()
        self.discard()

    def discard(self) -> None:
        """Forget what was left behind."""
        for path in self.left_behind():
            with suppress(OSError):
                path.unlink()

    def close(self) -> None:
        """The window closes as it should: what is open becomes the last session."""
        self._stop()
        self._timer.stop()
        self.write()
        with suppress(OSError):
            if self._place.is_file():
                self._place.replace(self._last)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if not changed - TRANSIENT or not session.entries:
            return
        # Each edit waits for the next one; results that arrive put nothing off.
        if self._store.position != self._position or not self._timer.isActive():
            self._position = self._store.position
            self._timer.start()


def _written(path: Path) -> float:
    """Seconds; 0 for a file that another window has just taken over."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _process(path: Path) -> int:
    digits = path.stem.removeprefix("autosave-")
    return int(digits) if digits.isdecimal() else 0


def _alive(process: int) -> bool:
    if process <= 0:
        return False
    if os.name == "nt":
        return process == os.getpid()
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
