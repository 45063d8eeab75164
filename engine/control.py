"""How long work reports progress and learns that it was cancelled, without knowing who listens."""

from __future__ import annotations

import time
from collections.abc import Callable

from engine.errors import LapstrakeError


class Cancelled(LapstrakeError):
    """The user cancelled, or a time limit passed."""


class Control:
    """Handed to every function that may take over 0.2 s."""

    def __init__(
        self,
        report: Callable[[float, str], None] = lambda fraction, message: None,
        stop: Callable[[], bool] = lambda: False,
        hear: Callable[[object], None] = lambda found: None,
    ) -> None:
        self._report = report
        self._stop = stop
        self._hear = hear

    def step(self, fraction: float, message: str) -> None:
        """Say that `fraction` (0..1) of the work is done and what comes now; raises Cancelled when asked to stop."""
        if self._stop():
            raise Cancelled("cancelled")
        self._report(fraction, message)

    def tell(self, found: object) -> None:
        """Hand over something that was found on the way, to be shown before the work ends."""
        self._hear(found)

    def part(self, start: float, stop: float) -> Control:
        """A control for a part of the work: its 0..1 is this one's `start`..`stop`."""
        return Control(
            lambda fraction, message: self._report(start + (stop - start) * fraction, message), self._stop, self._hear
        )

    def silent(self) -> Control:
        """A control that can be cancelled and reports nothing: for work whose steps would hide what it is part of."""
        return Control(stop=self._stop)

    def within(self, seconds: float | None) -> Control:
        """A control that also cancels once so many seconds from now have passed; None is no limit."""
        if seconds is None:
            return self
        until = time.monotonic() + seconds
        return Control(self._report, lambda: time.monotonic() > until or self._stop(), self._hear)


QUIET = Control()
"""Reports to nobody and is never cancelled."""
