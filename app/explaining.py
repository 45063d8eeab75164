"""Why instructions of large programs are where they are: found out by jobs, the last one that was asked for alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.evaluations import shared_by
from app.jobs import Jobs
from engine.control import Cancelled
from engine.errors import LapstrakeError
from engine.ir.module import Module
from engine.session.given import RecordingKind
from engine.session.session import Entry


class Explaining:
    """Starts the jobs. What a plan makes is made again where the job runs, or is still there: it is large to send."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._modules: Mapping[str, Module] = {}
        self._job = 0

    def set_modules(self, modules: Mapping[str, Module]) -> None:
        """The modules that are there now, by their keys."""
        self._modules = modules

    def start(self, entry: Entry, instruction: int, arrived: Callable[[tuple[str, ...] | str], None]) -> int:
        """See `views.ports.Host.explain`."""
        self._jobs.cancel(self._job)
        variant, module = entry.variant, self._modules.get(entry.module)
        if variant is None or module is None:
            arrived("")
            return 0

        def failed(error: LapstrakeError) -> None:
            arrived(str(error) if not isinstance(error, Cancelled) else "")

        target, near = "app.work:explain_place", shared_by(module, variant.machine, variant.plan)
        asked: tuple[object, ...] = (module, variant.machine, variant.plan, variant.schedule, instruction)
        if variant.recording is not None and variant.recording.kind == RecordingKind.SCHEDULE:
            target, near, asked = "app.work:explain_in", "", (variant.program, variant.schedule, instruction)
        title = f"explaining a place in {entry.key}"
        self._job = self._jobs.start(title, target, *asked, done=arrived, failed=failed, near=near, about=module)
        return self._job
