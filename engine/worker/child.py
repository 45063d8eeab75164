"""The worker's side: runs in the spawned process, takes one call after the other, and says how each ended."""

from __future__ import annotations

import faulthandler
import gc
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from engine.control import QUIET, Control
from engine.errors import LapstrakeError, OutOfMemory, WorkerError

REPORT_INTERVAL = 0.05
"""Seconds between two progress messages, and between two looks for a cancellation."""
_OBJECTS = 1_000_000
"""How many objects more than before make Python look for cycles among them."""


@dataclass(frozen=True, slots=True)
class Request:
    """Parent to worker: call ``target(*args, control=…, **kwargs)``."""

    number: int
    target: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Parent to worker: the call `number` is no longer wanted."""

    number: int


@dataclass(frozen=True, slots=True)
class Step:
    """Worker to parent: progress."""

    number: int
    fraction: float
    message: str


@dataclass(frozen=True, slots=True)
class Told:
    """Worker to parent: something that was found on the way."""

    number: int
    found: Any


@dataclass(frozen=True, slots=True)
class Returned:
    """Worker to parent: the call ended with a value."""

    number: int
    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """Worker to parent: the call ended with an error for the user."""

    number: int
    error: LapstrakeError


def serve(connection: Connection, environment: Mapping[str, str], said: str, first: str = "") -> None:
    """Main function of the worker: serves until the parent closes the connection or dies.

    `environment` is set before anything else is imported, since XLA reads its flags once. Everything that is written
    to standard output and error goes to the file `said`. `first` is run before the first call; what is wrong with it,
    the calls will tell.
    """
    _redirect(said)
    os.environ.update(environment)
    _stand_alone(said)
    # What a job makes lives until it ends: looking through it for cycles every few hundred objects takes a tenth of
    # the time and finds nothing.
    gc.set_threshold(_OBJECTS)
    if first:
        with suppress(Exception):
            _function(first)(control=QUIET)
    while True:
        try:
            request = connection.recv()
        except (EOFError, OSError):
            return
        if isinstance(request, Request):
            _answer(connection, request)


def _answer(connection: Connection, request: Request) -> None:
    try:
        answer: Returned | Raised = Returned(request.number, _run(connection, request))
    except LapstrakeError as error:
        answer = Raised(request.number, error)
    except MemoryError:
        answer = Raised(request.number, OutOfMemory("this machine has too little memory for it"))
    except Exception as error:
        answer = Raised(request.number, _unexpected(request.target, error))
    try:
        connection.send(answer)
    except OSError:
        return
    except Exception as error:
        connection.send(Raised(request.number, _unexpected(request.target, error)))


def _run(connection: Connection, request: Request) -> Any:
    control = _Remote(connection, request.number).control
    return _function(request.target)(*request.args, control=control, **request.kwargs)


def _function(target: str) -> Callable[..., Any]:
    module, _, function = target.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def _unexpected(target: str, error: Exception) -> WorkerError:
    """A bug, or an error of a library: shown as a sentence, with the traceback as a note for a report."""
    wrapped = WorkerError(f"{target} failed: {type(error).__name__}: {error}")
    wrapped.add_note("".join(traceback.format_exception(error)))
    return wrapped


class _Remote:
    """Progress and cancellation over the connection, looked at only every so often: steps may come in a hot loop."""

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection = connection
        self._number = number
        self._reported = self._looked = 0.0
        self._cancelled = False
        self.control = Control(self._report, self._stop, self._tell)

    def _report(self, fraction: float, message: str) -> None:
        now = time.monotonic()
        if now - self._reported < REPORT_INTERVAL:
            return
        self._reported = now
        self._connection.send(Step(self._number, fraction, message))

    def _tell(self, found: object) -> None:
        self._connection.send(Told(self._number, found))

    def _stop(self) -> bool:
        now = time.monotonic()
        if self._cancelled or now - self._looked < REPORT_INTERVAL:
            return self._cancelled
        self._looked = now
        while self._connection.poll():
            message = self._connection.recv()
            self._cancelled |= isinstance(message, Cancel) and message.number == self._number
        return self._cancelled


def _redirect(said: str) -> None:
    """Descriptors 1 and 2 to the file, so that what XLA's C++ logs is caught as well."""
    file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    if sys.stdout is None or sys.stderr is None:  # a frozen program without a console has none
        sys.stdout = sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    faulthandler.enable(file=2)


def _stand_alone(said: str) -> None:
    """A process group of its own, to be killed as one; the kernel's first choice in need; gone with the parent."""
    if hasattr(os, "setsid"):
        with suppress(OSError):
            os.setsid()
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800")
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent, said), daemon=True).start()


def _leave_with(parent: Any, said: str) -> None:
    """A parent that ended by itself has killed its workers and cleaned up; one that was killed has not."""
    parent.join()
    with suppress(OSError):
        os.unlink(said)
    os._exit(0)
