"""Keeps a schedule in the making from the beginning completable within budget and memory cap.

The mirror image of `engine.schedule.guard`: what is not yet placed could always follow in a *safe order*. The first
unplaced node of the safe order may always come next.
"""

from __future__ import annotations

import numpy as np

from engine.ir.graph import Ints
from engine.schedule.instance import DONE, START, TOTAL, UNLIMITED, Instance
from engine.schedule.measure import in_flight
from engine.schedule.problem import positions
from engine.simulate.memory import live_bytes

_GONE = -(1 << 60)


class ForwardGuard:
    """Placements from the beginning; every node must be placed through `place`."""

    def __init__(self, instance: Instance, safe: list[int]) -> None:
        problem = instance.problem
        order = np.array(safe, np.int64)
        self._instance = instance
        self._safe = safe
        self._place: list[int] = positions(order).tolist()
        self._first = 0
        self._placed = bytearray(len(safe))
        memory = instance.memory
        self._live: Ints = live_bytes(problem.buffers, positions(order)) + np.array(memory.callee, np.int64)[order]
        """Bytes at each position of the safe order while it runs after what is placed."""
        self._readers_of = problem.buffers.readers
        self._begin = memory.fixed
        """Bytes live between what is placed and what is not."""
        by_kind, total = in_flight(problem, order)
        limited = [k for k in range(TOTAL + 1) if instance.limit[k] < UNLIMITED]
        columns = np.column_stack([by_kind, total])
        self._flights: list[tuple[int, int, Ints]] = [(k, instance.limit[k], columns[:, k].copy()) for k in limited]
        self._open = [0] * (TOTAL + 1)
        self._cap = UNLIMITED if problem.memory_cap is None else problem.memory_cap

    @property
    def next(self) -> int:
        """The first unplaced node of the safe order: it may always be placed."""
        while self._placed[self._safe[self._first]]:
            self._first += 1
        return self._safe[self._first]

    def place(self, node: int) -> bool:
        """Place `node` if everything can still be completed; False leaves all as it was."""
        if node != self.next and not self._may_fly(node):
            return False
        if not self._may_live(node, forced=node == self.next):
            return False
        self._fly(node)
        self._placed[node] = 1
        return True

    def _may_fly(self, node: int) -> bool:
        instance, at = self._instance, self._place[node]
        role, kind = instance.role[node], instance.kind[node]
        held = instance.held.get(node)
        for key, limit, flying in self._flights:
            opens = role == START and key in (kind, TOTAL)
            if self._open[key] + opens + (held[key] if held else 0) > limit:
                return False
            if opens and int(flying[:at].max(initial=0)) + 1 > limit:
                return False
        return True

    def _fly(self, node: int) -> None:
        role, kind, at = self._instance.role[node], self._instance.kind[node], self._place[node]
        for key, _, flying in self._flights:
            flying[at] = _GONE
            if key not in (kind, TOTAL):
                continue
            if role == START:
                flying[:at] += 1
                self._open[key] += 1
            elif role == DONE:
                flying[:at] -= 1
                self._open[key] -= 1

    def _may_live(self, node: int, *, forced: bool) -> bool:
        """Account for the buffers of `node`; False, with nothing changed, where that would go over the cap."""
        memory, at, live = self._instance.memory, self._place[node], self._live
        size = memory.size
        made = sum([size[b] for b in memory.defines[node]])
        kept = sum([size[b] for b in memory.defines[node] if memory.readers[b]])
        over = self._begin + made + memory.callee[node] > self._cap
        if not forced and (over or int(live[:at].max(initial=0)) + kept > self._cap):
            return False
        live[:at] += kept
        live[at] = _GONE
        self._begin += kept
        for b in memory.reads[node]:
            if memory.live_out[b]:
                continue
            last = max((self._place[r] for r in self._unplaced_readers(b, node)), default=-1)
            if last < at:
                live[last + 1 : at] -= size[b]
            if last < 0:
                self._begin -= size[b]
        return True

    def _unplaced_readers(self, buffer: int, node: int) -> list[int]:
        return [r for r in self._readers_of.of(buffer).tolist() if not self._placed[r] and r != node]
