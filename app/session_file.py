"""The file that the session was saved to or opened from, and whether what is open is in it."""

from __future__ import annotations

from pathlib import Path

from app.unsaved import Unsaved, Written
from engine.hlo.zipped import archive_of
from engine.session import files
from engine.session.session import Session
from engine.session.store import Store


class SessionFile:
    """Where the session is kept. Empty `path`: nowhere yet."""

    def __init__(self, store: Store[Session]) -> None:
        self._store = store
        self._unsaved = Unsaved(store)
        self._written = Written("")
        self.path = ""

    def begin(self, path: str, since: int | None = None) -> None:
        """Another session is open, from `path`; nothing of it counts as kept yet.

        `since`: when it was left (nanoseconds), where it comes back after a crash: what was written later is another's.
        """
        self.path = path
        self._written = Written(path, since)
        self._unsaved.forget()

    def keep(self) -> None:
        """What is open is what is in the user's files."""
        self._unsaved.keep()

    def save(self, path: str) -> None:
        """Write the session to `path`, which is its place from then on. Raises OSError."""
        files.save(self._store.state, path)
        self.path = path
        self._written = Written(path)
        self._unsaved.keep()

    @property
    def is_behind(self) -> bool:
        """Whether there is work that is in no file of the user's."""
        return self._unsaved.found(arranged=bool(self.path))

    @property
    def is_overtaken(self) -> bool:
        """Whether another window or program has written the file since it was opened or saved here."""
        return self._written.is_other


def left_at(path: str) -> int | None:
    """When a file was written last, in nanoseconds; None where there is none."""
    try:
        return (archive_of(path) or Path(path)).stat().st_mtime_ns
    except OSError:
        return None
