"""What no order of a computation can beat, transfers not sharing anything."""

from __future__ import annotations

from engine.schedule.instance import DONE, TOTAL, UNLIMITED, Instance
from engine.schedule.problem import Problem


def lower_bound(problem: Problem) -> int:
    """Picoseconds: the most of compute work, the longest path, and transfers over how many may be in flight."""
    instance = Instance.of(problem)
    return max(sum(instance.duration), critical_path(instance), _budget_bound(instance))


def critical_path(instance: Instance) -> int:
    """Longest path, transfers included, in picoseconds."""
    return max(ends(instance), default=0)


def ends(instance: Instance) -> list[int]:
    """The earliest time at which each node can end, in picoseconds."""
    end = [0] * len(instance)
    for node, before in enumerate(instance.predecessors):
        begin = max([end[p] for p in before], default=0)
        if instance.role[node] == DONE:
            start = instance.partner[node]
            begin = max(begin, end[start] + instance.latency[node])
        end[node] = begin + instance.duration[node]
    return end


def tails(instance: Instance) -> list[int]:
    """Longest path from each node, itself included, to the end, in picoseconds."""
    tail = [0] * len(instance)
    for node in reversed(range(len(instance))):
        after = [
            tail[s] + (instance.latency[s] if instance.partner[s] == node else 0) for s in instance.successors[node]
        ]
        tail[node] = max(after, default=0) + instance.duration[node]
    return tail


def _budget_bound(instance: Instance) -> int:
    """Transfers of a kind, or of all, take at least their sum over how many may be in flight."""
    sums = [0] * (TOTAL + 1)
    for node, role in enumerate(instance.role):
        if role == DONE:
            sums[instance.kind[node]] += instance.latency[node]
            sums[TOTAL] += instance.latency[node]
    shares = [-(-total // limit) for total, limit in zip(sums, instance.limit, strict=True) if limit < UNLIMITED]
    return max(shares, default=0)
