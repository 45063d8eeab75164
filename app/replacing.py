"""Reads modules that are to take the place of open ones: what is open stays until the first of them is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.jobs import Jobs
from app.reading import read_file, told
from engine.control import Cancelled
from engine.errors import LapstrakeError
from engine.ir.module import Module
from engine.session.session import Facts, ModuleFile

Answer = tuple[Module, Facts] | LapstrakeError
"""What came of reading a file."""


class Replacement:
    """Modules being read, each by a job. One that arrives is `ready`; those after it come `late`."""

    def __init__(
        self,
        jobs: Jobs,
        modules: tuple[ModuleFile, ...],
        *,
        ready: Callable[[], None],
        refused: Callable[[], None],
        late: Callable[[ModuleFile, int, Answer], None] = lambda file, job, answer: None,
    ) -> None:
        """`refused` is called where none could be read. `late` gets the job's number too."""
        self._jobs = jobs
        self._ready, self._refused, self._late = ready, refused, late
        self._taken = self._given_up = False
        self.modules = modules
        self.reading: dict[str, int] = {}
        """Module key → job, of those without an answer."""
        self.answers: dict[str, Answer] = {}

    def start(self) -> None:
        """Start a job for each module; a file that cannot even be opened is answered at once."""
        self.reading.update((module.key, 0) for module in self.modules)
        for module in self.modules:
            self._read(module)

    def give_up(self) -> None:
        """Nobody is told any more. Jobs of what was taken over go on."""
        if not self._taken:
            self._given_up = True
            for job in self.reading.values():
                self._jobs.cancel(job)

    @property
    def going_on(self) -> bool:
        """Whether nothing has arrived yet, and something may."""
        return bool(self.reading) and not self._taken and not self._given_up

    @property
    def cancelled(self) -> bool:
        return any(isinstance(answer, Cancelled) for answer in self.answers.values())

    def said(self) -> str:
        """Why there is no module: of each file what was expected and what came, and where."""
        errors = [answer for answer in self.answers.values() if isinstance(answer, LapstrakeError)]
        return told(errors[0]) if len(errors) == 1 else "\n\n".join(map(str, errors))

    def names(self) -> str:
        """The files, in words."""
        names = [Path(module.path).name or module.path for module in self.modules]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

    def _read(self, file: ModuleFile) -> None:
        def done(module: Module, facts: Facts) -> None:
            self._take(file, (module, facts))

        def failed(error: LapstrakeError) -> None:
            self._take(file, error)

        try:
            self.reading[file.key] = read_file(self._jobs, file.path, done, failed)
        except LapstrakeError as error:
            failed(error)

    def _take(self, file: ModuleFile, answer: Answer) -> None:
        job = self.reading.pop(file.key, 0)
        self.answers[file.key] = answer
        if self._given_up:
            return
        if self._taken:
            self._late(file, job, answer)
        elif not isinstance(answer, LapstrakeError):
            self._taken = True
            self._ready()
        elif not self.reading:
            self._refused()
