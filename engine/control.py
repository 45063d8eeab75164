"""How long work reports progress and learns that it was cancelled, without knowing who listens."""

from __future__ import annotations

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
    ) -> None:
        self._report = report
        self._stop = stop

    def step(self, fraction: float, message: str) -> None:
        """Say that `fraction` (0..1) of the work is done and what comes now; raises Cancelled when asked to stop."""
        if self._stop():
            raise Cancelled("cancelled")
        self._report(fraction, message)

    def part(self, start: float, stop: float) -> Control:
        """A control for a part of the work: its 0..1 is this one's `start`..`stop`."""
        return Control(lambda fraction, message: self._report(start + (stop - start) * fraction, message), self._stop)


QUIET = Control()
"""Reports to nobody and is never cancelled."""
