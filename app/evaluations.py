"""Keeps results up to date: whatever the session asks for and does not have is computed by a job.

Jobs follow from the session, never from the control that changed it: undo, a restored session and a slider all lead
here the same way.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject

from app.jobs import Jobs
from app.soon import Soon
from engine.control import Cancelled
from engine.errors import LapstrakeError
from engine.ir.module import Module
from engine.session import edits
from engine.session.plan import AS_LOADED, MachineSpec, Plan
from engine.session.session import Asked, Entry, Session
from engine.session.store import Store
from engine.session.variant import Variant

PATIENCE = 10.0
"""Seconds that a plan which was changed gets to stop: the new one needs what its worker has made of the passes."""
KEPT = 128
"""Results that are kept, so that undo and going back and forth on a slider are at once."""


@dataclass(frozen=True)
class _Running:
    job: int
    asked: Asked


class Evaluations(QObject):
    """Starts and cancels evaluation jobs as the session changes."""

    def __init__(self, store: Store[Session], jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._jobs = jobs
        self._modules: Mapping[str, Module] = {}
        self._running: dict[str, _Running] = {}
        self._results: OrderedDict[Asked, Variant] = OrderedDict()
        self._refused: dict[tuple[str, Asked], tuple[str, bool]] = {}
        """Why, and whether it was cancelled."""
        self._soon = Soon(self._catch_up, self)
        self._stop = store.subscribe(self._session_changed)

    def close(self) -> None:
        self._stop()
        self._soon.stop()

    def set_modules(self, modules: Mapping[str, Module]) -> None:
        """The modules that are there now, by their keys: results of those that went or are others are of no use."""
        known, self._modules = self._modules, dict(modules)
        gone = {key for key in known if known[key] is not modules.get(key)}
        for key in [key for key, running in self._running.items() if running.asked.module in gone]:
            self._jobs.cancel(self._running.pop(key).job)
        for asked in [asked for asked in self._results if asked.module in gone]:
            del self._results[asked]
        self._refused = {k: said for k, said in self._refused.items() if k[1].module not in gone}
        self._soon.start()

    def retry(self, key: str) -> None:
        """Compute an entry again although it failed or was cancelled."""
        self._refused = {k: said for k, said in self._refused.items() if k[0] != key}
        self._store.settle(entries=edits.failed(self._store.state, key, "").entries)
        self._soon.start()

    def remember(self, asked: Asked, variant: Variant) -> None:
        """Keep a result that came another way, so that asking for it is at once."""
        self._results[asked] = variant
        self._results.move_to_end(asked)
        while len(self._results) > KEPT:
            self._results.popitem(last=False)

    def known(self, asked: Asked) -> Variant | None:
        return self._results.get(asked)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if "entries" in changed:
            self._soon.start()

    def _catch_up(self) -> None:
        session = self._store.state
        keys = {entry.key for entry in session.entries}
        for key in [k for k in self._running if k not in keys]:
            self._jobs.cancel(self._running.pop(key).job)
        # Recordings are read by app.recordings.
        ready = [e for e in session.entries if e.module in self._modules and e.recording is None]
        for entry in _in_turn(ready, session.active):
            self._ensure(self._modules[entry.module], entry)

    def _ensure(self, module: Module, entry: Entry) -> None:
        asked = entry.asked
        running = self._running.get(entry.key)
        if running is not None and (running.asked != asked or not entry.pending):
            del self._running[entry.key]
            self._jobs.cancel(running.job, PATIENCE)
            running = None
        if running is not None or not entry.pending:
            return
        refused = self._refused.get((entry.key, asked))
        if refused is not None:
            said, stopped = refused
            now = edits.failed(self._store.state, entry.key, said, stopped=stopped)
            self._store.settle(entries=now.entries)
            return
        known = self._results.get(asked)
        if known is not None:
            self._results.move_to_end(asked)
            now = edits.arrived(self._store.state, entry.key, known)
            self._store.settle(entries=now.entries, selection=now.selection)
            return
        job = self._jobs.start(
            f"planning {entry.key}",
            "app.work:evaluate",
            module,
            entry.machine,
            entry.plan,
            entry.name,
            done=self._arrival(entry.key, asked, module),
            failed=self._failure(entry.key, asked),
            entry=entry.key,
            near=shared_by(module, asked.machine, asked.plan),
            about=module,
        )
        self._running[entry.key] = _Running(job, asked)

    def _arrival(self, key: str, asked: Asked, module: Module) -> Callable[[Variant], None]:
        def arrived(variant: Variant) -> None:
            if self._modules.get(asked.module) is not module:
                return
            self.remember(asked, variant)
            running = self._running.get(key)
            if running is not None and running.asked == asked:
                del self._running[key]
            entry = self._store.state.entry(key)
            if entry is not None and entry.module == asked.module:
                now = edits.arrived(self._store.state, key, variant)
                self._store.settle(entries=now.entries, selection=now.selection)

        return arrived

    def _failure(self, key: str, asked: Asked) -> Callable[[LapstrakeError], None]:
        def failed(error: LapstrakeError) -> None:
            running = self._running.get(key)
            if running is None or running.asked != asked:
                return
            del self._running[key]
            stopped = isinstance(error, Cancelled)
            said = "Cancelled. Run → Run again computes it after all." if stopped else str(error)
            self._refused[key, asked] = said, stopped
            self._store.settle(entries=edits.failed(self._store.state, key, said, stopped=stopped).entries)

        return failed


def shared_by(module: Module, machine: MachineSpec, plan: Plan) -> str:
    """What plans of one module share when their passes and machine are the same: the passes' work, and the prices."""
    return f"{module.source.sha256 if module.source is not None else module.name} {machine} {plan.passes}"


def _in_turn(entries: Sequence[Entry], active: str) -> Sequence[Entry]:
    """Entries in the order in which to compute them.

    The module as loaded alone while there is no picture yet, since nothing comes sooner than what is only priced; then
    the active entry first, which is the one that is being looked at.
    """
    if all(entry.variant is None for entry in entries):
        plain = next((e for e in entries if e.plan.scheduler == AS_LOADED.scheduler), None)
        if plain is not None and plain.pending:
            return (plain,)
    return sorted(entries, key=lambda entry: entry.key != active)
