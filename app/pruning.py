"""Default plans that turn out slower than their module as loaded give way to a better one, once everything is drawn.

Only where the user has not chosen the plan: an entry as it was opened, with its passes and its name untouched. It is no
step that Undo takes back, for nothing that was decided is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject

from app.evaluations import Evaluations, shared_by
from app.jobs import Jobs
from app.soon import Soon
from engine.ir.module import Module
from engine.session import edits
from engine.session.plan import best_passes, plain_plan
from engine.session.session import Asked, Entry, Session
from engine.session.store import Store
from engine.session.variant import Variant


class Pruning(QObject):
    """Starts a job for every such entry, one after the other, after the first pictures."""

    def __init__(
        self, store: Store[Session], jobs: Jobs, evaluations: Evaluations, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._jobs = jobs
        self._evaluations = evaluations
        self._modules: Mapping[str, Module] = {}
        self._tried: set[tuple[str, Asked]] = set()
        self._job = 0
        self._soon = Soon(self._look, self)
        self._stop = store.subscribe(lambda session, changed: self._soon.start() if "entries" in changed else None)

    def close(self) -> None:
        self._stop()
        self._soon.stop()

    def set_modules(self, modules: Mapping[str, Module]) -> None:
        """The modules that are there now, by their keys."""
        gone = {key for key in self._modules if self._modules[key] is not modules.get(key)}
        self._tried = {(key, asked) for key, asked in self._tried if asked.module not in gone}
        self._modules = dict(modules)

    def _look(self) -> None:
        session = self._store.state
        if any(entry.pending for entry in session.entries) or self._jobs.is_running(self._job):
            return
        for entry in session.entries:
            module = self._modules.get(entry.module)
            if module is None or (entry.key, entry.asked) in self._tried or not _is_slow(session, entry, module):
                continue
            self._tried.add((entry.key, entry.asked))
            self._job = self._jobs.start(
                f"leaving out what does not pay in {entry.key}",
                "app.work:prune",
                module,
                entry.machine,
                entry.plan,
                entry.name,
                done=self._arrival(entry),
                failed=lambda error: self._soon.start(),
                entry=entry.key,
                near=shared_by(module, entry.machine, entry.plan),
            )
            return

    def _arrival(self, asked_for: Entry) -> Callable[[Variant], None]:
        def arrived(variant: Variant) -> None:
            entry = self._store.state.entry(asked_for.key)
            if entry is not None and (entry.asked, entry.name) == (asked_for.asked, asked_for.name):
                self._evaluations.remember(entry.asking(variant.plan), variant)
                self._store.settle(entries=edits.pruned(self._store.state, entry.key, variant).entries)
            self._soon.start()

        return arrived


def _is_slow(session: Session, entry: Entry, module: Module) -> bool:
    """Whether an entry shows a plan that nobody chose, slower than the module as loaded."""
    if entry.variant is None or entry.stale or entry.recording is not None or not entry.name:
        return False
    if entry.plan.passes != best_passes(module) or entry.plan.scheduler == "memory":
        return False
    like = entry.asking(plain_plan(module))
    base = next((e.variant for e in session.entries if e.asked == like and e.recording is None), None)
    return base is not None and entry.variant.metrics.makespan > base.metrics.makespan
