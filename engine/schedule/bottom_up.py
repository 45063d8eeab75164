"""The bottom-up scheduler: from the roots backwards, transfers opened at their dones and closed at their starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from engine.control import Control
from engine.schedule.backward_guard import BackwardGuard
from engine.schedule.backwards import Backwards
from engine.schedule.bounds import lower_bound
from engine.schedule.facts import Facts
from engine.schedule.forwards import shift_forwards
from engine.schedule.guard import Guard
from engine.schedule.instance import TOTAL, UNLIMITED, Instance
from engine.schedule.measure import fits_budget
from engine.schedule.memory import input_order
from engine.schedule.problem import Loads, Order, Problem
from engine.schedule.ranking import Ranking
from engine.schedule.rules import Policy
from engine.schedule.sharing import SharedFlights

_NARROWED = 1_000
"""Instructions up to which smaller budgets are tried."""
_NARROW = (1, 2)
"""The budgets tried."""
_SLACK = 1.001
"""They are tried where the simulator takes this much longer than the lower bound."""


@dataclass(frozen=True)
class BottomUp:
    """Places instructions from the end backwards, by a list of rules of which the first that differs decides.

    A done is placed as soon as it can be, its start once its transfer is hidden; what is ready goes before what would
    stall. With a memory cap, the memory rules keep clear of it, and what would break it is not placed. The list is
    `engine.schedule.rules`.
    """

    name: ClassVar[str] = "bottom-up"
    forward: bool = True
    """Whether a pass from the beginning then moves starts earlier where that hides more."""
    aggressive: bool = False
    """Also rules 16, 18, 19 and 23, which XLA turns on for GPUs."""
    depth_over_stall: bool = False
    """With `aggressive`: rule 13 instead of 16; a start that waits for no transfer gives way even to stalling."""
    release_starts: bool = False
    """Rule 12: a permute's start goes first once its transfer is hidden."""
    late_starts: bool = False
    """Rule 8: starts go last."""
    sharing: bool = True
    """Whether transfers in flight are taken to share their links, where it is known which."""
    narrower: bool = True
    """Whether fewer transfers in flight than the budget allows are tried too, in computations of up to 1,000
    instructions that stall: where transfers slow each other and compute, fewer can be faster in the simulator."""

    def schedule(self, problem: Problem, control: Control) -> Order:
        control.step(0.0, f"ordering {problem.graph.name} by memory")
        instance = Instance.of(problem)
        safe = input_order(instance)
        control.step(0.4, f"scheduling {problem.graph.name} bottom-up")
        order = self._order(instance, safe)
        simulated = problem.simulated
        if not self.narrower or simulated is None or len(instance) > _NARROWED:
            return order
        if simulated(order.nodes) <= lower_bound(problem) * _SLACK:
            return order
        orders = [order]
        for total in (t for t in _NARROW if t < instance.limit[TOTAL]):
            control.step(0.7, f"scheduling {problem.graph.name} bottom-up with {total} in flight")
            narrow = instance.within(replace(problem.budget, total=total))
            if fits_budget(narrow, np.array(safe, np.int64)):
                orders.append(self._order(narrow, safe))
        return min(orders, key=lambda found: simulated(found.nodes))

    def _order(self, instance: Instance, safe: list[int]) -> Order:
        backwards = self.place(instance, safe)
        nodes, decisions = np.array(backwards.order[::-1], np.int64), backwards.decisions()
        if self.forward:
            return shift_forwards(instance, nodes, decisions, self._loads(instance.problem))
        return Order(nodes, decisions)

    def place(self, instance: Instance, safe: list[int]) -> Backwards:
        """Place every node of an instance; `safe` is an order within budget and cap."""
        problem = instance.problem
        ranking = Ranking.of(Facts.of(instance, safe), self.policies(problem))
        cap = UNLIMITED if problem.memory_cap is None else problem.memory_cap
        free = self._backwards(instance, ranking, cap)
        if free.run() and free.peak <= cap:
            return free
        guarded = self._backwards(instance, ranking, cap, BackwardGuard(instance, safe))
        guarded.run()
        return guarded

    def policies(self, problem: Problem) -> frozenset[Policy]:
        """Which rules are in force."""
        found = {Policy.ALWAYS}
        if self.aggressive:
            found |= {Policy.AGGRESSIVE, Policy.DEPTH_FIRST if self.depth_over_stall else Policy.STALL_FIRST}
        if self.release_starts:
            found.add(Policy.RELEASE_STARTS)
        if self.late_starts:
            found.add(Policy.LATE_STARTS)
        if problem.memory_cap is not None:
            found.add(Policy.MEMORY)
        return frozenset(found)

    def _loads(self, problem: Problem) -> Loads | None:
        return problem.loads if self.sharing else None

    def _backwards(self, instance: Instance, ranking: Ranking, cap: int, guard: Guard | None = None) -> Backwards:
        loads = self._loads(instance.problem)
        flights = None if loads is None else SharedFlights(instance, loads)
        return Backwards(
            instance, ranking, cap, guard, flights, stalls_rather=self.aggressive and self.depth_over_stall
        )
