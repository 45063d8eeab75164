"""Through what a view reaches the rest of the application, and how it follows the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from PySide6.QtWidgets import QWidget

from engine.layout.outline import Outline
from engine.layout.picture import Picture, Skeleton
from engine.session.session import Asked, Entry, Session
from engine.session.store import Store
from engine.session.variant import Variant
from engine.timeline.timeline import Metrics
from views.graph.comparison import Comparison
from views.hlo_text.lines import Printed
from views.theme import Theme


@dataclass(frozen=True, slots=True)
class JobState:
    """A job as it is shown."""

    number: int
    title: str
    fraction: float = 0.0
    message: str = ""
    state: str = "running"
    """``running``, ``done``, ``cancelled`` or ``failed``."""
    error: str = ""
    seconds: float = 0.0
    """How long it ran, or has been running."""
    entry: str = ""
    """Key of the entry that its result is for."""


@runtime_checkable
class Lazy(Protocol):
    """A pane that does its work when it is looked at: a tab behind another one counts as visible to Qt."""

    def came_into_view(self) -> None: ...


def in_view(widget: QWidget) -> bool:
    """Whether any of a widget can be seen."""
    return widget.isVisible() and not widget.visibleRegion().isEmpty()


class Host(Protocol):
    """What panes may ask of the application."""

    @property
    def store(self) -> Store[Session]: ...

    @property
    def theme(self) -> Theme: ...

    def jobs(self) -> tuple[JobState, ...]:
        """Every job of this run of the program, newest first."""
        ...

    def watch_jobs(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` whenever `jobs` would answer something else. Returns what ends that."""
        ...

    def cancel(self, job: int) -> None: ...

    def perform(self, action: str) -> None:
        """Do what the action of that id does; see the table in app.actions."""
        ...

    def keys_of(self, action: str) -> str:
        """Shortcut of an action as text, for hints; empty when it has none."""
        ...

    def recent(self) -> tuple[str, ...]:
        """Paths opened before, newest first."""
        ...

    def recoverable(self) -> str:
        """Path of the session to go on with, after a crash or not; empty when there is none."""
        ...

    def may_close(self) -> bool:
        """Whether the window may close: the user is asked about work that is in no file."""
        ...

    def open(self, *paths: str) -> None:
        """Open files in place of what is open."""
        ...

    def drop(self, paths: Sequence[str]) -> None:
        """Take files that were dropped on the window."""
        ...

    def predicted(self, asked: Asked) -> Metrics | str | None:
        """What a plan on a machine comes to: its figures, why it has none, or None while that is not known."""
        ...

    def predict(self, title: str, asked: Sequence[Asked]) -> None:
        """Have plans predicted by jobs, in this order; what is known already is not computed again."""
        ...

    def evaluated(self, asked: Asked) -> Variant | None:
        """The variant of a plan on a machine, None while it is not known."""
        ...

    def evaluate(self, title: str, asked: Asked, arrived: Callable[[Variant | str], None]) -> None:
        """Have the variant of a plan made, at once where it is known, without an entry for it.

        `arrived` gets the variant, or why there is none: empty where the job was cancelled.
        """
        ...

    def explain(self, entry: Entry, instruction: int, arrived: Callable[[tuple[str, ...] | str], None]) -> int:
        """Have a job say why an instruction of an entry's variant is where it is, and get the job's number.

        `arrived` gets the paragraphs, or why there are none: empty where the job was cancelled.
        """
        ...

    def print_text(self, variant: Variant, beside: Variant | None, arrived: Callable[[Printed | str], None]) -> None:
        """Have a variant's module printed as HLO text, aligned with that of another one if given.

        `arrived` gets the text, or why there is none.
        """
        ...

    def outline(self, wanted: Comparison, arrived: Callable[[Outline | str], None]) -> int:
        """Have the modules of a comparison folded into a graph's outline by a job, and get the job's number.

        `arrived` gets the outline, or why there is none: empty where the job was cancelled.
        """
        ...

    def arrange(self, skeleton: Skeleton, arrived: Callable[[Picture | str], None]) -> int:
        """Have a graph laid out by a job, as `outline` otherwise."""
        ...

    def watch_predicted(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` whenever `predicted` would answer something else. Returns what ends that."""
        ...


class Gone:
    """Tells a pane when a module went, or is another one: what it keeps of that is of no use."""

    def __init__(self, session: Session) -> None:
        self._known = self._modules(session)

    def went(self, session: Session) -> bool:
        """Whether a module that was there at the last call is there no more."""
        before, self._known = self._known, self._modules(session)
        return not before <= self._known

    @staticmethod
    def _modules(session: Session) -> frozenset[tuple[str, str, str]]:
        return frozenset((module.key, module.path, module.sha256) for module in session.modules)


def follow(widget: QWidget, store: Store[Session], listener: Callable[[Session, frozenset[str]], None]) -> None:
    """Call `listener` after each change of the session for as long as `widget` exists."""
    stop = store.subscribe(listener)
    widget.destroyed.connect(lambda *_: stop())


def running(jobs: tuple[JobState, ...]) -> Mapping[str, str]:
    """Entry key → what the job for it is doing, for jobs that run."""
    return {
        job.entry: (f"{job.message or job.title} {job.fraction:.0%}" if job.fraction else job.message or job.title)
        for job in jobs
        if job.state == "running" and job.entry
    }
