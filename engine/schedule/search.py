"""Orders within a budget and a memory cap where the usual ones are not: depth-first search, and what would be feasible.

What never harms is placed without a choice: a done, an instruction that frees at least what it makes, a transfer whose
done can follow at once. Only the rest is branched on, and sets of placed instructions that led nowhere are remembered.
"""

from __future__ import annotations

import numpy as np

from engine.chips.budget import Budget, Kind
from engine.quantities import bytes_text
from engine.schedule.errors import Infeasible
from engine.schedule.instance import PLAIN, START, TOTAL, UNLIMITED, Instance
from engine.schedule.measure import peak_memory

STEPS = 20_000
"""How many placements a search tries before it gives up."""

PROBES, PROBE_STEPS = 16, 4_000
"""How many caps are tried when the least peak is looked for, and how many placements for each."""

LARGEST = 2_000
"""Instructions up to which an order under a memory cap is searched for."""


def order_within(instance: Instance, fallback: list[int] | None, fallback_peak: int) -> list[int]:
    """An order within the budget and the cap. `fallback` is one within the budget, of a peak over the cap, if known.

    Raises Infeasible and names the smallest budget, or the least peak, for which an order was found.
    """
    problem = instance.problem
    cap = problem.memory_cap
    found = find_order(instance, instance.limit, cap)
    if found is not None:
        return found
    if fallback is None and find_order(instance, instance.limit, None) is None:
        budget = smallest_budget(instance)
        raise Infeasible(
            f"no order of {problem.graph.name} keeps {problem.budget.in_words()}, since some must "
            f"overlap; the smallest budget that an order fits is {budget}",
            smallest_budget=str(budget),
        )
    peak = least_peak(instance, fallback_peak if fallback is not None else None)
    raise Infeasible(
        f"no order of {problem.graph.name} stays under a memory cap of {bytes_text(cap or 0)} with "
        f"{problem.budget.in_words()}; the least peak found is {bytes_text(peak)} ({peak:,} bytes)",
        least_peak=peak,
    )


def smallest_budget(instance: Instance) -> Budget:
    """The given budget with its limits raised as little as possible, the total first, so that some order fits."""
    given = instance.problem.budget
    limit = [UNLIMITED] * (TOTAL + 1)
    keys = [TOTAL, *(kind for kind, _ in given.by_kind)] if given.total is not None else [k for k, _ in given.by_kind]
    for key in keys:
        limit[key] = instance.limit[key]
        while find_order(instance, limit, None) is None:
            limit[key] += 1
    total = limit[TOTAL] if given.total is not None else None
    return Budget(total, tuple((Kind(kind), limit[kind]) for kind, _ in given.by_kind))


def least_peak(instance: Instance, known: int | None) -> int:
    """The smallest peak memory, in bytes, for which an order within the budget is found. `known` is one that is."""
    high = known
    if high is None:
        high = instance.memory.fixed + sum(instance.memory.size) + max(instance.memory.callee, default=0)
    low = max(instance.problem.memory_cap or 0, unavoidable(instance) - 1)
    for _ in range(PROBES):
        if low + 1 >= high:
            break
        middle = (low + high) // 2
        found = find_order(instance, instance.limit, middle, PROBE_STEPS)
        if found is None:
            low = middle
        else:
            high = peak_memory(instance.problem, np.array(found, np.int64))
    return high


def unavoidable(instance: Instance) -> int:
    """Bytes that are live in every order at some moment: what the caller hands over before anything runs, or what a
    node reads and makes and its callees need while it runs."""
    memory = instance.memory
    touched = (
        sum([memory.size[b] for b in reads]) + sum([memory.size[b] for b in defines]) + callee
        for reads, defines, callee in zip(memory.reads, memory.defines, memory.callee, strict=True)
    )
    return max(memory.begin, memory.fixed + max(touched, default=0))


def find_order(instance: Instance, limit: list[int], cap: int | None, steps: int = STEPS) -> list[int] | None:
    """An order within `limit` (by kind, then total) and `cap` bytes, or None when none was found in so many `steps`."""
    if cap is not None and (len(instance) > LARGEST or unavoidable(instance) > cap):
        return None
    return _Search(instance, limit, UNLIMITED if cap is None else cap, steps).run()


