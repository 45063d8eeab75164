"""Times modules on devices: warmed up, repeated, one after the other in turn so that drift hits all alike."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from engine import worker
from engine.control import QUIET, Control
from engine.errors import UsageError
from engine.execute.environment import environment
from engine.execute.verifying import RENDEZVOUS, check_runnable, explain_death
from engine.ir.module import Module

DEADLINE = 1800.0
"""Seconds that a measurement may take."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one execution of a module takes, from the call to the last device's last result."""

    name: str
    times: tuple[int, ...]
    """Picoseconds of each repeat, in the order measured."""

    @property
    def median(self) -> int:
        return round(statistics.median(self.times))

    @property
    def spread(self) -> int:
        """Picoseconds between the first and the third quartile."""
        if len(self.times) < 2:
            return 0
        quartiles = statistics.quantiles(self.times, n=4, method="inclusive")
        return round(quartiles[2] - quartiles[0])


@dataclass(frozen=True, slots=True)
class Measurement:
    """Timings of several modules on the same inputs."""

    timings: tuple[Timing, ...]
    platform: str
    devices: int
    notes: tuple[str, ...] = ()


def measure(
    modules: Sequence[Module],
    *,
    repeats: int = 10,
    warmup: int = 2,
    seed: int = 0,
    platform: str = "cpu",
    inputs: str | None = None,
    deadline: float = DEADLINE,
    control: Control = QUIET,
) -> Measurement:
    """Time each of `modules` (same parameters and results) `repeats` times, in turn.

    Raises as `engine.execute.verifying.verify` does, and InputError for inputs that are all zeros: sparse shortcuts
    and less heat make those faster than real data.
    """
    if repeats < 1 or warmup < 0:
        raise UsageError(f"at least one repeat and no negative warm-up are needed, but {repeats} and {warmup} came")
    for module in modules:
        check_runnable(modules[0], module, platform)
    devices = modules[0].header.devices
    try:
        found = worker.call(
            "engine.execute.stopwatch:measure_in_worker",
            tuple(modules),
            repeats,
            warmup,
            seed,
            platform,
            inputs,
            environment=environment(devices, platform, min(RENDEZVOUS, deadline / 2)),
            deadline=deadline,
            control=control,
        )
    except (worker.Died, worker.TimedOut) as error:
        raise explain_death(error, modules[0], deadline) from None
    assert isinstance(found, Measurement)
    return found
