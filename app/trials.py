"""Plans that are only predicted: sweeps of the budget, and every combination that "try all" stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import QObject, Signal

from app.jobs import Jobs
from engine.control import Cancelled
from engine.errors import LapstrakeError
from engine.ir.module import Module
from engine.session.session import Asked
from engine.timeline.timeline import Metrics

BATCH = 2
"""Plans predicted by one job: few, so that results come as they are found and cancelling loses little."""


class Trials(QObject):
    """Figures of plans by what they were asked for. One job at a time, so that plans being edited come first."""

    changed = Signal()

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._modules: Mapping[str, Module] = {}
        self._known: dict[Asked, Metrics | str] = {}
        self._waiting: list[tuple[str, Asked]] = []
        self._job = 0
        self._measuring = ""

    def set_modules(self, modules: Mapping[str, Module]) -> None:
        """The modules that are there now, by their keys: forget what is known of those that went or are others."""
        known, self._modules = self._modules, dict(modules)
        gone = {key for key in known if known[key] is not modules.get(key)}
        # Before the job is cancelled, whose end starts the next one.
        self._waiting = [item for item in self._waiting if item[1].module not in gone]
        self._known = {asked: answer for asked, answer in self._known.items() if asked.module not in gone}
        if self._measuring in gone:
            self._jobs.cancel(self._job)
        self.changed.emit()

    def known(self, asked: Asked) -> Metrics | str | None:
        return self._known.get(asked)

    def learn(self, asked: Asked, metrics: Metrics) -> None:
        """Take over what came another way."""
        if asked not in self._known:
            self._known[asked] = metrics
            self.changed.emit()

    def predict(self, title: str, asked: Sequence[Asked]) -> None:
        """Predict plans; those of an earlier call with the same title that still wait are dropped."""
        waiting = [item for item in self._waiting if item[0] != title]
        new = [(title, one) for one in dict.fromkeys(asked) if one not in self._known and one.module in self._modules]
        self._waiting = new + waiting
        self._next()

    def _next(self) -> None:
        if not self._waiting or self._jobs.is_running(self._job):
            return
        title, (self._measuring, *_) = self._waiting[0]
        batch = tuple(one for name, one in self._waiting[:BATCH] if (name, one.module) == (title, self._measuring))
        self._waiting = [item for item in self._waiting if item[1] not in batch]
        left = f", {len(self._waiting)} left" if self._waiting else ""
        module = self._modules[self._measuring]
        self._job = self._jobs.start(
            f"{title}{left}",
            "app.work:predict",
            module,
            batch,
            done=self._arrival(batch, module),
            failed=self._failure(module),
            after=self._job,
        )

    def _arrival(self, batch: tuple[Asked, ...], module: Module) -> Callable[[Sequence[Metrics | str]], None]:
        def arrived(found: Sequence[Metrics | str]) -> None:
            if self._modules.get(batch[0].module) is module:
                self._known.update(zip(batch, found, strict=True))
                self.changed.emit()
            self._next()

        return arrived

    def _failure(self, module: Module) -> Callable[[LapstrakeError], None]:
        def failed(error: LapstrakeError) -> None:
            # Cancelled by the user, not because the module went.
            if isinstance(error, Cancelled) and module in self._modules.values():
                self._waiting.clear()
            self._next()

        return failed
