"""A host for panes under test: a store, a theme, jobs that the test sets, and a record of what was asked of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.layout.outline import Outline
from engine.layout.outlining import outline_of
from engine.layout.picture import Picture, Skeleton, arrange
from engine.session.plan import Plan
from engine.session.session import FIRST, TRANSIENT, Asked, Entry, ModuleFile, Session
from engine.session.store import Store
from engine.session.variant import Variant
from engine.timeline.timeline import Metrics
from views.graph.comparison import Comparison
from views.hlo_text.lines import Printed, printed
from views.ports import JobState
from views.theme import LIGHT, Theme


class FakeHost:
    """Implements `views.ports.Host` without an application."""

    def __init__(self, store: Store[Session] | None = None, theme: Theme = LIGHT) -> None:
        self.store = store if store is not None else Store(Session(), TRANSIENT)
        self.theme = theme
        self.states: tuple[JobState, ...] = ()
        self.performed: list[str] = []
        self.opened: list[str] = []
        self.cancelled: list[int] = []
        self.paths: tuple[str, ...] = ()
        self.listeners: list[Callable[[], None]] = []
        self.known: dict[Asked, Metrics | str] = {}
        self.wanted: list[Asked] = []
        self.predicted_listeners: list[Callable[[], None]] = []
        self.variants: dict[Asked, Variant] = {}
        self.evaluating: list[Asked] = []
        self.explaining: list[tuple[str, int, Callable[[tuple[str, ...] | str], None]]] = []
        self.holding = False
        self.answers: list[Callable[[Outline | str], None]] = []

    def jobs(self) -> tuple[JobState, ...]:
        return self.states

    def set_jobs(self, *states: JobState) -> None:
        self.states = states
        for listener in tuple(self.listeners):
            listener()

    def watch_jobs(self, listener: Callable[[], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener) if listener in self.listeners else None

    def cancel(self, job: int) -> None:
        self.cancelled.append(job)

    def perform(self, action: str) -> None:
        self.performed.append(action)

    def keys_of(self, action: str) -> str:
        return ""

    def recent(self) -> tuple[str, ...]:
        return self.paths

    def recoverable(self) -> str:
        return ""

    def may_close(self) -> bool:
        return True

    def open(self, *paths: str) -> None:
        self.opened.extend(paths)

    def drop(self, paths: Sequence[str]) -> None:
        self.opened.extend(paths)

    def predicted(self, asked: Asked) -> Metrics | str | None:
        return self.known.get(asked)

    def predict(self, title: str, asked: Sequence[Asked]) -> None:
        self.wanted.extend(asked)

    def learn(self, asked: Asked, answer: Metrics | str) -> None:
        self.known[asked] = answer
        for listener in tuple(self.predicted_listeners):
            listener()

    def evaluated(self, asked: Asked) -> Variant | None:
        return self.variants.get(asked)

    def evaluate(self, title: str, asked: Asked, arrived: Callable[[Variant | str], None]) -> None:
        """At once where the test has given the variant in `variants`; else never."""
        self.evaluating.append(asked)
        if asked in self.variants:
            arrived(self.variants[asked])

    def explain(self, entry: Entry, instruction: int, arrived: Callable[[tuple[str, ...] | str], None]) -> int:
        """Never by itself: the test gives the answer."""
        self.explaining.append((entry.key, instruction, arrived))
        return len(self.explaining)

    def print_text(self, variant: Variant, beside: Variant | None, arrived: Callable[[Printed | str], None]) -> None:
        arrived(printed(_text(variant), _text(beside) if beside is not None else None))

    def outline(self, wanted: Comparison, arrived: Callable[[Outline | str], None]) -> int:
        """At once, unless `holding`: then the test gives the answer. Passes are taken to change nothing."""
        if self.holding:
            self.answers.append(arrived)
            return 7
        before = wanted.before or (wanted.variant if wanted.steps is not None else None)
        arrived(outline_of(wanted.variant.program.module, before.program.module if before is not None else None))
        return 7

    def arrange(self, skeleton: Skeleton, arrived: Callable[[Picture | str], None]) -> int:
        arrived(arrange(skeleton))
        return 8

    def watch_predicted(self, listener: Callable[[], None]) -> Callable[[], None]:
        self.predicted_listeners.append(listener)
        return lambda: self.predicted_listeners.remove(listener) if listener in self.predicted_listeners else None


def host_of(*variants: Variant, active: int = -1, theme: Theme = LIGHT) -> FakeHost:
    """A host whose session shows `variants` as A, B, …"""
    entries = tuple(Entry(chr(65 + n), v.plan, v.machine, name=v.name, variant=v) for n, v in enumerate(variants))
    session = Session(
        (ModuleFile(FIRST, "step.hlo"),), entries=entries, active=entries[active].key, base=entries[0].key
    )
    return FakeHost(Store(session, TRANSIENT), theme)


def _text(variant: Variant) -> list[str]:
    return [f"  %{i.name} = bf16[4,4]{{1,0}} {i.opcode}()" for i in variant.program.module.entry.instructions]


def active_plan(host: FakeHost) -> Plan:
    """The plan of the entry that is shown."""
    entry = host.store.state.active_entry
    assert entry is not None
    return entry.plan
