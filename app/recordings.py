"""Variants that show a recording, a compiler's schedule or a measured run: jobs read what the session asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.given_work import Recorded
from app.jobs import Jobs
from app.soon import Soon
from engine.control import Cancelled
from engine.errors import LapstrakeError
from engine.ir.module import Module
from engine.session import edits
from engine.session.given import Recording
from engine.session.measured import Measured
from engine.session.session import Asked, Entry, Session
from engine.session.store import Store
from engine.session.variant import Variant

KEPT = 32
"""Recordings that are kept, so that undo is at once."""

_Asked = tuple[Asked, Recording]


@dataclass(frozen=True)
class _Running:
    job: int
    asked: _Asked


class Recordings(QObject):
    """Keeps entries with a recording up to date, as `Evaluations` does those with a plan."""

    doubted = Signal(str, str, object)
    """A recording may be of another module: the key of its entry, why, and ways out (none but Undo)."""
    arrived = Signal(str)
    """A recording was read, and is what the entry of that key shows now."""

    def __init__(self, store: Store[Session], jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._jobs = jobs
        self._modules: dict[str, Module] = {}
        self._known: dict[_Asked, Recorded] = {}
        self._running: dict[str, _Running] = {}
        self._refused: set[tuple[str, _Asked]] = set()
        self._soon = Soon(self._catch_up, self)
        self._stop = store.subscribe(self._session_changed)

    def close(self) -> None:
        self._stop()
        self._soon.stop()

    def set_modules(self, modules: Mapping[str, Module]) -> None:
        """The modules that are there now, by their keys: what was read for others is of no use."""
        before, self._modules = self._modules, dict(modules)
        gone = {key for key in before if before[key] is not modules.get(key)}
        for key in [key for key, running in self._running.items() if running.asked[0].module in gone]:
            self._jobs.cancel(self._running.pop(key).job)
        self._known = {asked: known for asked, known in self._known.items() if asked[0].module not in gone}
        self._refused = {(key, asked) for key, asked in self._refused if asked[0].module not in gone}
        self._soon.start()

    def retry(self, key: str) -> None:
        """Read an entry's recording again although that failed or was cancelled."""
        self._refused = {(k, asked) for k, asked in self._refused if k != key}
        self._soon.start()

    def measured(self, entry: Entry) -> Measured | None:
        """What the profile that an entry shows says; None for an entry without one, or where it is not read yet."""
        asked = _asked(entry)
        known = self._known.get(asked) if asked is not None else None
        return known.measured if known is not None else None

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if "entries" in changed:
            self._soon.start()

    def _catch_up(self) -> None:
        session = self._store.state
        there = {entry.key: _asked(entry) for entry in session.entries}
        for key in [key for key, running in self._running.items() if there.get(key) != running.asked]:
            self._jobs.cancel(self._running.pop(key).job)
        for entry in session.entries:
            asked = _asked(entry)
            if asked is not None and entry.pending and entry.key not in self._running:
                self._ensure(entry, asked)

    def _ensure(self, entry: Entry, asked: _Asked) -> None:
        module = self._modules.get(entry.module)
        if module is None or (entry.key, asked) in self._refused:
            return
        known = self._known.get(asked)
        if known is not None:
            self._settle(entry.key, known.variant)
            return
        (_, machine, plan), recording = asked
        job = self._jobs.start(
            f"reading {recording.file.name}",
            "app.given_work:read_recording",
            module,
            machine,
            plan,
            recording,
            entry.name,
            done=self._arrival(entry.key, asked),
            failed=self._failure(entry.key, asked),
            entry=entry.key,
            say=str,
        )
        self._running[entry.key] = _Running(job, asked)

    def _settle(self, key: str, variant: Variant) -> None:
        now = edits.arrived(self._store.state, key, variant)
        self._store.settle(entries=now.entries, selection=now.selection)

    def _arrival(self, key: str, asked: _Asked) -> Callable[[Recorded], None]:
        def arrived(recorded: Recorded) -> None:
            if not self._is_awaited(key, asked):
                return
            while len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            self._known[asked] = recorded
            self._settle(key, recorded.variant)
            self.arrived.emit(key)
            if recorded.doubts:
                self.doubted.emit(f"recording {key}", f"{key}: {' '.join(recorded.doubts)}", ())

        return arrived

    def _failure(self, key: str, asked: _Asked) -> Callable[[LapstrakeError], None]:
        def failed(error: LapstrakeError) -> None:
            if not self._is_awaited(key, asked):
                return
            self._refused.add((key, asked))
            stopped = isinstance(error, Cancelled)
            said = "Cancelled. Run → Run again reads it after all." if stopped else str(error)
            self._store.settle(entries=edits.failed(self._store.state, key, said, stopped=stopped).entries)

        return failed

    def _is_awaited(self, key: str, asked: _Asked) -> bool:
        """Whether an answer to `asked` is for the entry's running job, which ends with it."""
        running = self._running.get(key)
        if running is None or running.asked != asked:
            return False
        del self._running[key]
        return True


def _asked(entry: Entry) -> _Asked | None:
    return (entry.asked, entry.recording) if entry.recording is not None else None
