"""The loop of the bottom-up scheduler: heaps of what is ready, and one of what is pending."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, nsmallest

import numpy as np

from engine.schedule.guard import Guard
from engine.schedule.instance import DONE, START, TOTAL, UNLIMITED, Instance
from engine.schedule.problem import Decisions
from engine.schedule.ranking import Ranking
from engine.schedule.rules import RULES
from engine.schedule.sharing import SharedFlights
from engine.schedule.state import State

RULE_NAMES = (*(rule.name for rule in RULES), "OnlyChoice", "WithinLimits", "Parameter", "ForwardPass")
"""Names in `Decisions.rules` of the bottom-up scheduler."""
ONLY_CHOICE, WITHIN_LIMITS, PARAMETER, FORWARD_PASS = range(len(RULES), len(RULES) + 4)
LESS_STALL = next(k for k, rule in enumerate(RULES) if rule.number == "14")
_STATIC = -1
_NEVER = 1 << 60
_TRIED = 4
"""How many of each heap are offered to the guard before the safe order's last node is taken."""

Heap = list[int]
"""Of ranks. What has been placed in the meantime is dropped when it comes to the top."""
Choice = tuple[int, int, int]
"""(node, best other node or -1, number of the rule)."""


@dataclass
class Backwards:
    """Places the nodes of an instance from the last to the first; times run from the end.

    Nodes that are ready lie in heaps by what decides whether they may be placed: dones by kind, starts whose transfer
    is hidden, what calls something that holds operations in flight, and the rest (under a cap, what frees memory and
    what takes it apart). A start whose successors are placed but whose transfer is not hidden yet is pending.
    """

    instance: Instance
    ranking: Ranking
    cap: int = UNLIMITED
    """Bytes; from one half on the memory rules are in force."""
    guard: Guard | None = None
    """Refuses what could not be completed within budget and cap."""
    flights: SharedFlights | None = None
    """Where transfers in flight share links; None: each runs as if alone."""
    stalls_rather: bool = False
    """Whether a start that waits for no transfer gives way even to a start that stalls (rule 13)."""
    order: list[int] = field(init=False, default_factory=list)
    """From the last node to the first."""
    peak: int = field(init=False, default=0)
    """Most bytes live, under a cap."""

    def __post_init__(self) -> None:
        instance = self.instance
        n = len(instance)
        self._tracked = self.cap < UNLIMITED
        self._half = self.cap // 2
        self._state = state = State(instance, self.cap)
        state.ready_at = [0] * n
        state.left = [len(s) for s in instance.successors]
        state.waiting = [[] for _ in range(TOTAL)]
        if self._tracked:
            memory = instance.memory
            state.alive = bytearray(memory.live_out)
            state.live = memory.fixed + sum([s for s, out in zip(memory.size, memory.live_out, strict=True) if out])
        self._kinds = sorted({k for k, role in zip(instance.kind, instance.role, strict=True) if role == DONE})
        self._starts: Heap = []
        self._frees: Heap = []
        self._takes: Heap = []
        self._holders: list[int] = []
        self._placed = bytearray(n)
        self._rule, self._beat, self._waited = [PARAMETER] * n, [-1] * n, [-1] * n
        self._pushed = [0] * n
        self._freed_at, self._freed_by = -1, -1
        self._dynamic = any(number >= 0 and RULES[number].always for number in self.ranking.dynamic)
        for node in instance.parameters:
            state.left[node] = _NEVER
        for node, left in enumerate(state.left):
            if not left:
                self._push(node)

    def run(self) -> bool:
        """Place everything; False where the budget lets nothing more be placed."""
        guard, order = self.guard, self.order
        count = len(self.instance) - len(self.instance.parameters)
        while len(order) < count:
            heaps = self._candidates()
            if not heaps:
                return False
            choice = self._choose(heaps)
            if guard is not None and not guard.place(choice[0]):
                choice = self._within_limits(heaps, choice[0], guard)
            self._place(*choice)
        order.extend(reversed(self.instance.parameters))
        return True

    def decisions(self) -> Decisions:
        """Why each node is where it is."""
        rule, beat = np.array(self._rule, np.int64), np.array(self._beat, np.int64)
        static = np.flatnonzero(rule == _STATIC)
        rule[static] = self.ranking.static_rules(static, beat[static])
        return Decisions(rule.astype(np.uint8), beat, np.array(self._waited, np.int64), RULE_NAMES)

    def _push(self, node: int) -> None:
        instance, rank = self.instance, self.ranking.rank[node]
        role = instance.role[node]
        if role == DONE:
            heappush(self._state.waiting[instance.kind[node]], rank)
        elif role == START:
            heappush(self._starts, rank)
        elif node in instance.held:
            self._holders.append(node)
        elif self._tracked and self._state.increase(node) > 0:
            heappush(self._takes, rank)
        else:
            heappush(self._frees, rank)

    def _candidates(self) -> list[Heap]:
        """Heaps whose heads may be placed now; else the start that is ready soonest; nothing when all is blocked."""
        state, limit = self._state, self.instance.limit
        pending, flying = state.pending, state.flying
        while pending and pending[0][0] <= state.now:
            heappush(self._starts, heappop(pending)[1])
        heaps = [self._starts, self._frees, self._takes]
        if flying[TOTAL] < limit[TOTAL]:
            heaps += [state.waiting[k] for k in self._kinds if flying[k] < limit[k]]
        found = [heap for heap in heaps if heap and self._trim(heap)]
        if self._holders:
            found += [[self.ranking.rank[node]] for node in self._holders if self._fits(node)]
        if not pending or (found and not self.stalls_rather):
            return found
        node_of, placed = self.ranking.node_of, self._placed
        while pending and placed[node_of[pending[0][1]]]:
            heappop(pending)
        if found and self._waits_for_something(found, pending):
            return found
        return [[pending[0][1]]] if pending else found

    def _trim(self, heap: Heap) -> bool:
        """Drop what has been placed from the top; whether something is left."""
        node_of, placed = self.ranking.node_of, self._placed
        while heap and placed[node_of[heap[0]]]:
            heappop(heap)
        return bool(heap)

    def _waits_for_something(self, heaps: list[Heap], pending: list[tuple[int, int]]) -> bool:
        """Whether something ready beats stalling for the pending start under rule 13."""
        best, other = min(heap[0] for heap in heaps), pending[0][1]
        return best < other

    def _fits(self, node: int) -> bool:
        flying, held = self._state.flying, self.instance.held[node]
        return all(f + h <= most for f, h, most in zip(flying, held, self.instance.limit, strict=True))

    def _choose(self, heaps: list[Heap]) -> Choice:
        """The best of the heads, the best of all others, and the rule that decides between them."""
        node_of, state = self.ranking.node_of, self._state
        best = min(heaps)
        if len(heaps) > 1 and self._dynamic_rules():
            return self._compare(heaps)
        others = [heap[0] for heap in heaps if heap is not best]
        others += best[1:3]
        if others:
            return node_of[best[0]], node_of[min(others)], _STATIC
        if state.pending and state.pending[0][1] != best[0]:
            return node_of[best[0]], node_of[state.pending[0][1]], LESS_STALL
        return node_of[best[0]], -1, ONLY_CHOICE

    def _dynamic_rules(self) -> bool:
        """Whether any dynamic rule could decide now."""
        state, limit = self._state, self.instance.limit
        if self._dynamic or (self._tracked and state.live > self._half):
            return True
        flying = state.flying
        full = flying[TOTAL] >= limit[TOTAL]
        return any(state.waiting[k] and (full or flying[k] >= limit[k]) for k in self._kinds)

    def _compare(self, heaps: list[Heap]) -> Choice:
        ranking, state = self.ranking, self._state
        node_of = ranking.node_of
        keyed = sorted([(ranking.key(state, node_of[heap[0]]), k) for k, heap in enumerate(heaps)])
        (key, k), (other_key, other) = keyed[0], keyed[1]
        chosen, beaten = node_of[heaps[k][0]], node_of[heaps[other][0]]
        return chosen, beaten, ranking.deciding(key, other_key)

    def _within_limits(self, heaps: list[Heap], refused: int, guard: Guard) -> Choice:
        """The best candidate that the guard admits; the safe order's last node always is."""
        ranks = sorted(rank for heap in heaps for rank in nsmallest(_TRIED, heap))
        for rank in ranks:
            node = self.ranking.node_of[rank]
            if node != refused and not self._placed[node] and guard.place(node):
                return node, refused, WITHIN_LIMITS
        node = guard.next
        guard.place(node)
        return node, refused, WITHIN_LIMITS

    def _place(self, node: int, beaten: int, why: int) -> None:
        instance, state = self.instance, self._state
        order, left, ready_at = self.order, state.left, state.ready_at
        role, kind = instance.role[node], instance.kind[node]
        self._rule[node], self._beat[node] = why, beaten
        order.append(node)
        self._placed[node] = 1
        if self._tracked:
            peak = state.live + state.peak(node)
            if peak > self.peak:
                self.peak = peak
            state.swap(node)
        now = state.now
        if role == START:
            if ready_at[node] > now:
                now = ready_at[node]
            state.flying[kind] -= 1
            state.flying[TOTAL] -= 1
            self._freed_at, self._freed_by = len(order), node
            if self.flights is not None:
                self._share(now, closed=node)
        elif role == DONE:
            state.flying[kind] += 1
            state.flying[TOTAL] += 1
            if self._freed_at > self._pushed[node]:
                self._waited[node] = self._freed_by
            begun = now + instance.duration[node]
            ready_at[instance.partner[node]] = begun + instance.latency[node]
            if self.flights is not None:
                self._share(begun, opened=node)
        elif self._holders and node in instance.held:
            self._holders.remove(node)
        state.now = now = now + instance.duration[node]
        for p in instance.predecessors[node]:
            left[p] -= 1
            if left[p]:
                continue
            self._waited[p], self._pushed[p] = node, len(order)
            if ready_at[p] > now:
                self._waited[p] = instance.partner[p]
                heappush(state.pending, (ready_at[p], self.ranking.rank[p]))
            else:
                self._push(p)

    def _share(self, now: int, *, opened: int = -1, closed: int = -1) -> None:
        """Project anew when the transfers in flight will be hidden, now that they share their links otherwise."""
        assert self.flights is not None
        state, node_of = self._state, self.ranking.node_of
        if opened >= 0:
            self.flights.open(self.instance.partner[opened], now)
        else:
            self.flights.close(closed, now)
        for start, time in self.flights.projected(now):
            state.ready_at[start] = time
        state.pending = [(state.ready_at[node_of[r]], r) for _, r in state.pending if not self._placed[node_of[r]]]
        heapify(state.pending)
