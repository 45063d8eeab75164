"""An X server without a screen, for as long as a test needs one."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CDLL

from tests.app.x_input import LIBRARIES

SCREEN = "1920x1200x24"
_START_S = 30.0


def missing() -> str:
    """What this machine lacks for tests on a virtual X display; empty where it has all of it."""
    if shutil.which("Xvfb") is None:
        return "Xvfb is not installed"
    for name in LIBRARIES:
        try:
            CDLL(name)
        except OSError:
            return f"{name} is not installed"
    return ""


@contextmanager
def virtual_display() -> Iterator[str]:
    """A running Xvfb; gives its display's name, such as ``:7``. Raises RuntimeError where it does not start."""
    theirs, ours = os.pipe()
    command = ["Xvfb", "-displayfd", str(ours), "-screen", "0", SCREEN, "-nolisten", "tcp", "-noreset"]
    server = subprocess.Popen(command, pass_fds=[ours], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(ours)
    try:
        yield f":{_number(theirs)}"
    finally:
        os.close(theirs)
        server.terminate()
        try:
            server.wait(10.0)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _number(pipe: int) -> int:
    said = b""
    while not said.endswith(b"\n"):
        ready, _, _ = select.select([pipe], [], [], _START_S)
        chunk = os.read(pipe, 64) if ready else b""
        if not chunk:
            raise RuntimeError(f"Xvfb did not name its display within {_START_S:g} s")
        said += chunk
    return int(said)
