"""The worker's part of a measurement."""

from __future__ import annotations

import time
from dataclasses import replace

from engine.control import Control
from engine.errors import InputError
from engine.execute.inputs import Draw, Inputs, draw_inputs, load_inputs
from engine.execute.legalize import legalize
from engine.execute.running import Executable
from engine.execute.timing import Entrant, Measurement, RunOptions, Timing
from engine.execute.tracing import uses_of
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.module import Module
from engine.profile.attribution import tag

PROFILED = 5
"""Executions that a profile holds at most: each has thousands of events."""

_PICOSECONDS = 1000
"""In a nanosecond."""


def measure_in_worker(entrants: tuple[Entrant, ...], options: RunOptions, *, control: Control) -> Measurement:
    """See `engine.execute.timing.measure`."""
    executables = []
    for k, entrant in enumerate(entrants):
        control.step(0.5 * k / len(entrants), f"compiling {entrant.name}")
        executables.append(Executable(legalize(_tagged(entrant.module)), entrant.module.header, entrant.orders))
    first = entrants[0].module
    arguments = executables[0].place(_inputs(first, options.seed, options.inputs))
    times: list[list[int]] = [[] for _ in entrants]
    turns = options.warmup + options.repeats
    for turn in range(turns):
        control.step(0.5 + 0.4 * turn / turns, f"running, {turn + 1} of {turns}")
        for k, executable in enumerate(executables):
            started = time.perf_counter_ns()
            executable.execute(arguments)
            elapsed = time.perf_counter_ns() - started
            if turn >= options.warmup:
                times[k].append(elapsed * _PICOSECONDS)
    profiles = [b""] * len(entrants)
    for k, executable in enumerate(executables if options.profile else ()):
        control.step(0.9 + 0.1 * k / len(entrants), f"profiling {entrants[k].name}")
        profiles[k] = executable.profile(arguments, min(options.repeats, PROFILED))
    notes = ("CPU devices run asynchronous operations synchronously: no overlap is measured.",)
    return Measurement(
        tuple(
            Timing(entrant.name, tuple(taken), executable.order, profile)
            for entrant, taken, executable, profile in zip(entrants, times, executables, profiles, strict=True)
        ),
        options.platform,
        first.header.devices,
        kind=executables[0].kind,
        notes=notes if options.platform == "cpu" else (),
    )


def _tagged(module: Module) -> Module:
    """The module with every instruction's name in its op_name, by which profiles and orders know it again."""
    proto = HloModuleProto()
    proto.CopyFrom(module.proto)
    tag(proto)
    return replace(module, proto=proto)


def _inputs(module: Module, seed: int, path: str | None) -> Inputs:
    if path is None:
        uses = uses_of(legalize(module), module.header.num_partitions)
        return draw_inputs(module.proto, module.header, uses, seed, Draw())
    given = load_inputs(path, module.proto, module.header)
    if given and not any(piece.any() for pieces in given for piece in pieces):
        raise InputError(f"{path}: all inputs are zero, which is faster than real data; give others or none")
    return given
