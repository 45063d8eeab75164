"""Where the `lapstrake` command starts: parses arguments, runs one command, turns errors into sentences."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence

from app.cli.arguments import parse
from engine.control import Cancelled
from engine.errors import LapstrakeError

DONE, BAD_ANSWER, BAD_USAGE = 0, 1, 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (design: 0 done, 1 the answer is bad, 2 bad usage or input)."""
    multiprocessing.freeze_support()
    try:
        arguments = parse(sys.argv[1:] if argv is None else argv)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else BAD_USAGE
    try:
        command = importlib.import_module(f"app.cli.{arguments.command}_command")
        status: int = command.run(arguments)
        sys.stdout.flush()
    except LapstrakeError as error:
        return _complain(error)
    except BrokenPipeError:
        # The reader went away (``lapstrake … | head``); nothing is left to say, also not by the interpreter at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE if hasattr(signal, "SIGPIPE") else BAD_USAGE
    except KeyboardInterrupt:
        print("lapstrake: interrupted", file=sys.stderr)
        return INTERRUPTED
    return status


def _complain(error: LapstrakeError) -> int:
    print(f"lapstrake: {error}", file=sys.stderr)
    place = getattr(error, "place", None)
    if place is not None:
        print(str(place).partition("\n")[2], file=sys.stderr)
    return BAD_ANSWER if isinstance(error, Cancelled) else BAD_USAGE


if __name__ == "__main__":
    sys.exit(main())
