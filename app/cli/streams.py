"""Standard streams that are closed, full or gone: a command goes on without them, or ends with a sentence."""

from __future__ import annotations

import errno
import os
import signal
import sys
from contextlib import suppress

from engine.errors import UsageError


def reopen() -> None:
    """Lead what was closed (``lapstrake … >&-``) to nowhere.

    Else the next file that is opened, or a pipe to a worker, takes the number of a standard stream, and what is printed
    goes there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - as long as we run


def refusal(error: OSError) -> UsageError:
    """What is said of a write to standard output that the system refused, for want of space as a rule."""
    why = error.strerror or str(error)
    room = ": there is no room left where it leads" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return UsageError(f"what was to be printed could not be written to standard output ({why}){room}")


def drop() -> None:
    """Lead standard output and error to nowhere, where one of them fails: also the interpreter would write what is
    left of them at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def status_of_broken_pipe(otherwise: int) -> int:
    """Exit status where the reader went away: as a shell tells of the signal; `otherwise` where there is none."""
    return 128 + signal.SIGPIPE if hasattr(signal, "SIGPIPE") else otherwise
