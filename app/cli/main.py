"""Where the `lapstrake` command starts: parses arguments, runs one command, turns errors into sentences."""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from collections.abc import Sequence
from contextlib import suppress

from app.cli import streams
from app.cli.arguments import parse
from engine.control import Cancelled
from engine.errors import LapstrakeError

DONE, BAD_ANSWER, BAD_USAGE = 0, 1, 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (design: 0 done, 1 the answer is bad, 2 bad usage or input)."""
    multiprocessing.freeze_support()
    streams.reopen()
    try:
        status = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away (``lapstrake … | head``); nothing is left to say.
        status = streams.status_of_broken_pipe(BAD_USAGE)
    except OSError as error:
        if error.filename is not None:
            raise
        status = _complain(streams.refusal(error))
    except KeyboardInterrupt:
        _say("lapstrake: interrupted")
        status = INTERRUPTED
    streams.drop()
    return status


def _run(argv: Sequence[str]) -> int:
    try:
        arguments = parse(argv)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else BAD_USAGE
    try:
        command = importlib.import_module(f"app.cli.{arguments.command}_command")
        status: int = command.run(arguments)
    except LapstrakeError as error:
        return _complain(error)
    return status


def _complain(error: LapstrakeError) -> int:
    _say(f"lapstrake: {error}")
    place = getattr(error, "place", None)
    if place is not None:
        _say(str(place).partition("\n")[2])
    return BAD_ANSWER if isinstance(error, Cancelled) else BAD_USAGE


def _say(text: str) -> None:
    with suppress(OSError):  # where nothing can be said, the exit status says it
        print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
