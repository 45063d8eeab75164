"""Orders made from a sequence of transfers: with few in flight, which goes first decides the most.

A sequence is a permutation of the starts. It is decoded from the beginning: the next start goes as soon as it may;
until then runs what the nearest start in the sequence needs, then what lies on the longest path.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from heapq import heappop, heappush

from engine.schedule.forwards import rather_waits
from engine.schedule.instance import DONE, START, TOTAL, Instance


class Sequencing:
    """Search over sequences by exchanging and moving transfers in them."""

    def __init__(self, instance: Instance, seed: int) -> None:
        self._instance = instance
        self._random = random.Random(seed)
        self._tail = _tails(instance)
        self._before = _start_ancestors(instance)

    def search(
        self, order: list[int], score: Callable[[list[int]], int | None], progress: Callable[[], float], enough: int
    ) -> list[int]:
        """The best order found before `progress` reaches 1; `score` gives its picoseconds, None where it is invalid."""
        draw = self._random
        best = order
        first = score(order)
        assert first is not None
        fastest = now = first
        sequence = [node for node in order if self._instance.role[node] == START]
        if len(sequence) < 2:
            return best
        while progress() < 1.0 and fastest > enough:
            for _ in range(16):
                tried = sequence.copy()
                node = tried.pop(draw.randrange(len(tried)))
                tried.insert(draw.randrange(len(tried) + 1), node)
                made = self.decode(
                    tried, strict=draw.random() < 0.7, shuffled=draw.random() < 0.5, patient=draw.random() < 0.5
                )
                time = None if made is None else score(made)
                if made is None or time is None:
                    continue
                if time <= now or draw.random() < 0.05:
                    sequence, now = tried, time
                if time < fastest:
                    best, fastest = made, time
        return best

    def decode(
        self, sequence: list[int], *, strict: bool, shuffled: bool = False, patient: bool = False
    ) -> list[int] | None:
        """The order that a sequence stands for, or None where the budget stops it.

        `strict` lets no start overtake; `shuffled` weighs at random what is urgent and how long paths are; `patient`
        rather waits for a place in flight than begins something that would keep the next start much longer.
        """
        instance = self._instance
        n = len(instance)
        duration = instance.duration
        role, kind, partner, limit, held = (
            instance.role, instance.kind, instance.partner, instance.limit, instance.held,
        )  # fmt: skip
        turn = {node: k for k, node in enumerate(sequence)}
        urgency = [min([turn[s] for s in self._before[node]], default=n) for node in range(n)]
        tail: list[float] = list(self._tail)
        if shuffled:
            draw = self._random.random
            tail = [t * (0.3 + 0.7 * draw()) for t in tail]
            urgency = [n if draw() < 0.5 else u for u in urgency]
        keys = [(urgency[node], -tail[node], node) for node in range(n)]
        for node in instance.parameters:
            keys[node] = (-2, 0, node)
        left = [len(p) for p in instance.predecessors]
        flying = [0] * (TOTAL + 1)
        starts: list[tuple[int, int]] = []
        plain: list[tuple[int, float, int]] = []
        under_way: list[tuple[int, int]] = []
        arrival = [0] * n
        order: list[int] = []
        now = waiting = 0

        def push(node: int) -> None:
            if role[node] == START:
                heappush(starts, (turn[node], node))
            elif role[node] == DONE:
                heappush(under_way, (arrival[node], node))
            else:
                heappush(plain, keys[node])

        for node in range(n):
            if not left[node]:
                push(node)
        while len(order) < n:
            while under_way and under_way[0][0] <= now:
                heappush(plain, (-1, 0, heappop(under_way)[1]))
            node, blocked = -1, False
            if len(order) >= len(instance.parameters) and starts and (not strict or starts[0][0] == waiting):
                first = starts[0][1]
                if flying[TOTAL] < limit[TOTAL] and flying[kind[first]] < limit[kind[first]]:
                    node = first
                    heappop(starts)
                else:
                    blocked = True
            if node < 0 and plain and not (patient and blocked and rather_waits(duration[plain[0][2]], under_way, now)):
                node = heappop(plain)[2]
                own = held.get(node)
                if own is not None and any(f + h > m for f, h, m in zip(flying, own, limit, strict=True)):
                    return None
            if node < 0 and under_way:
                now, node = heappop(under_way)
            if node < 0:
                return None
            order.append(node)
            if role[node] == START:
                waiting += 1
                flying[kind[node]] += 1
                flying[TOTAL] += 1
                arrival[partner[node]] = now + instance.duration[node] + instance.latency[partner[node]]
            elif role[node] == DONE:
                flying[kind[node]] -= 1
                flying[TOTAL] -= 1
            now += instance.duration[node]
            for s in instance.successors[node]:
                left[s] -= 1
                if not left[s]:
                    push(s)
        return order


def _tails(instance: Instance) -> list[int]:
    """Longest path from each node, itself included, to the end, in picoseconds."""
    tail = [0] * len(instance)
    for node in reversed(range(len(instance))):
        waits = [instance.latency[s] if instance.partner[s] == node else 0 for s in instance.successors[node]]
        after = max([tail[s] + w for s, w in zip(instance.successors[node], waits, strict=True)], default=0)
        tail[node] = after + instance.duration[node]
    return tail


def _start_ancestors(instance: Instance) -> list[list[int]]:
    """For each node the starts that need it and are reached without passing another transfer."""
    found: list[set[int]] = [set() for _ in range(len(instance))]
    for node in reversed(range(len(instance))):
        for s in instance.successors[node]:
            if instance.role[s] == START:
                found[node].add(s)
            else:
                found[node] |= found[s]
    return [sorted(starts) for starts in found]
