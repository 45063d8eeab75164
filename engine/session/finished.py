"""What a compiled module takes by the costs that its compiler ends with.

A compiler schedules before it assigns memory, with costs that it replaces afterwards: einsums come to about half as
much then, and a few, which a window over padding makes look huge to it, to a sixtieth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from engine.cost.costs import Costs
from engine.ir.graph import Graph
from engine.ir.graphs import SEQUENTIAL
from engine.session.production import Produced
from engine.simulate.simulator import SimulationOptions, simulate

_ESTIMATE = re.compile(r'^ *(?:ROOT )?%?([\w.\-]+) = .*"estimated_cycles":"(\d+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Finished:
    """The same instructions in the same order, transfers as they were predicted, compute by the final estimates."""

    cycles: int
    covered: float
    """Share of the predicted compute cycles for which there is a final estimate; the rest stays as predicted."""


def finished(produced: Produced) -> Finished | None:
    """None where the compilation ended with the schedule, or the compiler writes no estimates."""
    estimates = {name: int(cycles) for name, cycles in _ESTIMATE.findall(produced.compiled.text)}
    if not estimates:
        return None
    program = produced.variant.program
    costs, covered, all_ = {}, 0, 0
    for id_, graph in program.graphs.items():
        known = _nodes(graph, estimates)
        costs[id_] = _with(program.costs[id_], known, produced.clock)
        covered += int(program.costs[id_].compute[list(known)].sum())
        all_ += int(program.costs[id_].compute.sum())
    options = SimulationOptions(sharing=False)
    makespan = simulate(replace(program, costs=costs), produced.variant.schedule, options).metrics.makespan
    return Finished(round(makespan * produced.clock / 1e6), covered / max(all_, 1))


def _nodes(graph: Graph, estimates: dict[str, int]) -> dict[int, int]:
    """Final cycles by node; a loop's are those of its body."""
    return {
        node: estimates[name]
        for node, name in enumerate(graph.names)
        if name in estimates and graph.opcodes[node] not in SEQUENTIAL
    }


def _with(costs: Costs, known: dict[int, int], clock: float) -> Costs:
    compute = costs.compute.copy()
    compute[list(known)] = np.array([round(cycles * 1e6 / clock) for cycles in known.values()], np.int64)
    compute.flags.writeable = False
    return replace(costs, compute=compute)
