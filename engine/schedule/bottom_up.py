"""The bottom-up scheduler: from the roots backwards, transfers opened at their dones and closed at their starts."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.control import Control
from engine.schedule.errors import Infeasible
from engine.schedule.instance import DONE, PLAIN, START, TOTAL, Instance
from engine.schedule.problem import Order, Problem


@dataclass(frozen=True)
class BottomUp:
    """The seed's bottom-up list scheduler."""

    name: ClassVar[str] = "bottom-up"

    def schedule(self, problem: Problem, control: Control) -> Order:
        return Order(np.array(_schedule(Instance.of(problem))[::-1], np.int64))


def _schedule(instance: Instance) -> list[int]:
    n = len(instance)
    left = [len(s) for s in instance.successors]
    ready_at = [0] * n
    depth = [0] * n
    for node in range(n):
        before = max((depth[p] for p in instance.predecessors[node]), default=0)
        depth[node] = before + instance.duration[node] + instance.latency[node]
    flying = [0] * (TOTAL + 1)
    queue = [((instance.role[k] != DONE, -depth[k], -k), k) for k in range(n) if not left[k]]
    heapq.heapify(queue)
    pending: list[tuple[int, int]] = []
    order: list[int] = []
    now = 0
    while len(order) < n:
        while pending and pending[0][0] <= now:
            k = heapq.heappop(pending)[1]
            heapq.heappush(queue, ((instance.role[k] != DONE, -depth[k], -k), k))
        skipped = []
        chosen = -1
        while queue:
            entry = heapq.heappop(queue)
            if _fits(instance, entry[1], flying):
                chosen = entry[1]
                break
            skipped.append(entry)
        for entry in skipped:
            heapq.heappush(queue, entry)
        if chosen < 0:
            if not pending:
                raise Infeasible(f"{instance.problem.graph.name} does not fit a budget of {instance.problem.budget}")
            now = pending[0][0]
            continue
        order.append(chosen)
        role, kind = instance.role[chosen], instance.kind[chosen]
        if role != PLAIN:
            step = 1 if role == DONE else -1
            flying[kind] += step
            flying[TOTAL] += step
        now += instance.duration[chosen]
        for p in instance.predecessors[chosen]:
            left[p] -= 1
            if role == DONE and p == instance.partner[chosen]:
                ready_at[p] = now + instance.latency[chosen]
            if not left[p]:
                if instance.role[p] == START and ready_at[p] > now:
                    heapq.heappush(pending, (ready_at[p], p))
                else:
                    heapq.heappush(queue, ((instance.role[p] != DONE, -depth[p], -p), p))
    return order


def _fits(instance: Instance, node: int, flying: list[int]) -> bool:
    if instance.role[node] == DONE:
        kind = instance.kind[node]
        return flying[kind] < instance.limit[kind] and flying[TOTAL] < instance.limit[TOTAL]
    held = instance.held.get(node)
    return held is None or all(f + h <= most for f, h, most in zip(flying, held, instance.limit, strict=True))
