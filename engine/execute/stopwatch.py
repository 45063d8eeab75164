"""The worker's part of a measurement."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from engine.control import Control
from engine.errors import InputError
from engine.execute.alone import alone
from engine.execute.as_job import JobExecutable
from engine.execute.effort import check_ends, duration_text, forecast
from engine.execute.inputs import Draw, inputs_one_by_one, load_inputs
from engine.execute.legalize import legalize
from engine.execute.running import Executable
from engine.execute.timing import Entrant, Measurement, RunOptions, Timing
from engine.execute.tracing import uses_of
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.module import Module
from engine.profile.attribution import tag
from engine.profile.profile import ALONE
from engine.profile.xspace_pb2 import XSpace

PROFILED = 5
"""Executions that a profile holds at most: each has thousands of events."""

_PICOSECONDS = 1000
"""In a nanosecond."""


def measure_in_worker(entrants: tuple[Entrant, ...], options: RunOptions, *, control: Control) -> Measurement:
    """See `engine.execute.timing.measure`."""
    first = entrants[0].module
    turns = options.warmup + options.repeats
    each = _forecast(first, options, turns * len(entrants), control)
    executables = []
    for k, entrant in enumerate(entrants):
        control.step(0.5 * k / len(entrants), f"compiling {entrant.name}")
        executables.append(_executable(entrant, options))
    control.step(0.5, "making the inputs")
    arguments = executables[0].place(_inputs(first, options))
    times: list[list[int]] = [[] for _ in entrants]
    for turn in range(turns):
        for k, executable in enumerate(executables):
            done = (turn * len(executables) + k) / (turns * len(executables))
            control.step(0.5 + 0.4 * done, f"running {entrants[k].name}, {turn + 1} of {turns}{each}")
            started = time.perf_counter_ns()
            executable.execute(arguments)
            elapsed = time.perf_counter_ns() - started
            if turn >= options.warmup:
                times[k].append(elapsed * _PICOSECONDS)
    profiles = [b""] * len(entrants)
    for k, executable in enumerate(executables if options.profile else ()):
        control.step(0.9 + 0.1 * k / len(entrants), f"profiling {entrants[k].name}")
        profiles[k] = _noted(executable.profile(arguments, min(options.repeats, PROFILED)), options)
    return Measurement(
        tuple(
            Timing(entrant.name, tuple(taken), executable.order, profile)
            for entrant, taken, executable, profile in zip(entrants, times, executables, profiles, strict=True)
        ),
        options.platform,
        1 if options.alone else first.header.devices,
        kind=executables[0].kind,
        alone=options.alone,
        notes=tuple(_notes(options)),
    )


def _forecast(module: Module, options: RunOptions, executions: int, control: Control) -> str:
    """What to add to what is said of the progress. Raises UsageError where the executions cannot end in time."""
    if options.platform != "cpu":
        return ""
    control.step(0.0, "looking how long a run takes")
    one = forecast(module, 1 if options.alone else module.header.devices, executions)
    if one is None:
        return ""
    check_ends(module.name, one, executions, options.deadline, "fewer repeats and less warm-up, a later deadline")
    return f", at least {duration_text(one.seconds)} each"


def _executable(entrant: Entrant, options: RunOptions) -> Executable:
    module = _tagged(entrant.module)
    proto, header = alone(module) if options.alone else (legalize(module), module.header)
    made = JobExecutable if options.as_job or options.platform != "cpu" else Executable
    return made(proto, header, entrant.orders)


def _notes(options: RunOptions) -> Iterator[str]:
    if options.alone:
        yield ALONE
    if options.platform == "cpu":
        yield "CPU devices run asynchronous operations synchronously: no overlap is measured."


def _noted(profile: bytes, options: RunOptions) -> bytes:
    """The profile with what its readers have to know."""
    if not options.alone:
        return profile
    space = XSpace.FromString(profile)
    space.warnings.append(ALONE)
    return space.SerializeToString()


def _tagged(module: Module) -> Module:
    """The module with every instruction's name in its op_name, by which profiles and orders know it again."""
    proto = HloModuleProto()
    proto.CopyFrom(module.proto)
    tag(proto)
    return replace(module, proto=proto)


def _inputs(module: Module, options: RunOptions) -> Iterator[Sequence[npt.NDArray[Any]]]:
    """Inputs of the devices that take part, parameter by parameter, so that what was placed need not be kept."""
    if options.inputs is None:
        uses = uses_of(legalize(module), module.header.num_partitions)
        header = replace(module.header, num_partitions=1, replica_count=1) if options.alone else module.header
        yield from inputs_one_by_one(module.proto, header, uses, options.seed, Draw())
        return
    given = load_inputs(options.inputs, module.proto, module.header)
    if given and not any(piece.any() for pieces in given for piece in pieces):
        raise InputError(f"{options.inputs}: all inputs are zero, which is faster than real data; give others or none")
    for pieces in given:
        yield pieces[:1] if options.alone else pieces
