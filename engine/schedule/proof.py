"""How far a schedule can at most be from the best there is, from the bounds that a scheduler proved."""

from __future__ import annotations

from collections.abc import Mapping

from engine.cost.program import Program
from engine.schedule.problem import Schedule
from engine.simulate.run import ComputationRun


def proven_bound(program: Program, schedule: Schedule, runs: Mapping[int, ComputationRun]) -> int | None:
    """Picoseconds that no order of `program` can beat within the budget; None where nothing was proven.

    A caller's bound was proven with its callees as they are scheduled. Were each of them as fast as its own bound, the
    caller would lose at most the time by which they would: the compute stream runs one thing at a time.
    """
    slack: dict[int, int] = {}
    bound: int | None = None
    for computation in program.graphs:
        bound = schedule.orders[computation].bound
        if bound is None:
            return None
        bound = max(0, bound - _faster_callees(program, computation, slack))
        slack[computation] = max(0, runs[computation].makespan - bound)
    return bound


def _faster_callees(program: Program, computation: int, slack: Mapping[int, int]) -> int:
    """By how much one execution could be shorter if every callee took its `slack` less."""
    graph = program.graphs[computation]
    saved = 0
    for node, opcode in enumerate(graph.opcodes):
        called = [slack[c] for c in graph.called.of(node).tolist() if c in slack]
        if not called:
            continue
        if opcode == "while":
            saved += (program.trips[int(graph.ids[node])] + 1) * sum(called)
        else:
            saved += max(called) if opcode == "conditional" else sum(called)
    return saved
