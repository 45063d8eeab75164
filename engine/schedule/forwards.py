"""A pass from the beginning over a finished order: starts as early as the budget allows, dones when they have arrived.

The backward pass leaves a transfer only as much time as it needs; where its estimate was short, or where it had to
stall, starting earlier hides more. This is the second half of forward-backward improvement, known from
resource-constrained project scheduling (Li and Willis, 1992), with the first order as its priorities.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from engine.ir.graph import Ints
from engine.schedule.backwards import FORWARD_PASS
from engine.schedule.instance import DONE, START, TOTAL, Instance
from engine.schedule.measure import makespan, peak_memory
from engine.schedule.problem import Decisions, Loads, Order, positions
from engine.schedule.sharing import shared_makespan


def shift_forwards(instance: Instance, nodes: Ints, decisions: Decisions, loads: Loads | None = None) -> Order:
    """The order that a forward pass makes of `nodes`, if it is faster and within the cap; else `nodes`.

    With `loads`, faster when transfers share the links that they load.
    """
    given = nodes.tolist()
    before = _time(instance, given, loads)
    if before == sum(instance.duration):
        return Order(nodes, decisions)
    tried = [forward_order(instance, given), forward_order(instance, given, patient=True)]
    timed = [(_time(instance, order, loads), order) for order in tried if order is not None]
    after, order = min(timed, default=(before, given))
    if after >= before:
        return Order(nodes, decisions)
    moved = np.array(order, np.int64)
    cap = instance.problem.memory_cap
    if cap is not None and peak_memory(instance.problem, moved) > cap:
        return Order(nodes, decisions)
    rule = decisions.rule.copy()
    rule[_displaced(positions(moved), positions(nodes), instance)] = FORWARD_PASS
    return Order(moved, Decisions(rule, decisions.beat, decisions.waited_for, decisions.rules))


def _time(instance: Instance, order: list[int], loads: Loads | None) -> int:
    return makespan(instance, order) if loads is None else shared_makespan(instance, order, loads)


def forward_order(instance: Instance, given: list[int], *, patient: bool = False) -> list[int] | None:
    """List scheduling from the beginning: starts first, then what has not to wait, by place in `given`.

    `patient`: rather than begin something that would keep a start much longer from the place in flight that it waits
    for, nothing runs until the next arrival. None where the budget lets nothing more be placed.
    """
    n = len(instance)
    role, kind, partner, limit = instance.role, instance.kind, instance.partner, instance.limit
    place = [0] * n
    for position, node in enumerate(given):
        place[node] = position
    left = [len(p) for p in instance.predecessors]
    arrival = [0] * n
    flying = [0] * (TOTAL + 1)
    starts: list[list[int]] = [[] for _ in range(TOTAL)]
    plain: list[int] = []
    under_way: list[tuple[int, int]] = []
    holders: list[int] = []
    order: list[int] = []
    now = 0

    def push(node: int) -> None:
        if role[node] == START:
            heappush(starts[kind[node]], place[node])
        elif role[node] == DONE:
            heappush(under_way, (arrival[node], place[node]))
        elif node in instance.held:
            holders.append(node)
        else:
            heappush(plain, place[node])

    for node in range(n):
        if not left[node]:
            push(node)
    first = len(instance.parameters)
    while len(order) < n:
        while under_way and under_way[0][0] <= now:
            heappush(plain, heappop(under_way)[1])
        node, blocked = -1, False
        if len(order) >= first and flying[TOTAL] < limit[TOTAL]:
            heads = [starts[k][0] for k in range(TOTAL) if starts[k] and flying[k] < limit[k]]
            if heads:
                node = given[min(heads)]
                heappop(starts[kind[node]])
            blocked = patient and not heads and any(starts)
        elif patient:
            blocked = any(starts)
        if node < 0:
            fitting = [h for h in holders if _fits(instance, h, flying)]
            held = min(fitting, key=place.__getitem__, default=-1)
            if held >= 0 and (not plain or place[held] < plain[0]):
                node = held
                holders.remove(held)
            elif plain and not (blocked and rather_waits(instance.duration[given[plain[0]]], under_way, now)):
                node = given[heappop(plain)]
            elif under_way:
                node = given[heappop(under_way)[1]]
                now = arrival[node]
            else:
                return None
        order.append(node)
        if role[node] == START:
            flying[kind[node]] += 1
            flying[TOTAL] += 1
            done = partner[node]
            arrival[done] = now + instance.duration[node] + instance.latency[done]
        elif role[node] == DONE:
            flying[kind[node]] -= 1
            flying[TOTAL] -= 1
        now += instance.duration[node]
        for s in instance.successors[node]:
            left[s] -= 1
            if not left[s]:
                push(s)
    return order


def rather_waits(time: int, under_way: list[tuple[int, int]], now: int) -> bool:
    """Whether waiting for the next arrival costs less than what `time` of compute would keep a start from it."""
    if not under_way:
        return False
    gap = under_way[0][0] - now
    return time - gap > gap


def _fits(instance: Instance, node: int, flying: list[int]) -> bool:
    held = instance.held[node]
    return all(f + h <= most for f, h, most in zip(flying, held, instance.limit, strict=True))


def _displaced(after: Ints, before: Ints, instance: Instance) -> Ints:
    """Starts and dones that came to be earlier or later among the compute that they do not wait for."""
    transfers = np.flatnonzero(np.array(instance.role, np.int64))
    displaced: Ints = transfers[after[transfers] != before[transfers]]
    return displaced
