"""What an order comes to: makespan, in flight, peak memory, and whether it keeps the rules.

Times agree with `engine.simulate` where transfers share nothing: one in-order compute stream, a transfer begins at the
end of its start, a done waits for the end of the transfer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.chips.budget import Kind
from engine.ir.graph import Ints
from engine.schedule.instance import DONE, START, TOTAL, Instance
from engine.schedule.problem import Problem, positions
from engine.simulate.memory import live_bytes


def makespan(instance: Instance, order: Sequence[int]) -> int:
    """Picoseconds from the first node to the end of the last."""
    role, duration, latency, partner = instance.role, instance.duration, instance.latency, instance.partner
    depart = [0] * len(duration)
    now = 0
    for node in order:
        part = role[node]
        if part == START:
            depart[node] = now + duration[node]
        elif part == DONE:
            arrival = depart[partner[node]] + latency[node]
            if arrival > now:
                now = arrival
        now += duration[node]
    return now


def begin_times(instance: Instance, order: Sequence[int]) -> tuple[list[int], list[int]]:
    """When the compute stream comes to each node and how long it then waits for a transfer, both by node."""
    role, duration, latency, partner = instance.role, instance.duration, instance.latency, instance.partner
    begin, wait = [0] * len(duration), [0] * len(duration)
    now = 0
    for node in order:
        begin[node] = now
        if role[node] == DONE:
            start = partner[node]
            wait[node] = max(0, begin[start] + duration[start] + latency[node] - now)
        now += wait[node] + duration[node]
    return begin, wait


def in_flight(problem: Problem, order: Ints) -> tuple[Ints, Ints]:
    """In flight while each node runs, what it calls included: by kind, shape [n, kinds], and in total, shape [n].

    Indexed by position.
    """
    n = len(problem.graph)
    partner, place = problem.graph.partner, positions(order)
    starts = np.flatnonzero(partner > np.arange(n))
    kind = problem.kind[starts].astype(np.int64)
    change = np.zeros((n + 1, len(Kind)), np.int64)
    np.add.at(change, (place[starts], kind), 1)
    np.add.at(change, (place[partner[starts]] + 1, kind), -1)
    own = np.cumsum(change, axis=0)[:-1]
    totals = problem.held.sum(axis=1) if problem.held_total is None else problem.held_total
    return own + problem.held[order], own.sum(axis=1) + totals[order]


def fits_budget(instance: Instance, order: Ints) -> bool:
    """Whether an order never has more in flight than the budget allows."""
    by_kind, total = in_flight(instance.problem, order)
    most = [*by_kind.max(axis=0, initial=0).tolist(), int(total.max(initial=0))]
    return all(count <= limit for count, limit in zip(most, instance.limit, strict=True))


def live_memory(problem: Problem, order: Ints) -> Ints:
    """Bytes live while each node runs, what the caller owns and what callees need included; by position, shape [n]."""
    live = live_bytes(problem.buffers, positions(order))
    return live if problem.callee_peak is None else live + problem.callee_peak[order]


def peak_memory(problem: Problem, order: Ints) -> int:
    """Bytes live at the worst moment, as `live_memory` counts them."""
    return int(live_memory(problem, order).max(initial=0))


def broken_rule(problem: Problem, order: Ints) -> str | None:
    """What an order violates, in words; None for a valid one: topological, within budget and cap, groups unbroken."""
    n = len(problem.graph)
    if len(order) != n or not np.array_equal(np.sort(order), np.arange(n)):
        return f"it is not an order of the {n} instructions"
    place = positions(order)
    owners = np.repeat(np.arange(n), np.diff(problem.predecessors.starts))
    late = np.flatnonzero(place[problem.predecessors.items] > place[owners])
    if len(late):
        before, after = int(problem.predecessors.items[late[0]]), int(owners[late[0]])
        return f"{problem.graph.names[after]} comes before {problem.graph.names[before]}, which it needs"
    by_kind, total = in_flight(problem, order)
    most = [*by_kind.max(axis=0, initial=0).tolist(), int(total.max(initial=0))]
    for kind, limit in [*problem.budget.by_kind, (TOTAL, problem.budget.total)]:
        if limit is not None and most[kind] > limit:
            return f"{most[kind]} operations are in flight, but the budget is {problem.budget}"
    if problem.memory_cap is not None and (peak := peak_memory(problem, order)) > problem.memory_cap:
        return f"its peak of {peak} bytes is over the cap of {problem.memory_cap}"
    return _broken_group(problem, place)


def _broken_group(problem: Problem, place: Ints) -> str | None:
    for members in problem.groups:
        inside = place[members]
        if int(inside.max() - inside.min()) + 1 != len(inside):
            return f"the scheduling group of {problem.graph.names[int(members[0])]} is interrupted"
    return None
