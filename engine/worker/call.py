"""The parent's side: a worker process and the call it is busy with."""

from __future__ import annotations

import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from itertools import count, takewhile
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from engine.control import Cancelled
from engine.errors import LapstrakeError, WorkerError
from engine.quantities import bytes_text
from engine.worker import memory
from engine.worker.child import Cancel, Raised, Request, Returned, Step, Told, serve

GRACE = 1.0
"""Seconds that a cancelled call gets to stop by itself before its process is killed."""

_FATAL = re.compile(
    r"^F\d{4} .*?\] (?P<glog>.*)$"
    r"|^(?P<plain>.*Check failed.*|LLVM ERROR: .*|cannot allocate memory.*|terminate called.*(?:\n\s+what\(\).*)?)$",
    re.MULTILINE,
)
_STARVED = re.compile(
    r"bad_alloc|[Cc]annot allocate memory|pthread_create|RESOURCE_EXHAUSTED|out of memory", re.IGNORECASE
)
"""How libraries die of want of memory; a thread that cannot be made wants memory for its stack."""
_TAIL = 1 << 16
_WATCH = 0.2
"""Seconds between two looks at the memory that a worker takes."""
_REMEMBERED = 16


class Died(WorkerError):
    """The worker process ended before it answered."""

    def __init__(self, message: str, said: str = "", *, starved: bool = False) -> None:
        super().__init__(message)
        self.said = said
        """The last words of XLA or of a library under it; empty when there were none."""
        self.starved = starved
        """Whether it died of want of memory, by those words or because the system killed it."""


class TimedOut(WorkerError):
    """The worker did not answer before the deadline and was killed."""


class Process:
    """A spawned process that serves one call at a time."""

    def __init__(self, environment: Mapping[str, str], first: str = "") -> None:
        """`first` is a ``module:function`` that it runs before anything else.

        Raises OSError where the system allows no further process or file.
        """
        self.environment = dict(environment)
        self.near: tuple[str, ...] = ()
        """What the calls that it served last were near, newest last; see `Pool.start`."""
        handle, name = tempfile.mkstemp(prefix="lapstrake-worker-", suffix=".log")
        os.close(handle)
        self._said = Path(name)
        context = get_context("spawn")
        with ExitStack() as undo:
            undo.callback(self._said.unlink)
            self.connection, theirs = context.Pipe()
            undo.callback(self.connection.close)
            self._process = context.Process(
                target=serve, args=(theirs, self.environment, name, first), name="lapstrake worker", daemon=False
            )
            with theirs:
                self._process.start()
            undo.pop_all()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def nearness(self, near: str) -> int:
        """For how many letters `near` begins as a call did that this process served lately."""
        return max((_alike(near, one) for one in self.near), default=0)

    def remember(self, near: str) -> None:
        """Note what a call is near; only the last few are kept, as a worker keeps only so much."""
        if near:
            self.near = (*(n for n in self.near if n != near), near)[-_REMEMBERED:]

    def forget_said(self) -> None:
        """Empty the file of what the process wrote, so that a later death quotes only its own call."""
        with suppress(OSError):
            os.truncate(self._said, 0)

    def said(self) -> str:
        """The last of what the process wrote to standard output and error."""
        try:
            return self._said.read_bytes()[-_TAIL:].decode(errors="replace")
        except OSError:
            return ""

    def exit_code(self) -> int | None:
        """Waits for the process to end."""
        self._process.join(5.0)
        return self._process.exitcode

    def kill(self) -> None:
        """Kill the process and what it started, and clean up after it."""
        pid = self._process.pid
        if pid is not None and self._process.is_alive():
            if hasattr(os, "killpg"):
                with suppress(OSError):
                    os.killpg(pid, signal.SIGKILL)
            self._process.kill()
        self._process.join(5.0)
        self.connection.close()
        with suppress(OSError):
            self._said.unlink(missing_ok=True)


