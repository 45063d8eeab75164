"""Times modules on devices: warmed up, repeated, one after the other in turn so that drift hits all alike."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine import worker
from engine.control import QUIET, Control
from engine.errors import OutOfMemory, UsageError
from engine.execute.endings import explain
from engine.execute.environment import environment
from engine.execute.ordering import OrderKept
from engine.execute.verifying import RENDEZVOUS, check_runnable
from engine.ir.module import Module

DEADLINE = 1800.0
"""Seconds that a measurement may take."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How modules are run and timed."""

    platform: str = "cpu"
    repeats: int = 10
    warmup: int = 2
    """Executions before the first that counts."""
    seed: int = 0
    """Of the random inputs."""
    inputs: str | None = None
    """An .npz file to take instead."""
    profile: bool = False
    """Whether executions are profiled, after those that are timed."""
    alone: bool = False
    """Whether one device computes alone, collectives replaced by copies of its own data: per-instruction times of
    compute where fewer devices are attached than the module needs; its results mean nothing."""
    as_job: bool = False
    """Whether CPU devices run what jit makes of the module inside a job, every pass on, and the order asked for at the
    compiler's hook; other platforms always do."""
    deadline: float = DEADLINE
    """Seconds for everything."""


DEFAULT = RunOptions()


@dataclass(frozen=True, eq=False)
class Entrant:
    """A module to run."""

    name: str
    module: Module
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Computation name → names of its instructions in the order wanted; empty for the compiler's own."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one execution of a module takes, from the call to the last device's last result."""

    name: str
    times: tuple[int, ...]
    """Picoseconds of each repeat, in the order measured."""
    order: OrderKept | None = None
    """Whether the executable is issued in the order wanted; None where none was."""
    profile: bytes = b""
    """XSpace of the profiled executions; empty without."""

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
    """That took part."""
    kind: str = ""
    """What the runtime calls a device."""
    alone: bool = False
    notes: tuple[str, ...] = ()


def measure(entrants: Sequence[Entrant], options: RunOptions = DEFAULT, control: Control = QUIET) -> Measurement:
    """Time each of `entrants` (same parameters and results), in turn.

    Raises as `engine.execute.verifying.verify` does, and InputError for inputs that are all zeros: sparse shortcuts
    and less heat make those faster than real data.
    """
    if options.repeats < 1 or options.warmup < 0:
        raise UsageError(
            f"at least one repeat and no negative warm-up are needed, but {options.repeats} and {options.warmup} came"
        )
    modules = [entrant.module for entrant in entrants]
    for module in modules:
        check_runnable(modules[0], module, options.platform, alone=options.alone)
    devices = 1 if options.alone else modules[0].header.devices
    try:
        found = worker.call(
            "engine.execute.stopwatch:measure_in_worker",
            tuple(entrants),
            options,
            environment=environment(devices, options.platform, min(RENDEZVOUS, options.deadline / 2)),
            deadline=options.deadline,
            control=control,
        )
    except (worker.Died, worker.TimedOut, OutOfMemory) as error:
        raise explain(error, modules[0].name, devices, options.platform, options.deadline) from None
    assert isinstance(found, Measurement)
    return found
