"""Local search from the best of the other schedulers' orders: as good as time allows, never worse than its start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import ClassVar

import numpy as np

from engine.control import Control
from engine.errors import UsageError
from engine.schedule.annealing import Annealing
from engine.schedule.bottom_up import BottomUp
from engine.schedule.bounds import lower_bound
from engine.schedule.forwards import forward_order
from engine.schedule.instance import Instance
from engine.schedule.measure import peak_memory
from engine.schedule.problem import Decisions, Loads, Order, Problem, Scheduler, positions
from engine.schedule.sequencing import Sequencing
from engine.schedule.sharing import estimate
from engine.schedule.top_down import TopDown

_ROUNDS = 4
"""Searches from the best order so far, each cooling down anew."""
_JUDGED = 4
"""How many orders the simulator is asked about in the end."""


@dataclass(frozen=True)
class Improve:
    """Moves instructions about for as long as it is given, from the best order that bottom-up and top-down find.

    What a plan comes to is judged by the simulator; the search itself by a faster estimate that agrees with it where
    transfers share nothing.
    """

    name: ClassVar[str] = "improve"
    seconds: float = 2.0
    """For the whole program; less where a lower bound is reached."""
    seed: int = 0
    sharing: bool = True
    """Whether transfers in flight are taken to share their links, where it is known which."""

    def __post_init__(self) -> None:
        if self.seconds <= 0:
            raise UsageError(f"improve{{seconds}} is a number over 0, but {self.seconds:g} came")

    def schedule(self, problem: Problem, control: Control) -> Order:
        started = monotonic()
        instance = Instance.of(problem)
        loads = problem.loads if self.sharing else None
        starts = list(self._starts(problem, instance, control))
        start = min(starts, key=lambda order: _score(instance, order, loads))
        bound = lower_bound(problem)
        limit = self.seconds * problem.effort

        def progress() -> float:
            passed = min(1.0, (monotonic() - started) / limit)
            control.step(passed, f"improving {problem.graph.name}")
            return passed

        best = start.nodes.tolist()
        for turn in range(_ROUNDS):
            window = _Window(progress, turn, _ROUNDS)
            sequencing = Sequencing(instance, self.seed + turn)
            best = sequencing.search(best, lambda order: _valid_score(instance, order, loads), window.first(0.3), bound)
            annealing = Annealing(instance, best, self.seed + turn, loads)
            annealing.run(window.second(0.3), bound)
            best = annealing.best
        found = Order(np.array(best, np.int64), _decisions(start, best))
        return _fastest(problem, [found, *starts], loads)

    def _starts(self, problem: Problem, instance: Instance, control: Control) -> Iterator[Order]:
        """Orders of the other schedulers, and what forward passes make of them."""
        schedulers: list[Scheduler] = [BottomUp(), BottomUp(aggressive=True), TopDown()]
        for scheduler in schedulers:
            order = scheduler.schedule(problem, control.part(0.0, 0.1))
            yield order
            again = forward_order(instance, order.nodes.tolist())
            if again is not None and _within_cap(problem, again):
                yield Order(np.array(again, np.int64), order.decisions)


@dataclass(frozen=True)
class _Window:
    """A part of the time there is, itself in two parts; progress in each goes from 0 to 1."""

    progress: Callable[[], float]
    turn: int
    turns: int

    def first(self, part: float) -> Callable[[], float]:
        return lambda: min(1.0, self._own() / part)

    def second(self, part: float) -> Callable[[], float]:
        return lambda: max(0.0, min(1.0, (self._own() - part) / (1.0 - part)))

    def _own(self) -> float:
        return self.progress() * self.turns - self.turn


def _valid_score(instance: Instance, order: list[int], loads: Loads | None) -> int | None:
    if not _within_cap(instance.problem, order):
        return None
    return estimate(instance, order, loads)


def _within_cap(problem: Problem, order: list[int]) -> bool:
    return problem.memory_cap is None or peak_memory(problem, np.array(order, np.int64)) <= problem.memory_cap


def _score(instance: Instance, order: Order, loads: Loads | None) -> int:
    return estimate(instance, order.nodes.tolist(), loads)


def _fastest(problem: Problem, orders: list[Order], loads: Loads | None) -> Order:
    """The fastest order in the simulator, of those that the estimate finds fastest; the first of equal ones."""
    instance = Instance.of(problem)
    best = sorted(orders, key=lambda order: _score(instance, order, loads))[:_JUDGED]
    simulated = problem.simulated
    return best[0] if simulated is None else min(best, key=lambda order: simulated(order.nodes))


def _decisions(start: Order, order: list[int]) -> Decisions | None:
    """Those of the start; what the search moved says so."""
    if start.decisions is None:
        return None
    found = start.decisions
    after, before = positions(np.array(order, np.int64)), positions(start.nodes)
    rule = np.where(after == before, found.rule, len(found.rules)).astype(np.uint8)
    return Decisions(rule, found.beat, found.waited_for, (*found.rules, "LocalSearch"))
