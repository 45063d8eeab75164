"""The worker's part of a measurement."""

from __future__ import annotations

import time

from engine.control import Control
from engine.errors import InputError
from engine.execute.inputs import Draw, Inputs, draw_inputs, load_inputs
from engine.execute.legalize import legalize
from engine.execute.running import Executable
from engine.execute.timing import Measurement, Timing
from engine.execute.tracing import uses_of
from engine.ir.module import Module

_PICOSECONDS = 1000
"""In a nanosecond."""


def measure_in_worker(
    modules: tuple[Module, ...],
    repeats: int,
    warmup: int,
    seed: int,
    platform: str,
    inputs: str | None,
    *,
    control: Control,
) -> Measurement:
    """See `engine.execute.timing.measure`."""
    executables = []
    for k, module in enumerate(modules):
        control.step(0.3 * k / len(modules), f"compiling {module.name}")
        executables.append(Executable(legalize(module), module.header))
    given = _inputs(modules[0], seed, inputs)
    arguments = executables[0].place(given)
    times: list[list[int]] = [[] for _ in modules]
    for turn in range(warmup + repeats):
        control.step(0.3 + 0.7 * turn / (warmup + repeats), f"running, {turn + 1} of {warmup + repeats}")
        for k, executable in enumerate(executables):
            started = time.perf_counter_ns()
            executable.execute(arguments)
            elapsed = time.perf_counter_ns() - started
            if turn >= warmup:
                times[k].append(elapsed * _PICOSECONDS)
    notes = ("CPU devices run asynchronous operations synchronously: no overlap is measured.",)
    return Measurement(
        tuple(Timing(module.name, tuple(t)) for module, t in zip(modules, times, strict=True)),
        platform,
        modules[0].header.devices,
        notes if platform == "cpu" else (),
    )


def _inputs(module: Module, seed: int, path: str | None) -> Inputs:
    if path is None:
        uses = uses_of(legalize(module), module.header.num_partitions)
        return draw_inputs(module.proto, module.header, uses, seed, Draw())
    given = load_inputs(path, module.proto, module.header)
    if given and not any(piece.any() for pieces in given for piece in pieces):
        raise InputError(f"{path}: all inputs are zero, which is faster than real data; give others or none")
    return given
