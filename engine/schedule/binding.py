"""Which transfers the budget kept waiting, for how long, and what was in flight meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.chips.budget import KIND_PLURALS, Budget, Kind
from engine.cost.program import Program
from engine.ir.graph import Ints
from engine.schedule.as_loaded import AsLoaded
from engine.schedule.instance import TOTAL, UNLIMITED, limits
from engine.schedule.measure import in_flight
from engine.schedule.problem import Problem, Schedule, positions
from engine.schedule.programs import called_by
from engine.simulate.run import ComputationRun

ALL_KINDS = "operations"
"""What a limit for all kinds together counts."""


@dataclass(frozen=True, slots=True)
class Held:
    """A start that could have come earlier but for the budget."""

    instruction: int
    """Id of the start."""
    wait: int
    """Picoseconds, in one execution of its computation: since when what it needs was there and the budget used up,
    without a break until there was room."""
    limit: int
    """How many may be in flight of what is counted."""
    counted: str
    """What is counted: ``permutes``, or `ALL_KINDS` where the limit is for all kinds together."""
    holders: tuple[int, ...]
    """Ids of what was in flight when it could not start: starts, and loops or calls that hold some."""


def held_back(program: Program, schedule: Schedule, runs: Mapping[int, ComputationRun]) -> tuple[Held, ...]:
    """Every start of `program` that the budget kept waiting under `schedule`, longest first.

    `runs` are those of the schedule's simulation. Nothing for the order a module was loaded with: it knows no budget.
    """
    if schedule.scheduler == AsLoaded.name:
        return ()
    found = [held for computation in program.graphs for held in _of_one(program, schedule, computation, runs)]
    return tuple(sorted(found, key=lambda held: -held.wait))


def _of_one(program: Program, schedule: Schedule, computation: int, runs: Mapping[int, ComputationRun]) -> list[Held]:
    problem = _problem(program, computation, runs, schedule.budget)
    order = schedule.orders[computation].nodes
    graph, n = problem.graph, len(problem.graph)
    starts = np.flatnonzero(graph.partner > np.arange(n))
    most = limits(problem)
    if not len(starts) or all(limit >= UNLIMITED for limit in most):
        return []
    place = positions(order)
    by_kind, total = in_flight(problem, order)
    count = np.column_stack([by_kind, total])
    full = count >= np.array(most)
    reached = np.append(runs[computation].reached[order], runs[computation].makespan)
    stretches = {key: _stretches(full[:, key] | full[:, TOTAL]) for key in set(problem.kind[starts].tolist())}
    found = []
    for start in starts.tolist():
        kind, at = int(problem.kind[start]), int(place[start])
        ready = int(place[problem.predecessors.of(start)].max(initial=-1)) + 1
        last, first = stretches[kind]
        end = int(last[at - 1]) if at > ready else -1
        if end < ready:
            continue
        begin = max(int(first[end]), ready)
        wait = int(reached[end + 1] - reached[begin])
        if wait > 0:
            key = kind if full[end, kind] else TOTAL
            holders = _holders(problem, order, place, starts, start, end, key)
            counted = KIND_PLURALS[Kind(key)] if key != TOTAL else ALL_KINDS
            found.append(Held(int(graph.ids[start]), wait, most[key], counted, tuple(graph.ids[holders].tolist())))
    return found


def _problem(program: Program, computation: int, runs: Mapping[int, ComputationRun], budget: Budget) -> Problem:
    """What counts for the budget; neither costs nor hints are asked."""
    costs, called = program.costs[computation], called_by(program, computation, runs)
    return Problem(
        graph=program.graphs[computation],
        compute=costs.compute,
        transfer=costs.transfer,
        kind=costs.kind,
        held=called.held,
        held_total=called.held_total,
        buffers=program.buffers[computation],
        budget=budget,
    )


def _stretches(full: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[Ints, Ints]:
    """For each position the last one up to it that is full (-1 for none), and the first of the stretch it is in."""
    place = np.arange(len(full))
    last = np.maximum.accumulate(np.where(full, place, -1))
    first = np.maximum.accumulate(np.where(full, -1, place)) + 1
    return last, first


def _holders(problem: Problem, order: Ints, place: Ints, starts: Ints, start: int, at: int, key: int) -> list[int]:
    """What is in flight at a position, of one kind or (`TOTAL`) of all, in the order in which it started."""
    partner = problem.graph.partner
    inside = (place[starts] <= at) & (at <= place[partner[starts]]) & (starts != start)
    if key != TOTAL:
        inside &= problem.kind[starts] == key
    found = starts[inside]
    found = found[np.argsort(place[found])]
    running = int(order[at])
    return [*found.tolist(), *([running] if problem.held[running].any() else [])]
