"""A job for tests: takes its time, says so, and can be cancelled."""

from __future__ import annotations

import time

from engine.control import Control
from engine.execute.verifying import Output, Verification
from engine.export.tuned import Bundled
from engine.ir.module import Module


def sleep(seconds: float, *, control: Control) -> float:
    """Wait, looking at the control as a real job would."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        control.step(1 - left / seconds, "sleeping")
        time.sleep(min(0.02, left))
    return seconds


def refuse_bundle(module: Module, *_: object, control: Control) -> Bundled:
    """The end of a bundle whose plan changes numbers."""
    output = Output("own", "0", "f32[4]", 0.5, 1e-7, 1e-5, 0, 1, (2,), "1.5", "1.0")
    found = Verification((output,), "float64", module.header.devices, "cpu", (0,))
    return Bundled("bundle", written=False, verification=found, unverified="")