class _Search:
    """Depth first; what led nowhere is known by the set of what was placed, and taken back."""

    def __init__(self, instance: Instance, limit: list[int], cap: int, steps: int) -> None:
        self._instance = instance
        self._limit = limit
        self._cap = cap
        self._most = steps
        memory = instance.memory
        self._left = [len(p) for p in instance.predecessors]
        self._unread = memory.readers.copy()
        self._live = memory.begin
        self._flying = [0] * (TOTAL + 1)
        self._order: list[int] = []
        self._ready = {n for n, left in enumerate(self._left) if not left}
        self._placed = 0
        """As a bit set."""
        self._steps = 0

    def run(self) -> list[int] | None:
        failed: set[int] = set()
        choices: list[tuple[int, list[int]]] = []
        n = len(self._instance)
        for node in self._instance.parameters:
            if not self._fits(node):
                return None
            self._place(node)
        while True:
            self._settle()
            if len(self._order) == n:
                return self._order
            options = [] if self._placed in failed else self._options()
            choices.append((len(self._order), options))
            while choices and not choices[-1][1]:
                choices.pop()
                failed.add(self._placed)
                if choices:
                    self._undo(choices[-1][0])
            if not choices or self._steps > self._most:
                return None
            self._place(choices[-1][1].pop())

    def _options(self) -> list[int]:
        """What may be placed next, the best last: what adds the least memory."""
        allowed = [n for n in self._ready if self._fits(n)]
        return sorted(allowed, key=lambda n: (self._growth(n), n), reverse=True)

    def _settle(self) -> None:
        """Place everything that cannot harm."""
        moved = True
        while moved:
            moved = False
            for node in sorted(self._ready):
                if node in self._ready and self._fits(node) and self._place_harmless(node):
                    moved = True

    def _place_harmless(self, node: int) -> bool:
        """Place `node`, and the done of a start, when that cannot harm. Returns whether it was."""
        if self._growth(node) > 0 and self._cap < UNLIMITED:
            return False
        role = self._instance.role[node]
        mark = len(self._order)
        self._place(node)
        if role != START:
            return True
        done = self._instance.partner[node]
        if done in self._ready and self._fits(done):
            self._place(done)
            return True
        self._undo(mark)
        return False

    def _growth(self, node: int) -> int:
        """Bytes live after `node` over those before."""
        memory = self._instance.memory
        made = sum(memory.size[b] for b in memory.defines[node] if memory.readers[b])
        freed = sum(memory.size[b] for b in memory.reads[node] if self._unread[b] == 1)
        if self._instance.role[node] == START and self._cap < UNLIMITED:
            both = (b for b in memory.reads[node] if self._unread[b] == 2 and self._ends_with(b, node))
            freed += sum(memory.size[b] for b in both)
        return made - freed

    def _ends_with(self, buffer: int, start: int) -> bool:
        """Whether the done of `start` reads the buffer too."""
        return buffer in self._instance.memory.reads[self._instance.partner[start]]

    def _fits(self, node: int) -> bool:
        memory, instance = self._instance.memory, self._instance
        peak = self._live + sum(memory.size[b] for b in memory.defines[node]) + memory.callee[node]
        if peak > self._cap:
            return False
        if instance.role[node] == START:
            kind = instance.kind[node]
            return self._flying[kind] < self._limit[kind] and self._flying[TOTAL] < self._limit[TOTAL]
        held = instance.held.get(node)
        return held is None or all(f + h <= m for f, h, m in zip(self._flying, held, self._limit, strict=True))

    def _place(self, node: int) -> None:
        instance, memory = self._instance, self._instance.memory
        self._steps += 1
        self._order.append(node)
        self._placed |= 1 << node
        self._ready.discard(node)
        if instance.role[node] != PLAIN:
            self._fly(node, 1 if instance.role[node] == START else -1)
        for b in memory.defines[node]:
            if memory.readers[b]:
                self._live += memory.size[b]
        for b in memory.reads[node]:
            self._unread[b] -= 1
            if not self._unread[b]:
                self._live -= memory.size[b]
        for s in instance.successors[node]:
            self._left[s] -= 1
            if not self._left[s]:
                self._ready.add(s)

    def _undo(self, mark: int) -> None:
        """Take back everything placed after the first `mark`."""
        instance, memory = self._instance, self._instance.memory
        while len(self._order) > mark:
            node = self._order.pop()
            self._placed &= ~(1 << node)
            for s in instance.successors[node]:
                self._ready.discard(s)
                self._left[s] += 1
            for b in memory.reads[node]:
                if not self._unread[b]:
                    self._live += memory.size[b]
                self._unread[b] += 1
            for b in memory.defines[node]:
                if memory.readers[b]:
                    self._live -= memory.size[b]
            if instance.role[node] != PLAIN:
                self._fly(node, -1 if instance.role[node] == START else 1)
            self._ready.add(node)

    def _fly(self, node: int, step: int) -> None:
        self._flying[self._instance.kind[node]] += step
        self._flying[TOTAL] += step
