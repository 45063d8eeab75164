"""List scheduling from the beginning: what has been placed, and the time that it takes.

What is placed next is for subclasses to say, and where what could be placed lies until then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from engine.schedule.instance import DONE, START, TOTAL, Instance


class ForwardPass(ABC):
    """One order being put together. Times are picoseconds from the beginning; each transfer runs as if alone."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.order: list[int] = []
        """What has been placed."""
        self.now = 0
        """When the next node would begin."""
        self.flying = [0] * (TOTAL + 1)
        """Transfers in flight by kind, and in total."""
        self.arrival = [0] * len(instance)
        """When the transfer that a done waits for has arrived, once its start is placed."""
        self._left = [len(p) for p in instance.predecessors]

    @abstractmethod
    def push(self, node: int) -> None:
        """Keep `node`, which waits for nothing more, until it is its turn."""

    @abstractmethod
    def next(self) -> int:
        """What runs next; -1 where nothing may. The clock jumps where that has to be waited for."""

    def run(self) -> list[int] | None:
        """The whole order; None where the budget lets nothing more be placed."""
        for node, left in enumerate(self._left):
            if not left:
                self.push(node)
        while len(self.order) < len(self._left):
            node = self.next()
            if node < 0:
                return None
            self.place(node)
        return self.order

    def place(self, node: int) -> None:
        """Run `node` now, and keep what then waits for nothing more."""
        instance, flying = self.instance, self.flying
        role, kind, duration = instance.role[node], instance.kind[node], instance.duration[node]
        self.order.append(node)
        if role == START:
            flying[kind] += 1
            flying[TOTAL] += 1
            done = instance.partner[node]
            self.arrival[done] = self.now + duration + instance.latency[done]
        elif role == DONE:
            flying[kind] -= 1
            flying[TOTAL] -= 1
        self.now += duration
        left = self._left
        for successor in instance.successors[node]:
            left[successor] -= 1
            if not left[successor]:
                self.push(successor)

    def fits(self, node: int) -> bool:
        """Whether what a caller holds in flight inside is within the budget, next to what is in flight."""
        held = self.instance.held[node]
        return all(f + h <= most for f, h, most in zip(self.flying, held, self.instance.limit, strict=True))

    def rather_waits(self, time: int, under_way: list[tuple[int, int]]) -> bool:
        """Whether waiting for the next arrival costs less than what `time` of compute would keep a start from it.

        `under_way` is a heap of (arrival, node or place).
        """
        if not under_way:
            return False
        gap = under_way[0][0] - self.now
        return time - gap > gap