class Call:
    """A call that a worker is busy with. Nothing happens by itself: whoever holds it polls or waits.

    Used by one thread at a time.
    """

    _numbers = count(1)

    def __init__(
        self,
        process: Process,
        target: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        deadline: float | None,
        release: Callable[[Process], None],
    ) -> None:
        """Send the call; `deadline` in seconds from now, None for no limit. `release` gets the process back if usable.

        Raises OSError when the process is gone.
        """
        self.target = target
        self.progress: tuple[float, str] = (0.0, "")
        """Fraction done (0..1) and message, as last reported."""
        self._told: list[Any] = []
        self._process = process
        self._release = release
        self._number = next(self._numbers)
        self._limit = deadline
        self._end = None if deadline is None else time.monotonic() + deadline
        self._kill_at: float | None = None
        self._watched = 0.0
        self._done = False
        self._value: Any = None
        self._error: LapstrakeError | None = None
        process.forget_said()
        process.connection.send(Request(self._number, target, args, kwargs))

    def poll(self) -> bool:
        """Take in what the worker sent, without waiting; whether the call has ended."""
        return self.wait(0.0)

    def wait(self, timeout: float) -> bool:
        """Take in what the worker sends for up to `timeout` seconds; whether the call has ended."""
        until = time.monotonic() + timeout
        while not self._done:
            now = time.monotonic()
            waiting = max(0.0, min(until, *self._limits()) - now)
            try:
                if self._process.connection.poll(waiting):
                    self._take(self._process.connection.recv())
                    continue
            except (EOFError, OSError):
                self._finish_dead()
                break
            self._enforce(time.monotonic())
            if time.monotonic() >= until:
                break
        return self._done

    def result(self) -> Any:
        """Wait for the end; the value.

        Raises what the function raised if it was meant for the user, Died or TimedOut (both WorkerError) when the
        process did not survive, Cancelled after `cancel`, WorkerError for anything unexpected.
        """
        while not self.wait(1.0):
            pass
        if self._error is not None:
            raise self._error
        return self._value

    def take_told(self) -> list[Any]:
        """What the call has told of on the way since this was last asked, in its order."""
        told, self._told = self._told, []
        return told

    def cancel(self, patience: float = GRACE) -> None:
        """Ask the call to stop; its process is killed if it does not within `patience` seconds. Ends as Cancelled."""
        if self._done or self._kill_at is not None:
            return
        self._kill_at = time.monotonic() + patience
        with suppress(OSError):
            self._process.connection.send(Cancel(self._number))

    def kill(self) -> None:
        """End the call at once, with its process."""
        if self._done:
            return
        self._process.kill()
        self._finish(error=Cancelled("cancelled"))

    def _limits(self) -> list[float]:
        return [limit for limit in (self._end, self._kill_at) if limit is not None] or [float("inf")]

    def _take(self, message: object) -> None:
        match message:
            case Step(number, fraction, text) if number == self._number:
                self.progress = (fraction, text)
            case Told(number, found) if number == self._number:
                self._told.append(found)
            case Returned(number, value) if number == self._number:
                self._finish(value=value)
                self._release(self._process)
            case Raised(number, error) if number == self._number:
                self._finish(error=error)
                self._release(self._process)

    def _enforce(self, now: float) -> None:
        if self._kill_at is not None and now >= self._kill_at:
            self.kill()
        elif self._end is not None and now >= self._end:
            self._process.kill()
            doing = f" while {self.progress[1]}" if self.progress[1] else ""
            self._finish(error=TimedOut(f"no answer within {self._limit:g} s{doing}: the worker process was stopped"))
        elif now - self._watched >= _WATCH:
            self._watched = now
            self._watch_memory()

    def _watch_memory(self) -> None:
        """End the call before the system does for want of memory, which may end other programs first."""
        took = memory.takes_too_much(self._process.pid)
        if not took:
            return
        self._process.kill()
        doing = f" while {self.progress[1]}" if self.progress[1] else ""
        said = (
            f"stopped{doing}: it had taken {bytes_text(took)} of memory and left next to none on this machine. Close "
            "other programs, or take a smaller module or a machine with more memory, and try again"
        )
        self._finish(error=Died(said, starved=True))

    def _finish_dead(self) -> None:
        code = self._process.exit_code()
        said = last_words(self._process.said())
        self._process.kill()
        if self._kill_at is not None:
            self._finish(error=Cancelled("cancelled"))
            return
        ending = f"the worker process ended {_ending(code)}" + (f": {said}" if said else "")
        starved = _killed(code) or _STARVED.search(said) is not None
        self._finish(error=Died(ending, said, starved=starved))

    def _finish(self, value: Any = None, error: LapstrakeError | None = None) -> None:
        self._done, self._value, self._error = True, value, error


def _alike(one: str, other: str) -> int:
    """How many letters two texts begin alike for."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def last_words(said: str) -> str:
    """The line with which XLA (or absl, LLVM, C++) aborted, without its time stamp; empty when there is none."""
    found = _FATAL.search(said)
    return "" if found is None else " ".join(str(found["glog"] or found["plain"]).split())


def _killed(code: int | None) -> bool:
    """Whether the process was killed from outside, as the system does for want of memory."""
    return code is not None and hasattr(signal, "SIGKILL") and code == -signal.SIGKILL


def _ending(code: int | None) -> str:
    if code is None:
        return "without a word"
    if code >= 0:
        return f"with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"with {name}" + (" (the system may be out of memory)" if _killed(code) else "")
