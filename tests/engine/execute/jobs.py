"""What the execution tests run in a worker."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from engine import worker
from engine.control import Control
from engine.execute.environment import environment
from engine.execute.inputs import Draw, Inputs, draw_inputs, widened
from engine.execute.legalize import legalize
from engine.execute.running import Executable
from engine.execute.tracing import uses_of
from engine.execute.widening import widen
from engine.hlo.reading import read_here
from engine.ir.module import Module

Results = list[list[npt.NDArray[Any]]]


def run(module: Module, *, wide: bool = False) -> tuple[Inputs, Results]:
    """Random inputs and what the module makes of them, by leaf and device; in float64 if `wide`."""
    made = worker.call(
        "tests.engine.execute.jobs:run_in_worker",
        module,
        wide,
        environment=environment(module.header.devices, "cpu", 20.0),
        deadline=60.0,
    )
    assert isinstance(made, tuple)
    return made


def run_text(text: str, *, wide: bool = False) -> tuple[Inputs, Results]:
    return run(read_here(text.encode()), wide=wide)


def run_in_worker(module: Module, wide: bool, *, control: Control) -> tuple[Inputs, Results]:
    proto = legalize(module)
    inputs = draw_inputs(module.proto, module.header, uses_of(proto, module.header.num_partitions), 0, Draw())
    if wide:
        proto, inputs = widen(proto), widened(inputs)
    return inputs, Executable(proto, module.header).run(inputs)


def by_device(arrays: Results) -> list[list[npt.NDArray[Any]]]:
    """From [leaf][device] to [device][leaf]."""
    return [list(pieces) for pieces in zip(*arrays, strict=True)]


def close(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    return a.shape == b.shape and bool(np.allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), atol=1e-5))
