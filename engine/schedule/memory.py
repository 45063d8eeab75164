"""Orders of small peak memory: what the other schedulers start from, so that lifetimes stay close to it."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.control import Control
from engine.schedule.backwards import Backwards
from engine.schedule.facts import Facts
from engine.schedule.instance import DONE, Instance
from engine.schedule.measure import fits_budget, peak_memory
from engine.schedule.problem import Order, Problem
from engine.schedule.ranking import Ranking
from engine.schedule.rules import Policy
from engine.schedule.search import order_within

_TRIES = 4
"""How often an order is squeezed at most."""


def post_order(instance: Instance) -> list[int]:
    """Depth first from the root, operands as they come."""
    return _depth_first(instance, instance.predecessors)


def largest_first(instance: Instance) -> list[int]:
    """Depth first from the root; of a node's operands first the one under which the most bytes are made.

    Bytes that are large have then been reduced before the small ones are made (as Sethi and Ullman number registers).
    """
    memory = instance.memory
    below = [0] * len(instance)
    for node, before in enumerate(instance.predecessors):
        made = sum([memory.size[b] for b in memory.defines[node]])
        below[node] = made + max([below[p] for p in before], default=0)
    by_size = [sorted(before, key=below.__getitem__, reverse=True) for before in instance.predecessors]
    return _depth_first(instance, by_size)


def _depth_first(instance: Instance, operands: Sequence[Sequence[int]]) -> list[int]:
    """Parameters, then a post-order from the root and what it does not need; a start right before its done."""
    order = instance.parameters.copy()
    entered = bytearray(len(instance))
    for node in order:
        entered[node] = 2
    role, partner = instance.role, instance.partner
    sinks = [n for n in range(len(instance)) if not instance.successors[n]]
    for sink in [instance.problem.graph.root, *sinks]:
        stack = [sink]
        while stack:
            node = stack[-1]
            if entered[node]:
                stack.pop()
                if entered[node] == 1:
                    entered[node] = 2
                    order.append(node)
                continue
            entered[node] = 1
            if role[node] == DONE:
                stack.append(partner[node])
                stack.extend([p for p in reversed(operands[node]) if p != partner[node]])
            else:
                stack.extend(reversed(operands[node]))
    return order


def list_order(instance: Instance) -> list[int]:
    """Greedy: of what is ready, the one that frees the most bytes beyond those it makes; of equal ones the latest made
    ready, so that the chain at hand is finished first."""
    memory, n = instance.memory, len(instance)
    size, reads, defines = memory.size, memory.reads, memory.defines
    unread = memory.readers.copy()
    last = [0] * len(size)
    for node, buffers in enumerate(reads):
        for b in buffers:
            last[b] ^= node
    gain = [-sum([size[b] for b in made]) for made in defines]
    for b, count in enumerate(unread):
        if count == 1 and not memory.live_out[b]:
            gain[last[b]] += size[b]
    left = [len(p) for p in instance.predecessors]
    order = instance.parameters.copy()
    done = bytearray(n)
    ready: list[tuple[int, int, int]] = []
    clock = 0

    def place(node: int) -> None:
        nonlocal clock
        done[node] = 1
        for s in instance.successors[node]:
            left[s] -= 1
            if not left[s]:
                clock -= 1
                heapq.heappush(ready, (-gain[s], clock, s))
        for b in reads[node]:
            unread[b] -= 1
            last[b] ^= node
            if unread[b] == 1 and not memory.live_out[b]:
                reader = last[b]
                gain[reader] += size[b]
                if not left[reader] and not done[reader]:
                    clock -= 1
                    heapq.heappush(ready, (-gain[reader], clock, reader))

    for node in range(n):
        if not left[node] and instance.problem.graph.opcodes[node] != "parameter":
            heapq.heappush(ready, (-gain[node], node, node))
    for node in order:
        place(node)
    while ready:
        _, _, node = heapq.heappop(ready)
        if not done[node]:
            order.append(node)
            place(node)
    return order


def backward_list_order(instance: Instance) -> list[int]:
    """Greedy from the end: of what could come last, the one that leaves the fewest bytes live before it; of equal ones
    the latest made ready."""
    memory, n = instance.memory, len(instance)
    size, reads, defines = memory.size, memory.reads, memory.defines
    alive = bytearray(memory.live_out)
    readers: list[list[int]] = [[] for _ in size]
    for node, buffers in enumerate(reads):
        for b in buffers:
            readers[b].append(node)
    added = [sum([size[b] for b in buffers if not alive[b]]) for buffers in reads]
    left = [len(s) for s in instance.successors]
    fixed = set(instance.parameters)
    placed = bytearray(n)
    order: list[int] = []
    ready: list[tuple[int, int, int]] = []
    clock = 0

    def push(node: int) -> None:
        nonlocal clock
        clock -= 1
        freed = sum([size[b] for b in defines[node] if alive[b]])
        heapq.heappush(ready, (added[node] - freed, clock, node))

    for node in range(n):
        if not left[node] and node not in fixed:
            push(node)
    while ready:
        _, _, node = heapq.heappop(ready)
        if placed[node]:
            continue
        placed[node] = 1
        order.append(node)
        for b in reads[node]:
            if not alive[b]:
                alive[b] = 1
                for reader in readers[b]:
                    added[reader] -= size[b]
                    if not left[reader] and not placed[reader]:
                        push(reader)
        for p in instance.predecessors[node]:
            left[p] -= 1
            if not left[p] and p not in fixed:
                push(p)
    return instance.parameters + order[::-1]


METHODS: tuple[Callable[[Instance], list[int]], ...] = (post_order, largest_first, list_order, backward_list_order)


def input_order(instance: Instance) -> list[int]:
    """The order of the smallest peak among `METHODS`, within the budget and the memory cap.

    Where none of them is, memory rules and a search look for one. Raises Infeasible when there is none.
    """
    best, least = _least(instance)
    cap = instance.problem.memory_cap
    if best is not None and cap is not None and least > cap:
        best, least = squeezed(instance, best, least)
    if best is None or (cap is not None and least > cap):
        return order_within(instance, best, least)
    return best


def squeezed(instance: Instance, order: list[int], peak: int) -> tuple[list[int], int]:
    """An order of a smaller peak, and that peak: by the bottom-up rules, with the memory rules in force from the start.

    It is the given one, of `peak` bytes, where they find none; each that is found is the cap of another try.
    """
    ranking = Ranking.of(Facts.of(instance, order), frozenset({Policy.ALWAYS, Policy.MEMORY}))
    best, least = order, peak
    for _ in range(_TRIES):
        backwards = Backwards(instance, ranking, least)
        if not backwards.run() or backwards.peak >= least:
            break
        best, least = backwards.order[::-1], backwards.peak
    return best, least


def _least(instance: Instance) -> tuple[list[int] | None, int]:
    """The order of the smallest peak among `METHODS` that are within the budget, and the peak; None where none is."""
    best: list[int] | None = None
    least = 0
    for method in METHODS:
        order = method(instance)
        nodes = np.array(order, np.int64)
        if fits_budget(instance, nodes):
            peak = peak_memory(instance.problem, nodes)
            if best is None or peak < least:
                best, least = order, peak
    return best, least


@dataclass(frozen=True)
class Memory:
    """Orders instructions for the smallest peak memory that depth-first and list orders find."""

    name: ClassVar[str] = "memory"

    def schedule(self, problem: Problem, control: Control) -> Order:
        control.step(0.0, f"finding an order of small peak memory for {problem.graph.name}")
        return Order(np.array(input_order(Instance.of(problem)), np.int64))
