"""Orders made from a sequence of transfers: with few in flight, which goes first decides the most.

A sequence is a permutation of the starts. It is decoded from the beginning: the next start goes as soon as it may;
until then runs what the nearest start in the sequence needs, then what lies on the longest path.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from heapq import heappop, heappush

from engine.schedule.bounds import tails
from engine.schedule.forward_pass import ForwardPass
from engine.schedule.instance import DONE, START, TOTAL, Instance

Key = tuple[int, float, int]
"""What runs first: (turn of the nearest start that needs it, longest path to the end, negated, node)."""


class Sequencing:
    """Search over sequences by exchanging and moving transfers in them."""

    def __init__(self, instance: Instance, seed: int) -> None:
        self._instance = instance
        self._random = random.Random(seed)
        self._tail = tails(instance)
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
        n = len(self._instance)
        turn = {node: k for k, node in enumerate(sequence)}
        urgency = [min([turn[s] for s in self._before[node]], default=n) for node in range(n)]
        tail: list[float] = list(self._tail)
        if shuffled:
            draw = self._random.random
            tail = [t * (0.3 + 0.7 * draw()) for t in tail]
            urgency = [n if draw() < 0.5 else u for u in urgency]
        keys: list[Key] = [(urgency[node], -tail[node], node) for node in range(n)]
        for node in self._instance.parameters:
            keys[node] = (-2, 0, node)
        return _Decoding(self._instance, turn, keys, strict=strict, patient=patient).run()


class _Decoding(ForwardPass):
    """One sequence on its way to an order."""

    def __init__(
        self, instance: Instance, turn: dict[int, int], keys: list[Key], *, strict: bool, patient: bool
    ) -> None:
        super().__init__(instance)
        self._turn = turn
        self._keys = keys
        self._strict, self._patient = strict, patient
        self._starts: list[tuple[int, int]] = []
        """(turn, node)."""
        self._plain: list[Key] = []
        """What has not to wait: dones whose transfer has arrived are among them, before all else."""
        self._under_way: list[tuple[int, int]] = []
        """(arrival, node) of the other dones."""
        self._started = 0

    def push(self, node: int) -> None:
        role = self.instance.role[node]
        if role == START:
            heappush(self._starts, (self._turn[node], node))
        elif role == DONE:
            heappush(self._under_way, (self.arrival[node], node))
        else:
            heappush(self._plain, self._keys[node])

    def next(self) -> int:
        instance, plain, under_way = self.instance, self._plain, self._under_way
        while under_way and under_way[0][0] <= self.now:
            heappush(plain, (-1, 0, heappop(under_way)[1]))
        blocked = False
        if self._may_start():
            first = self._starts[0][1]
            kind, limit = instance.kind[first], instance.limit
            if self.flying[TOTAL] < limit[TOTAL] and self.flying[kind] < limit[kind]:
                heappop(self._starts)
                self._started += 1
                return first
            blocked = self._patient
        if plain and self._runs_now(plain[0][2], blocked):
            return heappop(plain)[2]
        if not under_way:
            return -1
        self.now, node = heappop(under_way)
        return node

    def _runs_now(self, node: int, blocked: bool) -> bool:
        """Whether `node` is run rather than the next arrival waited for; `blocked`: a start waits for that."""
        if node in self.instance.held and not self.fits(node):
            return False
        return not (blocked and self.rather_waits(self.instance.duration[node], self._under_way))

    def _may_start(self) -> bool:
        """Whether the nearest start there is comes next in the sequence, or may overtake."""
        if not self._starts or len(self.order) < len(self.instance.parameters):
            return False
        return not self._strict or self._starts[0][0] == self._started


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
