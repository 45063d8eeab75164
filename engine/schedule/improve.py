"""Local search from the best of the other schedulers' orders: as good as its work allows, no worse than its start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
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
_ORDERS_BETWEEN = 64
"""Orders that annealing tries between two looks at its progress."""
_SEQUENCES_BETWEEN = 16 * 3
"""The same of sequences, of which decoding one takes about three times as long as going through an order (measured)."""


@dataclass(frozen=True)
class Improve:
    """Moves instructions about until its work is done, from the best order that bottom-up and top-down find.

    What a plan comes to is judged by the simulator; the search itself by a faster estimate that agrees with it where
    transfers share nothing. The same problem and seed give the same order, unless `seconds` pass before.
    """

    name: ClassVar[str] = "improve"
    work: int = 3_000_000
    """Instructions looked at in the orders that are tried, for the whole program: about two seconds; less where a lower
    bound is reached."""
    seconds: float = 20.0
    """At most, for the whole program. Where they pass before the work is done, another run may find another order."""
    seed: int = 0
    sharing: bool = True
    """Whether transfers in flight are taken to share their links, where it is known which."""

    def __post_init__(self) -> None:
        if self.work < 1:
            raise UsageError(f"improve{{work}} is a number over 0, but {self.work} came")
        if self.seconds <= 0:
            raise UsageError(f"improve{{seconds}} is a number over 0, but {self.seconds:g} came")

    def schedule(self, problem: Problem, control: Control) -> Order:
        instance = Instance.of(problem)
        loads = problem.loads if self.sharing else None
        starts = list(self._starts(problem, instance, control))
        start = min(starts, key=lambda order: _score(instance, order, loads))
        bound = lower_bound(problem)
        spent = _Spent(self.work * problem.effort, self.seconds * problem.effort)
        control.step(0.0, f"improving {problem.graph.name}")

        def progress(orders: int) -> float:
            done = spent.add(orders * len(instance))
            control.step(done, f"improving {problem.graph.name}")
            return done

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


class _Spent:
    """How much of the work there is was done; all of it once its time is over."""

    def __init__(self, work: float, seconds: float) -> None:
        self._work = work
        self._until = monotonic() + seconds
        self._done = 0

    def add(self, work: int) -> float:
        """From 0 to 1, after so much more."""
        self._done += work
        return 1.0 if monotonic() > self._until else min(1.0, self._done / self._work)


@dataclass(frozen=True)
class _Window:
    """A part of the work there is, itself in two parts; progress in each goes from 0 to 1."""

    progress: Callable[[int], float]
    """Told how many orders were tried since the last time."""
    turn: int
    turns: int

    def first(self, part: float) -> Callable[[], float]:
        between = _between(_SEQUENCES_BETWEEN)
        return lambda: min(1.0, self._own(next(between)) / part)

    def second(self, part: float) -> Callable[[], float]:
        between = _between(_ORDERS_BETWEEN)
        return lambda: max(0.0, min(1.0, (self._own(next(between)) - part) / (1.0 - part)))

    def _own(self, orders: int) -> float:
        return self.progress(orders) * self.turns - self.turn


def _between(orders: int) -> Iterator[int]:
    """Nothing was tried before the first look at progress, so many orders before each other."""
    return chain((0,), repeat(orders))


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
