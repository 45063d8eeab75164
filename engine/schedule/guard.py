"""Keeps a schedule in the making completable within budget and memory cap, from whichever end it is made.

What is not yet placed could always be run in a *safe order*: one that is within budget and cap as a whole. A guard
knows what that would hold in flight and in memory at each of its positions, refuses a placement that would push it
over a limit, and so never lets a scheduler get stuck: one end of what is left of the safe order may always come next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from engine.ir.graph import Ints
from engine.schedule.instance import TOTAL, UNLIMITED, Instance
from engine.schedule.measure import in_flight, live_memory
from engine.schedule.problem import positions

GONE = -(1 << 60)
"""At positions of the safe order whose node is placed: so little that it is never the most."""


class Guard(ABC):
    """Placements from one end; every node must be placed through `place`."""

    def __init__(self, instance: Instance, safe: list[int], *, opening: int, closing: int) -> None:
        """`opening` and `closing` are the roles that begin and end a transfer as seen from the end placed from."""
        problem = instance.problem
        order = np.array(safe, np.int64)
        self._instance = instance
        self._safe = safe
        self._place: list[int] = positions(order).tolist()
        self._placed = bytearray(len(safe))
        self._opening, self._closing = opening, closing
        self._live = live_memory(problem, order)
        """Bytes at each position of the safe order while it runs without what is placed."""
        self._readers_of = problem.buffers.readers
        by_kind, total = in_flight(problem, order)
        limited = [k for k in range(TOTAL + 1) if instance.limit[k] < UNLIMITED]
        columns = np.column_stack([by_kind, total])
        self._flights: list[tuple[int, int, Ints]] = [(k, instance.limit[k], columns[:, k].copy()) for k in limited]
        """(kind or total, limit, in flight at each position)."""
        self._open = [0] * (TOTAL + 1)
        self._cap = UNLIMITED if problem.memory_cap is None else problem.memory_cap

    @property
    @abstractmethod
    def next(self) -> int:
        """The unplaced node at the end of the safe order that is placed from: it may always be placed."""

    def place(self, node: int) -> bool:
        """Place `node` if everything can still be completed; False leaves all as it was."""
        forced = node == self.next
        if not forced and not self._may_fly(node):
            return False
        if not self._may_live(node, forced=forced):
            return False
        self._fly(node)
        self._placed[node] = 1
        return True

    @abstractmethod
    def _beyond(self, place: int) -> slice:
        """The positions of the safe order that would come after `place`, seen from the end placed from, placed last."""

    @abstractmethod
    def _may_live(self, node: int, *, forced: bool) -> bool:
        """Account for the buffers of `node`; False, with nothing changed, where that would go over the cap."""

    def _may_fly(self, node: int) -> bool:
        instance, beyond = self._instance, self._beyond(self._place[node])
        kind, held = instance.kind[node], instance.held.get(node)
        opens = instance.role[node] == self._opening
        for key, limit, flying in self._flights:
            opened = opens and key in (kind, TOTAL)
            if self._open[key] + opened + (held[key] if held else 0) > limit:
                return False
            if opened and int(flying[beyond].max(initial=0)) + 1 > limit:
                return False
        return True

    def _fly(self, node: int) -> None:
        role, kind, at = self._instance.role[node], self._instance.kind[node], self._place[node]
        change = 1 if role == self._opening else -1 if role == self._closing else 0
        for key, _, flying in self._flights:
            flying[at] = GONE
            if change and key in (kind, TOTAL):
                flying[self._beyond(at)] += change
                self._open[key] += change
