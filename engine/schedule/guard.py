"""Keeps a schedule in the making completable within budget and memory cap.

While a scheduler places nodes from the end backwards, what is not yet placed could always be run in a *safe order*
first: one that is within budget and cap as a whole. The guard knows what that would hold in flight and in memory at
each of its positions, refuses a placement that would push it over a limit, and so never lets a scheduler get stuck:
the last unplaced node of the safe order may always come next.
"""

from __future__ import annotations

import numpy as np

from engine.ir.graph import Ints
from engine.schedule.instance import DONE, START, TOTAL, UNLIMITED, Instance
from engine.schedule.measure import in_flight
from engine.schedule.problem import positions
from engine.simulate.memory import live_bytes

_GONE = -(1 << 60)


class Guard:
    """Placements from the end backwards; every node must be placed through `place`."""

    def __init__(self, instance: Instance, safe: list[int]) -> None:
        problem = instance.problem
        order = np.array(safe, np.int64)
        self._instance = instance
        self._safe = safe
        self._place: list[int] = positions(order).tolist()
        self._last = len(safe) - 1
        self._placed = bytearray(len(safe))
        memory = instance.memory
        self._live: Ints = live_bytes(problem.buffers, positions(order)) + np.array(memory.callee, np.int64)[order]
        """Bytes at each position of the safe order while it runs without what is placed."""
        self._readers_of = problem.buffers.readers
        self._carried = list(memory.live_out)
        """By buffer: whether something placed (or the caller) reads it, so that it lives on after what is unplaced."""
        self._end = memory.fixed + sum(s for s, out in zip(memory.size, memory.live_out, strict=True) if out)
        """Bytes live after what is unplaced."""
        by_kind, total = in_flight(problem, order)
        limited = [k for k in range(TOTAL + 1) if instance.limit[k] < UNLIMITED]
        columns = np.column_stack([by_kind, total])
        self._flights: list[tuple[int, int, Ints]] = [(k, instance.limit[k], columns[:, k].copy()) for k in limited]
        """(kind or total, limit, in flight at each position)."""
        self._open = [0] * (TOTAL + 1)
        self._cap = UNLIMITED if problem.memory_cap is None else problem.memory_cap

    @property
    def next(self) -> int:
        """The last unplaced node of the safe order: it may always be placed."""
        while self._placed[self._safe[self._last]]:
            self._last -= 1
        return self._safe[self._last]

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
            concerned = key in (kind, TOTAL)
            here = self._open[key] + (1 if role == DONE and concerned else 0) + (held[key] if held else 0)
            if here > limit:
                return False
            if role == DONE and concerned and int(flying[at + 1 :].max(initial=0)) + 1 > limit:
                return False
        return True

    def _fly(self, node: int) -> None:
        role, kind, at = self._instance.role[node], self._instance.kind[node], self._place[node]
        for key, _, flying in self._flights:
            flying[at] = _GONE
            if key not in (kind, TOTAL):
                continue
            if role == DONE:
                flying[at + 1 :] += 1
                self._open[key] += 1
            elif role == START:
                flying[at:] -= 1
                self._open[key] -= 1

    def _may_live(self, node: int, *, forced: bool) -> bool:
        """Account for the buffers of `node`; False, with nothing changed, where that would go over the cap."""
        memory, at, live = self._instance.memory, self._place[node], self._live
        removed = [b for b in memory.defines[node] if self._carried[b]]
        made = sum(memory.size[b] for b in memory.defines[node])
        carried = sum(memory.size[b] for b in removed)
        added = [(b, self._last_reader(b)) for b in memory.reads[node] if not self._carried[b]]
        more = sum(memory.size[b] for b, _ in added)
        saved = live[at]
        live[at] = _GONE
        if carried:
            live[at + 1 :] -= carried
        for b, last in added:
            live[last + 1 :] += memory.size[b]
        here = self._end - carried + more + made + memory.callee[node]
        lowest = min([last for _, last in added], default=len(live))
        over = here > self._cap or int(live[lowest + 1 :].max(initial=0)) > self._cap
        if over and not forced:
            for b, last in added:
                live[last + 1 :] -= memory.size[b]
            if carried:
                live[at + 1 :] += carried
            live[at] = saved
            return False
        for b, _ in added:
            self._carried[b] = True
        self._end += more - carried
        return True

    def _last_reader(self, buffer: int) -> int:
        """Position up to which `buffer` lives while what is unplaced runs in the safe order."""
        unplaced = [r for r in self._readers_of.of(buffer).tolist() if not self._placed[r]]
        return max((self._place[r] for r in unplaced), default=len(self._safe) - 1)
