"""The top-down scheduler: along the input order, starts early and dones late."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.control import Control
from engine.schedule.errors import Infeasible
from engine.schedule.instance import DONE, START, TOTAL, Instance
from engine.schedule.memory import post_order
from engine.schedule.problem import Order, Problem


@dataclass(frozen=True)
class TopDown:
    """The seed's top-down scheduler."""

    name: ClassVar[str] = "top-down"

    def schedule(self, problem: Problem, control: Control) -> Order:
        instance = Instance.of(problem)
        return Order(np.array(_schedule(instance, post_order(instance)), np.int64))


def _schedule(instance: Instance, given: list[int]) -> list[int]:
    """Starts as soon as they may, dones when nothing else may run."""
    n = len(instance)
    rank = {START: 0, DONE: 2}
    place = [0] * n
    for position, node in enumerate(given):
        place[node] = position
    left = [len(p) for p in instance.predecessors]

    def key(node: int) -> tuple[int, int]:
        return rank.get(instance.role[node], 1), place[node]

    queue = [(*key(k), k) for k in range(n) if not left[k]]
    heapq.heapify(queue)
    flying = [0] * (TOTAL + 1)
    order: list[int] = []
    while queue:
        skipped = []
        while queue and not _fits(instance, queue[0][2], flying):
            skipped.append(heapq.heappop(queue))
        if not queue:
            raise Infeasible(f"{instance.problem.graph.name} does not fit a budget of {instance.problem.budget}")
        node = heapq.heappop(queue)[2]
        for entry in skipped:
            heapq.heappush(queue, entry)
        order.append(node)
        if instance.role[node] in (START, DONE):
            step = 1 if instance.role[node] == START else -1
            flying[instance.kind[node]] += step
            flying[TOTAL] += step
        for s in instance.successors[node]:
            left[s] -= 1
            if not left[s]:
                heapq.heappush(queue, (*key(s), s))
    return order


def _fits(instance: Instance, node: int, flying: list[int]) -> bool:
    if instance.role[node] == START:
        kind = instance.kind[node]
        return flying[kind] < instance.limit[kind] and flying[TOTAL] < instance.limit[TOTAL]
    held = instance.held.get(node)
    return held is None or all(f + h <= most for f, h, most in zip(flying, held, instance.limit, strict=True))
