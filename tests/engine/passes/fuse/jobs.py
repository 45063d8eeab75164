"""What the fusion tests run in a worker."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from engine import worker
from engine.control import Control
from engine.execute.environment import environment
from engine.execute.legalize import legalize
from engine.execute.running import Executable
from engine.ir.module import Module

Array = npt.NDArray[Any]


def run(modules: list[Module], inputs: list[list[Array]]) -> list[list[Array]]:
    """Result leaves of each one-device module, given its parameters."""
    made = worker.call(
        "tests.engine.passes.fuse.jobs:run_in_worker",
        modules,
        inputs,
        environment=environment(1, "cpu", 20.0),
        deadline=120.0,
    )
    assert isinstance(made, list)
    return made


def run_in_worker(modules: list[Module], inputs: list[list[Array]], *, control: Control) -> list[list[Array]]:
    results = []
    for number, (module, given) in enumerate(zip(modules, inputs, strict=True)):
        control.step(number / len(modules), module.name)
        executable = Executable(legalize(module), module.header)
        results.append([np.asarray(leaf[0]) for leaf in executable.run([[a] for a in given])])
    return results
