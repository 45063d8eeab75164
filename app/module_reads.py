"""The modules that were read, by their keys in the session, and the jobs that read more of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.jobs import Jobs
from app.reading import read_file
from app.replacing import Answer
from engine.errors import LapstrakeError
from engine.ir.module import Module
from engine.session.session import Facts, ModuleFile


class ModuleReads:
    """Reads modules, one job each. What was read is kept until it is forgotten."""

    def __init__(self, jobs: Jobs, answered: Callable[[ModuleFile, Answer], None]) -> None:
        """`answered` is called with what came of each file, unless that was forgotten meanwhile."""
        self._jobs = jobs
        self._answered = answered
        self._reading: dict[str, int] = {}
        """Module key → job, of those without an answer."""
        self.modules: dict[str, Module] = {}
        self.facts: dict[str, Facts] = {}
        """Of the same modules."""

    def __contains__(self, key: str) -> bool:
        """Whether a module was read or is being read."""
        return key in self.modules or key in self._reading

    def start(self, *files: ModuleFile) -> None:
        """Start a job for each; a file that cannot even be opened is answered at once, when all of them are known."""
        self._reading.update((file.key, 0) for file in files)
        for file in files:
            self._read(file)

    def _read(self, file: ModuleFile) -> None:
        job = 0

        def done(module: Module, facts: Facts) -> None:
            self.answer(file, job, (module, facts))

        def failed(error: LapstrakeError) -> None:
            self.answer(file, job, error)

        try:
            job = read_file(self._jobs, file.path, done, failed)
        except LapstrakeError as error:
            failed(error)
            return
        self._reading[file.key] = job

    def take_over(self, reading: Mapping[str, int]) -> None:
        """Wait for jobs that were started elsewhere, which `answer` when they end."""
        self._reading.update(reading)

    def answer(self, file: ModuleFile, job: int, answer: Answer) -> None:
        """Pass on what a job made of a file, unless another job reads it by now, or none."""
        if self._reading.get(file.key) == job:
            del self._reading[file.key]
            self._answered(file, answer)

    def keep(self, key: str, module: Module, facts: Facts) -> None:
        self.modules[key], self.facts[key] = module, facts

    def forget(self, key: str) -> None:
        """Drop a module, and cancel the job that reads it."""
        self.modules.pop(key, None)
        self.facts.pop(key, None)
        self._jobs.cancel(self._reading.pop(key, 0))

    def known(self) -> tuple[str, ...]:
        """Keys of what was read, and of what is being read."""
        return tuple(dict.fromkeys((*self.modules, *self._reading)))
