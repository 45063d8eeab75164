"""What of the session is in the user's files: told by where it stands between undo and redo, and by what it holds."""

from __future__ import annotations

import os

from engine.session.session import Session
from engine.session.store import Store


class Unsaved:
    """Compares the session with what it was when it was opened or saved."""

    def __init__(self, store: Store[Session]) -> None:
        self._store = store
        self._position = -1
        self._work: tuple[object, ...] = ()
        self._arrangement: tuple[object, ...] = ()

    def keep(self) -> None:
        """What is open is what is in the user's files."""
        session = self._store.state
        self._position, self._work, self._arrangement = self._store.position, _work(session), _arrangement(session)

    def forget(self) -> None:
        """Nothing of what is open is in a file."""
        self._position, self._work, self._arrangement = -1, (), ()

    def found(self, *, arranged: bool) -> bool:
        """Whether there is work that would be lost: plans, modules and marks; with `arranged` also how they are shown.

        Results that arrive, and default plans that give way to better ones, are no work.
        """
        session = self._store.state
        if not session.entries or session.reading or self._store.position == self._position:
            return False
        return _work(session) != self._work or (arranged and _arrangement(session) != self._arrangement)


class Written:
    """When a file was written, so that another writer is noticed."""

    def __init__(self, path: str, since: int | None = None) -> None:
        """`since`: nanoseconds after which whoever wrote it was another one; without it, from now on."""
        self._path = path
        found = _stamp(path)
        self._stamp = None if found is not None and since is not None and found[0] > since else found

    @property
    def is_other(self) -> bool:
        """Whether the file is there and was written since."""
        now = _stamp(self._path)
        return now is not None and now != self._stamp


def _stamp(path: str) -> tuple[int, int] | None:
    """Time and size; None where there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _work(session: Session) -> tuple[object, ...]:
    modules = tuple((m.key, m.path, m.name) for m in session.modules)
    entries = tuple((e.asked, e.key, e.name, e.recording) for e in session.entries)
    return modules, entries, session.marks


def _arrangement(session: Session) -> tuple[object, ...]:
    return session.base, session.lanes, tuple(entry.collapsed for entry in session.entries)
