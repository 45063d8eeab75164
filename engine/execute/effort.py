"""How long a run will take on CPU devices, told before it starts: models for accelerators take hours there."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt, prod

import jax
import jax.numpy as jnp
import numpy as np

from engine.errors import UsageError
from engine.hlo.hlo_pb2 import HloInstructionProto, PrimitiveType, ShapeProto
from engine.ir import shapes
from engine.ir.module import Module
from engine.ir.trips import trips_of
from engine.quantities import count_text

SHORT = 1e11
"""Operations of a whole run that are not worth a forecast: seconds."""

SIDE = 1024
"""Of the square matrices whose product is timed."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the einsums of one execution take at least."""

    operations: int
    """Multiplications and additions on all devices together, loops by their trips."""
    rate: float
    """Of them a second that the machine reaches on a large product of matrices, all cores together."""

    @property
    def seconds(self) -> float:
        return self.operations / self.rate


def forecast(module: Module, devices: int, executions: int) -> Forecast | None:
    """For a run of `module` on `devices` devices of this machine; None for a short one, which is not worth it."""
    by_type = operations(module)
    total = sum(by_type.values()) * devices
    if total * executions < SHORT:
        return None
    return Forecast(total, _rate(max(by_type, key=lambda element_type: by_type[element_type])))


def check_ends(name: str, one: Forecast, executions: int, deadline: float, instead: str) -> None:
    """Raises UsageError, with what to take `instead`, where `executions` alone take longer than `deadline` seconds."""
    if one.seconds * executions <= deadline:
        return
    raise UsageError(
        f"one execution of {name} is {count_text(one.operations)} multiplications and additions in einsums alone, "
        f"{duration_text(one.seconds)} at the {count_text(one.rate)} a second that this machine reaches now; "
        f"{executions} executions take {duration_text(one.seconds * executions)}, but the deadline is "
        f"{duration_text(deadline)}. Take {instead}, or a smaller version of the module (shorter batch, fewer layers)"
    )


def operations(module: Module) -> Mapping[PrimitiveType, int]:
    """Multiplications and additions of the einsums in one execution on one device, by element type of the result: at
    least so many, since of branches the one with the fewest counts."""
    trips, _ = trips_of(module)
    known: dict[int, Counter[PrimitiveType]] = {}
    for computation in module.proto.computations:  # callees first
        total: Counter[PrimitiveType] = Counter()
        for instruction in computation.instructions:
            times = trips.get(instruction.id, 1)
            called = [known.get(id_, Counter[PrimitiveType]()) for id_ in instruction.called_computation_ids]
            for counts in [min(called, key=Counter.total)] if instruction.opcode == "conditional" else called:
                for element_type, count in counts.items():
                    total[element_type] += times * count
            if instruction.opcode in ("dot", "convolution"):
                left, right = (module.instructions[o].shape for o in instruction.operand_ids[:2])
                total[instruction.shape.element_type] += _of_einsum(instruction, left, right)
        known[computation.id] = total
    return known[module.proto.entry_computation_id]


def duration_text(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.3g} h"


def _of_einsum(instruction: HloInstructionProto, left: ShapeProto, right: ShapeProto) -> int:
    result = shapes.element_count(instruction.shape)
    if instruction.opcode == "dot":
        return (
            2 * result * prod(left.dimensions[d] for d in instruction.dot_dimension_numbers.lhs_contracting_dimensions)
        )
    return 2 * isqrt(shapes.element_count(left) * shapes.element_count(right) * result)


def _rate(element_type: PrimitiveType) -> float:
    """Operations a second of one product of square matrices; the better of two."""
    dtype = shapes.numpy_dtype(element_type) if shapes.is_floating(element_type) else np.dtype(np.float32)
    device = jax.local_devices()[0]
    with jax.default_device(device):
        matrix = jnp.ones((SIDE, SIDE), dtype)
        product = jax.jit(jnp.matmul)
        product(matrix, matrix).block_until_ready()
        taken = []
        for _ in range(2):
            started = time.perf_counter()
            product(matrix, matrix).block_until_ready()
            taken.append(time.perf_counter() - started)
    return float(2 * SIDE**3 / min(taken))
