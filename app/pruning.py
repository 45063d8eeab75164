"""Default plans give way to what reports show under their name, once everything is drawn, and are called what they are.

Reports try each row of sites whole before they show anything, and every default scheduler on what decomposes nothing;
the window shows the plans as they are first. Only where the user has not chosen the plan: an entry as it was opened,
with its plan and its name untouched, or what was made of it here and is now asked for on another machine. It is no step
that Undo takes back, for nothing that was decided is lost; the entry says what became of its plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, Signal

from app.evaluations import Evaluations, shared_by
from app.jobs import Jobs
from app.soon import Soon
from engine.ir.module import Module
from engine.session import edits
from engine.session.evaluation import DECOMPOSED, UNDECOMPOSED, truly_named
from engine.session.giving_way import change_in_words
from engine.session.plan import WHOLE, Plan
from engine.session.pruning import may_be_better
from engine.session.session import Asked, Entry, Facts, Session
from engine.session.store import Store
from engine.session.variant import Variant


@dataclass(frozen=True)
class _Made:
    """A plan that an entry has from here."""

    asked: Asked
    name: str
    given: Plan
    """The default plan that it was made of."""


class Pruning(QObject):
    """Starts a job for every such entry, one after the other, after the first pictures."""

    said = Signal(str)
    """Which entry's plan has changed, and why: of interest for a moment."""

    def __init__(
        self, store: Store[Session], jobs: Jobs, evaluations: Evaluations, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._jobs = jobs
        self._evaluations = evaluations
        self._modules: Mapping[str, Module] = {}
        self._tried: set[tuple[str, Asked]] = set()
        self._made: dict[str, _Made] = {}
        self._job = 0
        self._soon = Soon(self._look, self)
        self._stop = store.subscribe(lambda session, changed: self._soon.start() if "entries" in changed else None)

    def close(self) -> None:
        self._stop()
        self._soon.stop()

    @property
    def is_due(self) -> bool:
        """Whether it is about to look for something to try."""
        return self._soon.isActive()

    def set_modules(self, modules: Mapping[str, Module]) -> None:
        """The modules that are there now, by their keys."""
        gone = {key for key in self._modules if self._modules[key] is not modules.get(key)}
        self._tried = {(key, asked) for key, asked in self._tried if asked.module not in gone}
        self._made = {key: made for key, made in self._made.items() if made.asked.module not in gone}
        self._modules = dict(modules)

    def _look(self) -> None:
        session = self._store.state
        if any(entry.pending for entry in session.entries) or self._jobs.is_running(self._job):
            return
        for entry in session.entries:
            module = self._modules.get(entry.module)
            plan = self._default(session, entry) if module is not None else None
            if module is None or plan is None or entry.variant is None:
                continue
            named = truly_named(replace(entry.variant, name=entry.name))
            if named.name != entry.name:
                self._store.settle(entries=edits.pruned(session, entry.key, named, entry.remark).entries)
                return
            if (entry.key, entry.asked) in self._tried:
                continue
            whole, base = entry.name == WHOLE, _base(session, entry)
            if not whole and (base is None or (plan == entry.plan and not may_be_better(base, entry.variant))):
                continue
            self._tried.add((entry.key, entry.asked))
            self._job = self._jobs.start(
                f"trying other orders of {entry.key}" if whole else f"trying {entry.key} without each of its rows",
                "app.work:order_best" if whole else "app.work:prune",
                module,
                entry.machine,
                plan,
                WHOLE if whole else f"{DECOMPOSED}, {plan.scheduler}",
                done=self._arrival(entry, module, plan),
                failed=lambda error: self._soon.start(),
                entry=entry.key,
                near=shared_by(module, entry.machine, plan),
                about=module,
            )
            return

    def _arrival(self, asked_for: Entry, module: Module, given: Plan) -> Callable[[Variant], None]:
        def arrived(variant: Variant) -> None:
            if self._modules.get(asked_for.module) is not module:
                return
            entry = self._store.state.entry(asked_for.key)
            if entry is not None and (entry.asked, entry.name) == (asked_for.asked, asked_for.name):
                asked = entry.asking(variant.plan)
                self._made[entry.key] = _Made(asked, variant.name, given)
                self._tried.add((entry.key, asked))
                self._evaluations.remember(asked, variant)
                remark = change_in_words(entry.variant, variant) if entry.variant is not None else ""
                now = edits.pruned(self._store.state, entry.key, variant, remark)
                self._store.settle(entries=now.entries, selection=now.selection)
                if remark:
                    self.said.emit(f"{entry.key}: {remark}")
            else:  # undone later, it is to be tried after all
                self._tried.discard((asked_for.key, asked_for.asked))
            self._soon.start()

        return arrived

    def _default(self, session: Session, entry: Entry) -> Plan | None:
        """The default plan that an up-to-date entry stands for, where nobody chose another one or named it."""
        if entry.stale or entry.recording is not None:
            return None
        made = self._made.get(entry.key)
        if made is not None and (entry.module, entry.plan, entry.name) == (
            made.asked.module,
            made.asked.plan,
            made.name,
        ):
            return made.given
        facts = _facts(session, entry)
        if facts is None or entry.plan not in (plan for _, plan in facts.plans) or entry.plan.scheduler == "memory":
            return None
        if entry.name == WHOLE:
            return entry.plan
        if entry.plan.passes != facts.best_passes:
            return None
        names = (f"{named}, {entry.plan.scheduler}" for named in (DECOMPOSED, UNDECOMPOSED))
        return entry.plan if entry.name in names else None


def _facts(session: Session, entry: Entry) -> Facts | None:
    """What was found out about an entry's module where it was read: to look through a large one takes 0.1 s."""
    file = session.module(entry.module)
    return file.facts if file is not None else None


def _base(session: Session, entry: Entry) -> Variant | None:
    """The module of `entry` as loaded on the same machine, where it is shown."""
    facts = _facts(session, entry)
    if facts is None or not facts.plans:
        return None
    like = entry.asking(facts.plans[0][1])
    return next((e.variant for e in session.entries if e.asked == like and e.recording is None), None)
