"""Jobs of the window: calls that run in worker processes, polled by a timer, shown with progress and cancel."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from engine import worker
from engine.control import Cancelled
from engine.errors import LapstrakeError
from views.ports import JobState

AT_ONCE = 2
"""Jobs that run side by side; more wait."""
_POLL_MS = 25
_KEPT = 100


@dataclass
class _Job:
    number: int
    title: str
    target: str
    args: tuple[Any, ...]
    entry: str
    deadline: float | None
    done: Callable[[Any], None]
    failed: Callable[[LapstrakeError], None]
    call: worker.Call | None = None
    state: str = "running"
    error: str = ""
    cancelled: bool = False
    begun: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def shown(self) -> JobState:
        fraction, message = self.call.progress if self.call is not None else (0.0, "waiting for its turn")
        seconds = time.monotonic() - self.begun if self.state == "running" else self.seconds
        return JobState(self.number, self.title, fraction, message, self.state, self.error, seconds, self.entry)


class Jobs(QObject):
    """Starts, polls and remembers jobs. Results and errors come back in the GUI's thread."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs: list[_Job] = []
        self._next = 1
        self._timer = QTimer(self)
        self._timer.setInterval(_POLL_MS)
        self._timer.timeout.connect(self._poll)

    def start(
        self,
        title: str,
        target: str,
        *args: Any,
        done: Callable[[Any], None],
        failed: Callable[[LapstrakeError], None] = lambda error: None,
        entry: str = "",
        deadline: float | None = None,
        after: int = 0,
    ) -> int:
        """Run ``module:function`` in a worker; `done` gets its result, `failed` its error or a Cancelled.

        `after` is an earlier part of the same work: if it ended well, it leaves the log to this one. Returns the job's
        number.
        """
        self._jobs = [job for job in self._jobs if job.number != after or job.state != "done"]
        job = _Job(self._next, title, target, args, entry, deadline, done, failed)
        self._next += 1
        self._jobs.append(job)
        del self._jobs[:-_KEPT]
        self._fill()
        self._timer.start()
        self.changed.emit()
        return job.number

    def states(self) -> tuple[JobState, ...]:
        """Newest first."""
        return tuple(job.shown() for job in reversed(self._jobs))

    def is_running(self, number: int) -> bool:
        return any(job.number == number and job.state == "running" for job in self._jobs)

    def cancel(self, number: int) -> None:
        """Ask a job to stop; it ends as cancelled within about a second."""
        for job in self._running():
            if job.number == number and not job.cancelled:
                job.cancelled = True
                if job.call is None:
                    self._finish(job, Cancelled("cancelled"))
                else:
                    job.call.cancel()
        self.changed.emit()

    def cancel_all(self) -> None:
        for job in self._running():
            self.cancel(job.number)

    def close(self) -> None:
        """End everything at once; nobody is told."""
        self._timer.stop()
        for job in self._running():
            job.state = "cancelled"
            if job.call is not None:
                job.call.kill()

    def _running(self) -> list[_Job]:
        return [job for job in self._jobs if job.state == "running"]

    def _fill(self) -> None:
        """Start waiting jobs where there is room. Cancelled ones are about to leave and take none."""
        busy = sum(job.call is not None and not job.cancelled for job in self._running())
        for job in self._running():
            if busy >= AT_ONCE:
                return
            if job.call is None:
                job.call = worker.start(job.target, *job.args, deadline=job.deadline)
                job.begun = time.monotonic()
                busy += 1

    def _poll(self) -> None:
        for job in self._running():
            if job.call is not None and job.call.poll():
                self._take(job, job.call)
        self._fill()
        if not self._running():
            self._timer.stop()
        self.changed.emit()

    def _take(self, job: _Job, call: worker.Call) -> None:
        try:
            value = call.result()
        except LapstrakeError as error:
            self._finish(job, error)
            return
        if job.cancelled:
            self._finish(job, Cancelled("cancelled"))
            return
        job.seconds = time.monotonic() - job.begun
        job.state = "done"
        job.done(value)

    @staticmethod
    def _finish(job: _Job, error: LapstrakeError) -> None:
        job.seconds = time.monotonic() - job.begun
        job.state = "cancelled" if isinstance(error, Cancelled) else "failed"
        job.error = "" if isinstance(error, Cancelled) else str(error)
        job.failed(error)
