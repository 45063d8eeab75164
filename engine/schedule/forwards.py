"""A pass from the beginning over a finished order: starts as early as the budget allows, dones when they have arrived.

The backward pass leaves a transfer only as much time as it needs; where its estimate was short, or where it had to
stall, starting earlier hides more. This is the second half of forward-backward improvement, known from
resource-constrained project scheduling (Li and Willis, 1992), with the first order as its priorities.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from engine.ir.graph import Ints
from engine.schedule.backwards import FORWARD_PASS
from engine.schedule.forward_pass import ForwardPass
from engine.schedule.instance import DONE, START, TOTAL, Instance
from engine.schedule.measure import peak_memory
from engine.schedule.problem import Decisions, Loads, Order, positions
from engine.schedule.sharing import estimate


def shift_forwards(instance: Instance, nodes: Ints, decisions: Decisions, loads: Loads | None = None) -> Order:
    """The order that a forward pass makes of `nodes`, if it is faster and within the cap; else `nodes`.

    With `loads`, faster when transfers share the links that they load.
    """
    given = nodes.tolist()
    before = estimate(instance, given, loads)
    if before == sum(instance.duration):
        return Order(nodes, decisions)
    tried = [forward_order(instance, given), forward_order(instance, given, patient=True)]
    timed = [(estimate(instance, order, loads), order) for order in tried if order is not None]
    after, order = min(timed, default=(before, given))
    if after >= before:
        return Order(nodes, decisions)
    moved = np.array(order, np.int64)
    cap = instance.problem.memory_cap
    if cap is not None and peak_memory(instance.problem, moved) > cap:
        return Order(nodes, decisions)
    rule = decisions.rule.copy()
    transfers = np.flatnonzero(np.array(instance.role, np.int64))
    rule[transfers[positions(moved)[transfers] != positions(nodes)[transfers]]] = FORWARD_PASS
    return Order(moved, Decisions(rule, decisions.beat, decisions.waited_for, decisions.rules))


def forward_order(instance: Instance, given: list[int], *, patient: bool = False) -> list[int] | None:
    """List scheduling from the beginning: starts first, then what has not to wait, by place in `given`.

    `patient`: rather than begin something that would keep a start much longer from the place in flight that it waits
    for, nothing runs until the next arrival. None where the budget lets nothing more be placed.
    """
    return _ByPlace(instance, given, patient=patient).run()


class _ByPlace(ForwardPass):
    """Nodes that wait for nothing lie in heaps, by their place in `given`."""

    def __init__(self, instance: Instance, given: list[int], *, patient: bool) -> None:
        super().__init__(instance)
        self._given = given
        self._patient = patient
        self._place = [0] * len(given)
        for position, node in enumerate(given):
            self._place[node] = position
        self._starts: list[list[int]] = [[] for _ in range(TOTAL)]
        """By kind."""
        self._plain: list[int] = []
        """What has not to wait: dones whose transfer has arrived are among them."""
        self._under_way: list[tuple[int, int]] = []
        """(arrival, place) of the other dones."""
        self._holders: list[int] = []
        """Callers that hold operations in flight inside; these are nodes."""

    def push(self, node: int) -> None:
        instance, place = self.instance, self._place[node]
        if instance.role[node] == START:
            heappush(self._starts[instance.kind[node]], place)
        elif instance.role[node] == DONE:
            heappush(self._under_way, (self.arrival[node], place))
        elif node in instance.held:
            self._holders.append(node)
        else:
            heappush(self._plain, place)

    def next(self) -> int:
        given, plain, under_way = self._given, self._plain, self._under_way
        while under_way and under_way[0][0] <= self.now:
            heappush(plain, heappop(under_way)[1])
        start, blocked = self._start()
        if start >= 0:
            return start
        held = min(filter(self.fits, self._holders), key=self._place.__getitem__, default=-1)
        if held >= 0 and (not plain or self._place[held] < plain[0]):
            self._holders.remove(held)
            return held
        if plain and not (blocked and self.rather_waits(self.instance.duration[given[plain[0]]], under_way)):
            return given[heappop(plain)]
        if not under_way:
            return -1
        self.now, place = heappop(under_way)
        return given[place]

    def _start(self) -> tuple[int, bool]:
        """The first start that the budget admits, else -1; whether one waits for its place in flight, if patient."""
        instance, limit, flying = self.instance, self.instance.limit, self.flying
        if flying[TOTAL] >= limit[TOTAL] or len(self.order) < len(instance.parameters):
            return -1, self._patient and any(self._starts)
        heads = [heap[0] for k, heap in enumerate(self._starts) if heap and flying[k] < limit[k]]
        if not heads:
            return -1, self._patient and any(self._starts)
        node = self._given[min(heads)]
        heappop(self._starts[instance.kind[node]])
        return node, False
