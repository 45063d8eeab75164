"""Keeps workers between calls: starting one costs a few tenths of a second, and importing XLA into it as much again."""

from __future__ import annotations

from collections.abc import Mapping
from multiprocessing.util import Finalize
from threading import Lock
from typing import Any

from engine.control import QUIET, Cancelled, Control
from engine.errors import WorkerError
from engine.worker.call import GRACE, Call, Died, Process

IDLE = 2
"""How many idle workers are kept for each environment."""

POLL = 0.05
"""Seconds between two looks at whether the user has cancelled."""

_STILLBORN = (
    "a worker process was started, but it ended before it took any work. A program that starts workers has to be a "
    "file, not standard input, and does its work under if __name__ == '__main__'."
)


class Pool:
    """Workers by their environment. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[Process] = []
        self._all: set[Process] = set()
        self._ended = False

    def start(
        self,
        target: str,
        *args: Any,
        environment: Mapping[str, str] | None = None,
        deadline: float | None = None,
        near: str = "",
        **kwargs: Any,
    ) -> Call:
        """Run ``module:function`` in a worker that was started with these environment variables, without waiting.

        Arguments and result are pickled. `deadline`: seconds until the worker is killed. `near` spells out what the
        call works on, the most important first: the idle worker that served a call whose words begin alike for longest
        is preferred, since it may have kept what both share. Raises WorkerError where no worker can be started.
        """
        wanted = dict(environment or {})
        while True:
            idle = self._take(wanted, near)
            process = idle or self._spawn(wanted)
            process.remember(near)
            try:
                return Call(process, target, args, kwargs, deadline, self._give_back)
            except OSError:
                said = process.said().strip()
                self._drop(process)
            if idle is None:
                raise Died(_STILLBORN + (f" Its last words: {said.splitlines()[-1]}" if said else ""), said)

    def prepare(self, target: str) -> None:
        """Start a worker that runs ``module:function`` before it serves its first call: an import, or a rehearsal.

        Returns at once; a call that comes meanwhile waits for it rather than for another worker to start. Raises
        WorkerError where it cannot be started.
        """
        process = self._spawn({}, target)
        with self._lock:
            self._idle.append(process)

    def call(
        self,
        target: str,
        *args: Any,
        environment: Mapping[str, str] | None = None,
        deadline: float | None = None,
        control: Control = QUIET,
        **kwargs: Any,
    ) -> Any:
        """As `start`, and wait for the result; progress goes to `control`. See `Call.result` for what is raised."""
        handle = self.start(target, *args, environment=environment, deadline=deadline, **kwargs)
        try:
            while not handle.wait(POLL):
                control.step(*handle.progress)
                for found in handle.take_told():
                    control.tell(found)
        except Cancelled:
            # Within the patience of whoever cancels us: this may run in a worker, whose death the other would outlive.
            handle.cancel()
            if not handle.wait(GRACE / 2):
                handle.kill()
            raise
        except BaseException:
            handle.kill()
            raise
        for found in handle.take_told():
            control.tell(found)
        return handle.result()

    def close(self) -> None:
        """Kill every worker."""
        with self._lock:
            processes, self._all, self._idle = self._all, set(), []
        for process in processes:
            process.kill()

    def end(self) -> None:
        """Kill every worker, and start none any more: as a process ends it would wait for them."""
        with self._lock:
            self._ended = True
        self.close()

    def _take(self, environment: Mapping[str, str], near: str) -> Process | None:
        with self._lock:
            alike = [p for p in self._idle if p.environment == environment]
            if not alike:
                return None
            # What is near nothing goes where least is kept: it may be cancelled, and its process killed with it.
            process = max(alike, key=lambda p: (p.nearness(near) if near else 0, -len(p.near)))
            self._idle.remove(process)
        if process.is_alive():
            return process
        self._drop(process)
        return None

    def _spawn(self, environment: Mapping[str, str], first: str = "") -> Process:
        try:
            process = Process(environment, first)
        except OSError as error:
            raise WorkerError(
                f"no worker process could be started: {error.strerror or error}. Close other programs, or allow more "
                "processes and open files (ulimit -u, ulimit -n), and try again."
            ) from None
        with self._lock:
            if not self._ended:
                self._all = {p for p in self._all if p.is_alive()} | {process}
                return process
        process.kill()
        raise WorkerError("no work is begun while the program ends")

    def _give_back(self, process: Process) -> None:
        with self._lock:
            if process not in self._all:
                spare: Process | None = process
            else:
                self._idle.append(process)
                alike = [p for p in self._idle if p.environment == process.environment]
                spare = min(alike, key=lambda p: len(p.near)) if len(alike) > IDLE else None
                if spare is not None:
                    self._idle.remove(spare)
        if spare is not None:
            self._drop(spare)

    def _drop(self, process: Process) -> None:
        with self._lock:
            self._all.discard(process)
        process.kill()


_POOL = Pool()
start = _POOL.start
call = _POOL.call
prepare = _POOL.prepare
close = _POOL.close

# Not atexit: a worker that has workers of its own ends without running atexit's functions, and multiprocessing would
# wait for them.
Finalize(None, _POOL.end, exitpriority=100)
