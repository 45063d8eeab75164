"""Keeps known which instructions of the session's modules stand for which: what is missing is computed by jobs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from PySide6.QtCore import QObject

from app.jobs import Jobs
from engine.errors import LapstrakeError
from engine.ir.module import Module
from engine.session.correspondence import Correspondence
from engine.session.session import Session
from engine.session.store import Store

_Pair = tuple[str, str]


class Matches(QObject):
    """Matches every two modules that variants are compared across: those of the base and of what is active with all."""

    def __init__(self, store: Store[Session], jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._jobs = jobs
        self._modules: Mapping[str, Module] = {}
        self._asked: dict[_Pair, int] = {}
        self._stop = store.subscribe(self._session_changed)

    def set_modules(self, modules: Mapping[str, Module]) -> None:
        """The modules that are there now, by their keys."""
        self._modules = dict(modules)
        self._catch_up(self._store.state)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"modules", "entries", "active", "base"}:
            self._catch_up(session)

    def _catch_up(self, session: Session) -> None:
        # First pictures come first: until both modules have one, there is nothing to compare.
        seen = {entry.module for entry in session.entries if entry.variant is not None}
        hashes = {module.key: module.sha256 for module in session.modules if module.key in self._modules}
        compared = {entry.module for entry in (session.active_entry, session.base_entry) if entry is not None}
        for one, two in combinations(hashes, 2):
            pair = (hashes[one], hashes[two])
            if compared & {one, two} and {one, two} <= seen and pair[0] != pair[1] and all(pair):
                self._ensure(session, pair, self._modules[one], self._modules[two])
        # What is known of modules that went is not kept: it is found again within a second.
        left = {pair: found for pair, found in session.matches.items() if set(pair) <= set(hashes.values())}
        for pair in [pair for pair in self._asked if not set(pair) <= set(hashes.values())]:
            self._jobs.cancel(self._asked.pop(pair))
        if len(left) < len(session.matches):
            self._store.settle(matches=left)

    def _ensure(self, session: Session, pair: _Pair, one: Module, two: Module) -> None:
        if pair in session.matches or pair in self._asked or pair[::-1] in self._asked:
            return

        def done(found: Correspondence) -> None:
            self._asked.pop(pair, None)
            if not set(pair) <= {module.sha256 for module in self._store.state.modules}:
                return
            turned = pair[1], pair[0]
            self._store.settle(matches={**self._store.state.matches, pair: found, turned: found.turned()})

        def failed(error: LapstrakeError) -> None:
            if self._asked.get(pair) == job:
                del self._asked[pair]

        names = f"{one.name} and {two.name}" if one.name != two.name else f"two modules {one.name}"
        job = self._jobs.start(f"matching {names}", "app.work:match", one, two, done=done, failed=failed, say=_said)
        self._asked[pair] = job


def _said(found: Correspondence) -> str:
    return f"{found.one.count} and {found.two.count} instructions have a counterpart in the other, by {found.by}"
