"""The figures of a simulated program that variants are compared by."""

from __future__ import annotations

import numpy as np

from engine.cost.program import Program
from engine.hlo.hlo_pb2 import PrimitiveType
from engine.ir.module import Module
from engine.simulate.bounds import Bounds
from engine.simulate.run import ComputationRun
from engine.timeline.timeline import Metrics

_PRODUCTS = frozenset({"dot", "convolution", "ragged-dot"})


def metrics_of(program: Program, entry: ComputationRun, limits: Bounds) -> Metrics:
    """Metrics of one execution of the entry computation."""
    totals = entry.totals
    peak = program.machine.chip.peak(_main_dtype(program))
    return Metrics(
        makespan=totals.makespan,
        compute=totals.compute,
        comm=totals.comm,
        exposed=totals.exposed,
        transfer_union=totals.transfer_union,
        peak_memory=entry.peak,
        max_in_flight=entry.in_flight,
        flops=totals.flops,
        flops_utilization=totals.flops / (totals.makespan * 1e-12 * peak) if totals.makespan else 0.0,
        lower_bound=limits.best,
    )


def _main_dtype(program: Program) -> str:
    """XLA's name of the element type that most floating point operations are done in; ``bf16`` without any."""
    flops: dict[str, int] = {}
    for computation, graph in program.graphs.items():
        column = program.costs[computation].flops
        for node in np.flatnonzero(column).tolist():
            dtype = _dtype(program.module, int(graph.ids[node]))
            flops[dtype] = flops.get(dtype, 0) + int(column[node])
    return max(flops, key=lambda dtype: (flops[dtype], dtype), default="bf16")


def _dtype(module: Module, instruction: int) -> str:
    """Element type that an instruction multiplies in; of its first result where it has no products."""
    proto = module.instructions[instruction]
    if proto.opcode == "fusion":
        body = module.computations[proto.called_computation_ids[0]].instructions
        proto = next((i for i in body if i.opcode in _PRODUCTS), proto)
    shape = module.instructions[proto.operand_ids[0]].shape if proto.opcode in _PRODUCTS else proto.shape
    while shape.tuple_shapes:
        shape = shape.tuple_shapes[0]
    return PrimitiveType.Name(shape.element_type).lower()
