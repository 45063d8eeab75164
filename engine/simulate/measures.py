"""The figures of a simulated program that variants are compared by."""

from __future__ import annotations

import numpy as np

from engine.cost.program import Program
from engine.ir.graph import Graph
from engine.ir.module import Module
from engine.simulate.bounds import Bounds
from engine.simulate.categories import content_of, dtype_name, is_product, operand_dtype
from engine.simulate.run import ComputationRun
from engine.timeline.timeline import Metrics


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
        nodes = np.flatnonzero(column)
        for node, count in zip(nodes.tolist(), column[nodes].tolist(), strict=True):
            dtype = _dtype(program.module, graph, node)
            flops[dtype] = flops.get(dtype, 0) + count
    return max(flops, key=lambda dtype: (flops[dtype], dtype), default="bf16")


def _dtype(module: Module, graph: Graph, node: int) -> str:
    """Element type that a node multiplies in; that of its first result where it has no products."""
    if graph.opcodes[node] == "fusion":
        found = content_of(module, int(graph.called.items[graph.called.starts[node]])).dtype
        if found is not None:
            return found
    instruction = module.instructions[int(graph.ids[node])]
    return operand_dtype(module, instruction) if is_product(instruction.opcode) else dtype_name(instruction.shape)
