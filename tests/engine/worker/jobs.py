"""Functions for the worker tests to call by name."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time

from engine import worker
from engine.control import Control
from engine.errors import InputError, Place


def add(a: int, b: int, *, control: Control) -> int:
    control.step(0.5, "adding")
    return a + b


def process_id(*, control: Control) -> int:
    return os.getpid()


def variable(name: str, *, control: Control) -> str | None:
    return os.environ.get(name)


def count_slowly(seconds: float, *, control: Control) -> str:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        control.step(1 - left / seconds, "counting")
        time.sleep(0.01)
    return "counted"


def hang(*, control: Control) -> None:
    """Deaf to everything, as native code that holds the GIL is."""
    control.step(0.25, "hanging")
    ctypes.PyDLL(None).sleep(3600)


def start_child_and_hang(path: str, *, control: Control) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    with open(path, "w") as file:
        file.write(str(child.pid))
    hang(control=control)


def note_and_hang(path: str, *, control: Control) -> None:
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    hang(control=control)


def wait_for_a_worker_that_hangs(path: str, *, control: Control) -> None:
    worker.call("tests.engine.worker.jobs:note_and_hang", path, control=control)


def abort(words: str, *, control: Control) -> None:
    os.write(2, words.encode())
    os.abort()


def kill_itself(*, control: Control) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(code: int, *, control: Control) -> None:
    os._exit(code)


def complain(*, control: Control) -> None:
    raise InputError("expected a module", Place("a.hlo", 3, 2, " x"))


def divide(*, control: Control) -> float:
    return 1 / int("0")


def unsendable(*, control: Control) -> object:
    return lambda: None


def shout(*, control: Control) -> None:
    print("to standard output")
    os.write(2, b"to standard error\n")


def find(values: list[int], *, control: Control) -> int:
    for value in values:
        control.part(0.2, 0.4).within(60.0).tell(value)
    return len(values)
