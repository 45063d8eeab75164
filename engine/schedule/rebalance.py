"""The first half of the top-down scheduler: enough compute between each start and its done, by run-time cost."""

from __future__ import annotations

from heapq import heappop, heappush

from engine.schedule.forward_guard import ForwardGuard
from engine.schedule.instance import DONE, START, TOTAL, Instance

_DEEPEST = 100
"""How many transfers are ended for each other's sake before a node is taken to find no room."""


def rebalance(instance: Instance, given: list[int], *, guarded: bool = False) -> list[int]:
    """Walk the order `given`; after each start put what is next in it, until that takes as long as the transfer.

    What a start needs comes right before it; what it does not need and its predecessor's transfer has no use for comes
    later, where it can fill the next interval. Dones come when something needs them, when their place in flight is
    wanted, or at the end. `guarded` keeps the result within budget and memory cap, as `given` is; else it may not be.
    """
    return _Walk(instance, given, ForwardGuard(instance, given) if guarded else None).run()


class _Walk:
    def __init__(self, instance: Instance, given: list[int], guard: ForwardGuard | None) -> None:
        self._instance = instance
        self._given = given
        self._place = [0] * len(given)
        for position, node in enumerate(given):
            self._place[node] = position
        self._left = [len(p) for p in instance.predecessors]
        self._placed = bytearray(len(given))
        self._ready: list[int] = []
        """Positions in `given` of what could be placed and is neither a start nor a done."""
        self._in_flight: dict[int, int] = {}
        """Dones whose start is placed, oldest first, and when their transfer is over."""
        self._ending: set[int] = set()
        """Dones that are being put, to make room for what others of them need."""
        self._flying = [0] * (TOTAL + 1)
        self._order: list[int] = []
        self._now = 0
        self._guard = guard

    def run(self) -> list[int]:
        instance = self._instance
        for node in instance.parameters:
            self._put(node)
        for node, left in enumerate(self._left):
            if not left and not self._placed[node] and not instance.role[node]:
                heappush(self._ready, self._place[node])
        for node in self._given:
            if instance.role[node] == START and not self._placed[node] and self._need(node):
                self._fill(self._now + instance.latency[instance.partner[node]])
        while len(self._order) < len(self._given):
            before = len(self._order)
            self._fill(None)
            if self._in_flight and self._need(next(iter(self._in_flight))):
                continue
            if len(self._order) == before:
                self._put(self._next())
        return self._order

    def _next(self) -> int:
        """What may always be put: the first of what is left of the given order."""
        return next(node for node in self._given if not self._placed[node])

    def _fill(self, until: int | None) -> None:
        """Put what is next in the given order until the clock reaches `until`; what the limits refuse waits."""
        later: list[int] = []
        while self._ready and (until is None or self._now < until):
            position = heappop(self._ready)
            node = self._given[position]
            if not self._placed[node] and not (self._make_room(node) and self._put(node)):
                later.append(position)
        for position in later:
            if not self._placed[self._given[position]]:
                heappush(self._ready, position)

    def _need(self, node: int) -> bool:
        """Put `node` after everything that it needs, in the given order; False where the limits refuse something."""
        for needed in sorted(self._ancestors(node), key=self._place.__getitem__):
            if not self._placed[needed] and not (self._make_room(needed) and self._put(needed)):
                return False
        return True

    def _ancestors(self, node: int) -> set[int]:
        """What is not yet placed and comes before `node`, itself included."""
        found = {node}
        stack = [node]
        while stack:
            for p in self._instance.predecessors[stack.pop()]:
                if not self._placed[p] and p not in found:
                    found.add(p)
                    stack.append(p)
        return found

    def _make_room(self, node: int) -> bool:
        """End transfers, the oldest first, until `node` fits the budget; False where it was put on the way.

        Two transfers may each need something that only the other's end has room for: neither is begun anew.
        """
        if len(self._ending) == _DEEPEST:
            return not self._placed[node]
        for done in list(self._in_flight):
            if self._fits(node):
                break
            if done in self._in_flight and done not in self._ending and node not in self._ancestors(done):
                self._ending.add(done)
                self._need(done)
                self._ending.remove(done)
        return not self._placed[node]

    def _fits(self, node: int) -> bool:
        instance, flying, limit = self._instance, self._flying, self._instance.limit
        if instance.role[node] == START:
            kind = instance.kind[node]
            return flying[kind] < limit[kind] and flying[TOTAL] < limit[TOTAL]
        held = instance.held.get(node)
        return held is None or all(f + h <= m for f, h, m in zip(flying, held, limit, strict=True))

    def _put(self, node: int) -> bool:
        """Put `node` last, unless the guard refuses it."""
        instance = self._instance
        if self._guard is not None and not self._guard.place(node):
            return False
        self._placed[node] = 1
        self._order.append(node)
        if instance.role[node] == START:
            done = instance.partner[node]
            self._in_flight[done] = self._now + instance.duration[node] + instance.latency[done]
            self._fly(node, 1)
        elif instance.role[node] == DONE:
            self._now = max(self._now, self._in_flight.pop(node))
            self._fly(node, -1)
        self._now += instance.duration[node]
        for s in instance.successors[node]:
            self._left[s] -= 1
            if not self._left[s] and not instance.role[s] and not self._placed[s]:
                heappush(self._ready, self._place[s])
        return True

    def _fly(self, node: int, step: int) -> None:
        self._flying[self._instance.kind[node]] += step
        self._flying[TOTAL] += step
