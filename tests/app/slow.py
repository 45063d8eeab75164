"""A job for tests: takes its time, says so, and can be cancelled."""

from __future__ import annotations

import time

from engine.control import Control


def sleep(seconds: float, *, control: Control) -> float:
    """Wait, looking at the control as a real job would."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        control.step(1 - left / seconds, "sleeping")
        time.sleep(min(0.02, left))
    return seconds
