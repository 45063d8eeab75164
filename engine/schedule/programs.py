"""Schedules whole programs: callees before callers, computations that are alike once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.chips.budget import Budget, Kind
from engine.control import QUIET, Control
from engine.cost.program import Program
from engine.schedule.problem import Loads, Order, Problem, Schedule, Scheduler
from engine.simulate.plan import call_makespan
from engine.simulate.run import ComputationRun
from engine.simulate.simulator import simulate_computation


def schedule_program(
    program: Program,
    scheduler: Scheduler,
    budget: Budget,
    *,
    memory_cap: int | None = None,
    control: Control = QUIET,
) -> Schedule:
    """Order every computation of `program`.

    Callees come first: a caller sees how long they take and what they hold in flight. Raises Infeasible when no order
    fits the budget or the cap (bytes of the whole program).
    """
    orders: dict[int, Order] = {}
    runs: dict[int, ComputationRun] = {}
    entry = list(program.graphs)[-1]
    for position, (computation, graph) in enumerate(program.graphs.items()):
        part = control.part(position / len(program.graphs), (position + 1) / len(program.graphs))
        part.step(0.0, f"scheduling {graph.name}")
        problem = problem_of(program, computation, runs, budget, memory_cap if computation == entry else None)
        orders[computation] = scheduler.schedule(problem, part)
        if computation != entry:
            runs[computation] = simulate_computation(program, computation, orders[computation], runs)
    return Schedule(scheduler.name, budget, orders)


def problem_of(
    program: Program,
    computation: int,
    runs: Mapping[int, ComputationRun],
    budget: Budget,
    memory_cap: int | None = None,
) -> Problem:
    """One computation of `program` as a problem; `runs` are those of the computations that it calls."""
    graph, costs = program.graphs[computation], program.costs[computation]
    n = len(graph)
    compute = costs.compute.copy()
    held = np.zeros((n, len(Kind)), np.int64)
    held_total, callee_peak = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for node in np.flatnonzero(np.diff(graph.called.starts)).tolist():
        called = [runs[int(c)] for c in graph.called.of(node) if int(c) in runs]
        if not called:
            continue
        compute[node] += call_makespan(program, graph, node, runs)
        held[node] = np.max([run.held for run in called], axis=0)
        held_total[node] = max(run.in_flight for run in called)
        callee_peak[node] = max(run.extra for run in called)
    return Problem(
        graph=graph,
        compute=compute,
        transfer=costs.transfer,
        kind=costs.kind,
        held=held,
        buffers=program.buffers[computation],
        budget=budget,
        memory_cap=memory_cap,
        callee_peak=callee_peak,
        held_total=held_total,
        loads=Loads(costs.load_start, costs.load_link, costs.load_bytes),
    )
