"""The top-down scheduler: along the input order, rebalanced, with starts early and dones late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.control import Control
from engine.ir.graph import Ints
from engine.schedule.instance import DONE, START, Instance
from engine.schedule.measure import broken_rule, makespan, peak_memory
from engine.schedule.memory import input_order, squeezed
from engine.schedule.problem import Decisions, Order, Problem
from engine.schedule.rebalance import rebalance
from engine.schedule.stretch import Blocked, dones_late, starts_early

RULE_NAMES = ("InputOrder", "Rebalanced", "StartEarly", "DoneLate", "WithinLimits")
"""Names in `Decisions.rules` of the top-down scheduler."""
_INPUT, _REBALANCED, _EARLY, _LATE, _LIMITED = range(5)


@dataclass(frozen=True)
class TopDown:
    """Keeps to the input order but for what makes room between starts and dones.

    First each transfer's interval is filled, in input order, with as much compute as it takes; then each start is moved
    up to what it needs and each done down to what needs it, within budget and cap.
    """

    name: ClassVar[str] = "top-down"
    rebalance: bool = True
    """Whether intervals are filled by run-time cost first."""

    def schedule(self, problem: Problem, control: Control) -> Order:
        control.step(0.0, f"ordering {problem.graph.name} by memory")
        instance = Instance.of(problem)
        orders = [self._from(instance, input_order(instance), control)]
        if problem.memory_cap is not None:
            given = orders[0].nodes.tolist()
            tighter, _ = squeezed(instance, given, peak_memory(problem, orders[0].nodes))
            orders.append(self._from(instance, tighter, control))
        return min(orders, key=lambda order: makespan(instance, order.nodes.tolist()))

    def _from(self, instance: Instance, given: list[int], control: Control) -> Order:
        """The order made from the input order `given`, which is within budget and cap."""
        problem = instance.problem
        best = self._stretched(instance, given, given)
        if not self.rebalance:
            return best
        for guarded in (False, True):
            control.step(0.5, f"rebalancing {problem.graph.name}")
            filled = rebalance(instance, given, guarded=guarded)
            if broken_rule(problem, np.array(filled, np.int64)) is None:
                balanced = self._stretched(instance, given, filled)
                return min(balanced, best, key=lambda order: makespan(instance, order.nodes.tolist()))
        return best

    def _stretched(self, instance: Instance, given: list[int], base: list[int]) -> Order:
        early, blocked_starts = starts_early(instance, base)
        order, blocked_dones = dones_late(instance, early)
        decisions = _decisions(instance, given, base, order, _waits(base, blocked_starts), _waits(early, blocked_dones))
        return Order(np.array(order, np.int64), decisions)


def _waits(order: list[int], blocked: Blocked) -> dict[int, int]:
    return {node: order[position] for node, position in blocked.items() if 0 <= position < len(order)}


def _decisions(
    instance: Instance,
    given: list[int],
    base: list[int],
    order: list[int],
    starts: dict[int, int],
    dones: dict[int, int],
) -> Decisions:
    """Rules by how each node's neighbourhood changed; who a limited start or done did not pass is waited for."""
    n = len(instance)
    rule = np.full(n, _INPUT, np.uint8)
    rule[_out_of_turn(given, base)] = _REBALANCED
    waited = _latest_predecessor(instance, order)
    for node in range(n):
        role = instance.role[node]
        if role == START:
            rule[node] = _LIMITED if node in starts else _EARLY
        elif role == DONE:
            rule[node] = _LIMITED if node in dones else _LATE
    for node, holder in (starts | dones).items():
        waited[node] = holder
    return Decisions(rule, np.full(n, -1, np.int64), waited, RULE_NAMES)


def _out_of_turn(given: list[int], base: list[int]) -> list[int]:
    """Nodes of `base` that come after one which `given` has later."""
    place = {node: position for position, node in enumerate(given)}
    latest = -1
    found = []
    for node in base:
        if place[node] < latest:
            found.append(node)
        latest = max(latest, place[node])
    return found


def _latest_predecessor(instance: Instance, order: list[int]) -> Ints:
    place = {node: position for position, node in enumerate(order)}
    return np.array([max(p, key=place.__getitem__, default=-1) for p in instance.predecessors], np.int64)
