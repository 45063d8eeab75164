"""Jobs of the window: calls that run in worker processes, each waited for by a thread, shown with progress and cancel.

The threads only wait and unpickle: a large result is taken in beside the GUI's thread, not in it.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from engine import worker
from engine.control import Cancelled
from engine.errors import LapstrakeError, WorkerError
from engine.ir.module import Module
from engine.worker.call import GRACE
from views.ports import JobState

AT_ONCE = 2
"""Jobs that run side by side; more wait."""
_REFRESH_MS = 50
_LOOK = 0.02
"""Seconds between two looks at whether a job was cancelled."""
_KEPT = 100


@dataclass(eq=False)
class _Job:
    number: int
    title: str
    target: str
    args: tuple[Any, ...]
    entry: str
    deadline: float | None
    done: Callable[[Any], None]
    failed: Callable[[LapstrakeError], None]
    say: Callable[[Any], str]
    heard: Callable[[Any], None]
    near: str = ""
    begun: Callable[[], worker.Call | None] = lambda: None
    about: Module | None = None
    state: str = "running"
    error: str = ""
    progress: tuple[float, str] = (0.0, "waiting for its turn")
    patience: float = GRACE
    """Seconds that it gets to stop once it is cancelled."""
    cancelled: Event = field(default_factory=Event)
    killed: Event = field(default_factory=Event)
    thread: Thread | None = None
    since: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    value: Any = None
    trouble: LapstrakeError | None = None
    told: deque[Any] = field(default_factory=deque)

    def shown(self) -> JobState:
        fraction, message = self.progress
        seconds = time.monotonic() - self.since if self.state == "running" else self.seconds
        return JobState(self.number, self.title, fraction, message, self.state, self.error, seconds, self.entry)

    def run(self) -> None:
        """The thread's work: start the call, pass on what the user wants, take the result."""
        try:
            call = self.begun() or worker.start(self.target, *self.args, deadline=self.deadline, near=self.near)
            asked = False
            while not call.wait(_LOOK):
                self.progress = call.progress
                self.told.extend(call.take_told())
                if self.killed.is_set():
                    call.kill()
                elif self.cancelled.is_set() and not asked:
                    asked = True
                    call.cancel(self.patience)
            self.told.extend(call.take_told())
            self.value = call.result()
        except LapstrakeError as error:
            self.trouble = error
        except Exception as error:  # a job whose thread died would run for ever
            self.trouble = WorkerError(f"{self.target} failed: {type(error).__name__}: {error}")


def _leave_alone() -> None:
    """Have Python look no more for cycles in what is there: results hold hundreds of thousands of objects and no cycle,
    and looking through them stops the window for a tenth of a second every now and then."""
    gc.collect(1)
    gc.freeze()


class Jobs(QObject):
    """Starts and remembers jobs. Results and errors come back in the GUI's thread."""

    changed = Signal()
    _ended = Signal(int)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs: list[_Job] = []
        self._next = 1
        self._closed = False
        self._ended.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self._timer = QTimer(self)
        self._timer.setInterval(_REFRESH_MS)
        self._timer.timeout.connect(self._look)

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
        say: Callable[[Any], str] = lambda value: "",
        heard: Callable[[Any], None] = lambda found: None,
        near: str = "",
        begun: Callable[[], worker.Call | None] = lambda: None,
        about: Module | None = None,
    ) -> int:
        """Run ``module:function`` in a worker; `done` gets its result, `failed` its error or a Cancelled.

        `say` puts a result into words for the log; `heard` gets what the work tells of on the way.
        `after` is an earlier part of the same work: if it ended well, it leaves the log to this one. Returns the job's
        number. Jobs that are `near` the same follow each other, in a worker that has kept what they share.
        `begun` gives the call itself where it was begun before it was known that a job would wait for it.
        `about` is the module that the result is of no use without: see `cancel_without`.
        """
        self._jobs = [job for job in self._jobs if job.number != after or job.state != "done"]
        job = _Job(self._next, title, target, args, entry, deadline, done, failed, say, heard, near, begun, about)
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
        return any(job.number == number for job in self._running())

    def cancel(self, number: int, patience: float = GRACE) -> None:
        """Ask a job to stop; it ends as cancelled within about `patience` seconds.

        More than a second is for a job that another takes the place of, which needs what its worker has kept.
        """
        for job in self._running():
            if job.number == number:
                job.patience = patience
                job.cancelled.set()
                if job.thread is None:
                    self._finish(job, Cancelled("cancelled"))
        self._fill()
        self.changed.emit()

    def cancel_without(self, modules: Collection[Module]) -> None:
        """Cancel the jobs about modules other than these."""
        there = set(map(id, modules))
        for job in self._running():
            if job.about is not None and id(job.about) not in there:
                self.cancel(job.number)

    def cancel_all(self) -> None:
        for job in self._running():
            self.cancel(job.number)

    def close(self) -> None:
        """End everything at once; nobody is told."""
        self._closed = True
        self._timer.stop()
        for job in self._running():
            job.state = "cancelled"
            job.killed.set()
        for job in self._jobs:
            if job.thread is not None:
                job.thread.join(5.0)

    def _running(self) -> list[_Job]:
        return [job for job in self._jobs if job.state == "running"]

    def _fill(self) -> None:
        """Start waiting jobs where there is room. Cancelled ones are about to leave and take none.

        A job waits for one that is near the same, even for a cancelled one: that one's worker answers sooner than
        another could catch up with it.
        """
        started = [job for job in self._running() if job.thread is not None]
        busy = sum(not job.cancelled.is_set() for job in started)
        near = {job.near for job in started if job.near}
        for job in self._running():
            if busy >= AT_ONCE:
                return
            if job.thread is None and job.near not in near:
                near |= {job.near} - {""}
                job.since = time.monotonic()
                job.progress = (0.0, "")
                job.thread = Thread(target=self._serve, args=(job,), name=job.title, daemon=True)
                job.thread.start()
                busy += 1

    def _serve(self, job: _Job) -> None:
        job.run()
        if not self._closed:
            self._ended.emit(job.number)

    def _look(self) -> None:
        for job in self._running():
            self._pass_on(job)
        self.changed.emit()

    @staticmethod
    def _pass_on(job: _Job) -> None:
        while job.told:
            job.heard(job.told.popleft())

    def _take(self, number: int) -> None:
        job = next((job for job in self._running() if job.number == number), None)
        if job is None:
            return
        if job.thread is not None:
            job.thread.join()
        self._pass_on(job)
        value, job.value, job.args = job.value, None, ()
        _leave_alone()
        if job.cancelled.is_set():
            self._finish(job, Cancelled("cancelled"))
        elif job.trouble is not None:
            self._finish(job, job.trouble)
        else:
            job.seconds = time.monotonic() - job.since
            job.state = "done"
            job.progress = (1.0, job.say(value))
            job.done(value)
        self._fill()
        if not self._running():
            self._timer.stop()
        self.changed.emit()

    @staticmethod
    def _finish(job: _Job, error: LapstrakeError) -> None:
        job.seconds = time.monotonic() - job.since
        job.state = "cancelled" if isinstance(error, Cancelled) else "failed"
        job.error = "" if isinstance(error, Cancelled) else str(error)
        job.failed(error)
