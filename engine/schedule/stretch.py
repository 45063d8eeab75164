"""The second half of the top-down scheduler: starts as early and dones as late as operands, users and limits allow."""

from __future__ import annotations

import numpy as np

from engine.ir.graph import Ints
from engine.schedule.instance import DONE, START, TOTAL, UNLIMITED, Instance
from engine.schedule.measure import in_flight, live_memory
from engine.schedule.problem import positions

Blocked = dict[int, int]
"""Node that was moved less far than dependencies allow → position of what the limits kept it from passing."""


def starts_early(instance: Instance, order: list[int]) -> tuple[list[int], Blocked]:
    """Move every start, first to last, up to the last node that it needs, as far as budget and cap allow."""
    return _Stretch(instance, order).earlier()


def dones_late(instance: Instance, order: list[int]) -> tuple[list[int], Blocked]:
    """Move every done, last to first, down to the first node that needs it, as far as budget and cap allow."""
    return _Stretch(instance, order).later()


class _Stretch:
    """What is in flight and in memory at each position of an order, while transfers in it are made longer."""

    def __init__(self, instance: Instance, order: list[int]) -> None:
        self._instance = instance
        self._order = order
        nodes = np.array(order, np.int64)
        place = positions(nodes)
        self._place: list[int] = place.tolist()
        by_kind, total = in_flight(instance.problem, nodes)
        self._flights = np.column_stack([by_kind, total])
        cap = instance.problem.memory_cap
        self._cap = UNLIMITED if cap is None else cap
        self._live = live_memory(instance.problem, nodes)

    def earlier(self) -> tuple[list[int], Blocked]:
        instance, place = self._instance, self._place
        blocked: Blocked = {}
        anchor = dict(enumerate(place))
        """Position right after which each node comes; its own where it stays."""
        for node in self._order:
            if instance.role[node] != START:
                continue
            here = place[node]
            allowed = max([anchor[p] for p in instance.predecessors[node]], default=-1)
            allowed = max(allowed, len(instance.parameters) - 1)
            size = sum([instance.memory.size[b] for b in instance.memory.defines[node]])
            reached = self._last_full(node, allowed + 1, here, size) if allowed + 1 < here else allowed
            if reached > allowed:
                blocked[node] = reached
            if reached + 1 < here:
                self._extend(node, reached + 1, here, size)
                anchor[node] = reached
        return self._sorted(anchor, after=True), blocked

    def later(self) -> tuple[list[int], Blocked]:
        instance, place = self._instance, self._place
        blocked: Blocked = {}
        anchor = dict(enumerate(place))
        end = len(self._order)
        for node in reversed(self._order):
            if instance.role[node] != DONE:
                continue
            here = place[node]
            allowed = min([anchor[s] for s in instance.successors[node]], default=end)
            size = self._held_by(node, allowed, anchor)
            reached = self._first_full(node, here + 1, allowed, size) if here + 1 < allowed else allowed
            if reached < allowed:
                blocked[node] = reached
            if reached - 1 > here:
                self._extend(node, here + 1, reached, size)
                anchor[node] = reached
        return self._sorted(anchor, after=False), blocked

    def _held_by(self, done: int, allowed: int, anchor: dict[int, int]) -> int:
        """Bytes that live on while a done moves down to `allowed`: what it reads and nothing at or after that does."""
        instance = self._instance
        size, readers = instance.memory.size, instance.problem.buffers.readers
        return sum(
            size[b]
            for b in instance.memory.reads[done]
            if not instance.memory.live_out[b] and all(anchor[r] < allowed for r in readers.of(b).tolist())
        )

    def _full(self, node: int, first: int, stop: int, size: int) -> Ints:
        """Positions, from `first`, before `stop`, where one more transfer in flight does not fit."""
        limit = self._instance.limit
        over = self._live[first:stop] + size > self._cap
        for key in (self._instance.kind[node], TOTAL):
            if limit[key] < UNLIMITED:
                over |= self._flights[first:stop, key] >= limit[key]
        return np.flatnonzero(over) + first

    def _last_full(self, node: int, first: int, stop: int, size: int) -> int:
        full = self._full(node, first, stop, size)
        return int(full[-1]) if len(full) else first - 1

    def _first_full(self, node: int, first: int, stop: int, size: int) -> int:
        full = self._full(node, first, stop, size)
        return int(full[0]) if len(full) else stop

    def _extend(self, node: int, first: int, stop: int, size: int) -> None:
        self._flights[first:stop, self._instance.kind[node]] += 1
        self._flights[first:stop, TOTAL] += 1
        self._live[first:stop] += size

    def _sorted(self, anchor: dict[int, int], *, after: bool) -> list[int]:
        """Nodes by anchor; what was moved comes right after (or before) the node it is anchored to, in order."""
        place = self._place
        moved = 1 if after else -1

        def key(node: int) -> tuple[int, int, int]:
            return anchor[node], 0 if anchor[node] == place[node] else moved, place[node]

        return sorted(anchor, key=key)
