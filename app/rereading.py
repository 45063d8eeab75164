"""Reads open modules again: each stays as it was read until the other is there, and for good where it fails."""

from __future__ import annotations

from collections.abc import Callable

from app.jobs import Jobs
from app.replacing import Replacement
from app.unsaved import Written
from engine.errors import LapstrakeError
from engine.ir.module import Module
from engine.session.session import Facts, ModuleFile


class Rereading:
    """Jobs that read open modules again, and how their files were when they began."""

    def __init__(
        self,
        jobs: Jobs,
        *,
        arrived: Callable[[ModuleFile, Module, Facts], None],
        refused: Callable[[ModuleFile, Replacement], None],
    ) -> None:
        self._jobs = jobs
        self._arrived, self._refused = arrived, refused
        self._going: dict[str, Replacement] = {}
        self._as_read: dict[str, Written] = {}
        """Path → the file as it was when it was last read again."""

    def start(self, file: ModuleFile) -> None:
        """Read a module again; a job that does so already is given up."""

        def ready() -> None:
            del self._going[file.key]
            answer = again.answers[file.key]
            if not isinstance(answer, LapstrakeError):
                self._arrived(file, *answer)

        def refused() -> None:
            del self._going[file.key]
            self._refused(file, again)

        if file.key in self._going:
            self._going.pop(file.key).give_up()
        self._as_read[file.path] = Written(file.path)
        again = self._going[file.key] = Replacement(self._jobs, (file,), ready=ready, refused=refused)
        again.start()

    def give_up(self) -> None:
        """Nobody is told any more of what is being read."""
        for replacement in self._going.values():
            replacement.give_up()
        self._going.clear()

    def forget(self) -> None:
        """Other files are open: nothing is known of how they were."""
        self._as_read.clear()

    @property
    def going_on(self) -> bool:
        return any(replacement.going_on for replacement in self._going.values())

    def knows(self, path: str) -> bool:
        """Whether the file is as it was when it was last read again: a change that is told of late is no news."""
        known = self._as_read.get(path)
        return known is not None and not known.is_other
