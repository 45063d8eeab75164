"""What takes the place of what is open: read first, then asked about where work is unsaved, then taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from PySide6.QtCore import QObject, QTimer

from app.jobs import Jobs
from app.replacing import Answer, Replacement
from engine.session.plan import MachineSpec
from engine.session.session import ModuleFile, Session


@dataclass(frozen=True)
class Wanted:
    """A session whose modules are to be read, and what is known of it besides."""

    session: Session
    machine: MachineSpec
    hashes: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    """Of the session's own file."""
    beside: tuple[str, ...] = ()
    """Modules to add to it."""
    paths: tuple[str, ...] = ()
    """All that was asked for."""
    recovered: bool = False
    home: str = ""
    """The user's own file of what is recovered."""
    note: str = ""
    """What the user is to know of it, once it is open."""


class Succession(QObject):
    """One successor at a time: whoever comes later has the earlier one given up."""

    def __init__(
        self,
        jobs: Jobs,
        parent: QObject,
        *,
        unsaved: Callable[[], bool],
        may_go: Callable[[], bool],
        take: Callable[[Wanted, Replacement], None],
        refuse: Callable[[Wanted, Replacement], None],
        late: Callable[[ModuleFile, int, Answer], None],
    ) -> None:
        """Where there is `unsaved` work, `may_go` asks the user, once a module is there that `take` then gets.

        `refuse` gets what could not be read, `late` what is read after the first module.
        """
        super().__init__(parent)
        self._jobs = jobs
        self._unsaved, self._may_go = unsaved, may_go
        self._take, self._refuse, self._late = take, refuse, late
        self._coming: tuple[Wanted, Replacement] | None = None

    @property
    def going_on(self) -> bool:
        """Whether something is being read, or asked about."""
        return self._coming is not None

    def start(self, wanted: Wanted) -> None:
        """Read the modules of `wanted`."""
        self.give_up()
        modules = wanted.session.modules
        replacement = Replacement(self._jobs, modules, ready=self._ready, refused=self._refused, late=self._late)
        self._coming = wanted, replacement
        replacement.start()

    def give_up(self) -> None:
        """Nobody takes the place of what is open."""
        if self._coming is not None:
            self._coming[1].give_up()
            self._coming = None

    def _ready(self) -> None:
        coming = self._coming
        assert coming is not None
        if self._unsaved():
            # Not within the answer of a job: a dialog would keep all others waiting.
            QTimer.singleShot(0, self, partial(self._ask, coming))
        else:
            self._hand_over(coming)

    def _ask(self, coming: tuple[Wanted, Replacement]) -> None:
        if self._coming is not coming:
            return
        if self._may_go():
            self._hand_over(coming)
        else:
            self.give_up()

    def _hand_over(self, coming: tuple[Wanted, Replacement]) -> None:
        self._coming = None
        self._take(*coming)

    def _refused(self) -> None:
        coming, self._coming = self._coming, None
        assert coming is not None
        self._refuse(*coming)
