"""What commands print on: progress on standard error, results on standard output, colour only where it is read."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from engine.control import Cancelled, Control

_PATIENCE = 1.0
"""Seconds before a progress bar appears."""

_INTERVAL = 15.0
"""Seconds between lines of progress where there is no terminal."""


@contextmanager
def progress(arguments: Namespace, *, limited: bool = True) -> Iterator[Control]:
    """A control that draws a bar on a terminal once the work takes over a second, and keeps ``--time-limit``.

    Where standard error is no terminal, a line now and then says how far long work is, for the log of a batch job.
    Work that is not `limited` goes on past the limit: what follows a search that was stopped by it.
    """
    limit = getattr(arguments, "time_limit", None) if limited else None
    deadline = None if limit is None else time.monotonic() + limit

    def late() -> bool:
        return deadline is not None and time.monotonic() > deadline

    shown = not getattr(arguments, "quiet", False) and sys.stderr is not None
    bar = (_Bar() if sys.stderr.isatty() else _Lines()) if shown else None
    try:
        yield Control(bar.show, late) if bar else Control(stop=late)
    except Cancelled:
        if late():
            raise Cancelled(f"the time limit of {limit:g} s passed (--time-limit)") from None
        raise
    finally:
        if bar:
            bar.clear()


class _Bar:
    """One line on standard error, made when it is first needed."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._shown = 0.0

    def show(self, fraction: float, message: str) -> None:
        now = time.monotonic()
        if now - self._start < _PATIENCE or now - self._shown < 0.1:
            return
        self._shown = now
        filled = round(max(0.0, min(1.0, fraction)) * 20)
        elapsed = f"{now - self._start:.0f} s"
        sys.stderr.write(f"\r\033[K{'█' * filled}{'░' * (20 - filled)} {fraction:4.0%} {elapsed} {message[:52]}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


class _Lines:
    """A line on standard error every so often: nothing that moves a cursor."""

    def __init__(self) -> None:
        self._start = self._shown = time.monotonic()

    def show(self, fraction: float, message: str) -> None:
        now = time.monotonic()
        if now - self._shown < _INTERVAL:
            return
        self._shown = now
        print(f"{fraction:.0%} after {now - self._start:.0f} s: {message}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Lines stay."""


def colour(arguments: Namespace) -> bool:
    """Whether standard output takes colour: a terminal, neither ``--no-color`` nor NO_COLOR set."""
    return sys.stdout.isatty() and not getattr(arguments, "no_color", False) and not os.environ.get("NO_COLOR")


def note(arguments: Namespace, text: str) -> None:
    """Say something that is not the result."""
    if not getattr(arguments, "quiet", False):
        with suppress(OSError):  # what cannot be said is no reason to keep the result back
            print(text, file=sys.stderr)
