"""Local search over orders: one node moves between what it needs and what needs it.

Simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983): a slower order is accepted with a probability that falls
with the loss and with time. Half of the moves go to where the order stalls: the done that waits, its start, or compute
that could run in between.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np

from engine.schedule.evaluator import Evaluator
from engine.schedule.instance import Instance
from engine.schedule.measure import begin_times, peak_memory
from engine.schedule.problem import Loads

REACH = 150
"""How many positions a node moves at most."""
_HOT, _COLD = 0.02, 0.00005
"""First and last temperature, as parts of the makespan."""


class Annealing:
    """A search that may be continued; `best` is the fastest order seen."""

    def __init__(self, instance: Instance, order: list[int], seed: int, loads: Loads | None = None) -> None:
        self._instance = instance
        self._loads = loads
        self._random = random.Random(seed)
        fixed = set(instance.parameters)
        self._movable = [n for n in range(len(instance)) if n not in fixed]
        self.best = list(order)
        self._restart(order)
        self.fastest = self._evaluator.makespan

    def run(self, progress: Callable[[], float], enough: int) -> None:
        """Search until `progress`, from 0 to 1, is 1 or an order of `enough` picoseconds is found."""
        done = progress()
        first = done
        step = 0
        while done < 1.0 and self.fastest > enough:
            step += 1
            if step % 64 == 0:
                done = progress()
                if step % 4096 == 0:
                    self._stalls = self._stalled()
            part = (done - first) / (1.0 - first)
            self._temperature = self.fastest * _HOT * (_COLD / _HOT) ** part
            self._step()

    def _restart(self, order: list[int]) -> None:
        self._order = list(order)
        self._place = [0] * len(order)
        for position, node in enumerate(order):
            self._place[node] = position
        self._evaluator = Evaluator(self._instance, self._order, self._loads)
        self._now = self._evaluator.makespan
        self._stalls = self._stalled()

    def _stalled(self) -> list[int]:
        """Dones that wait."""
        _, wait = begin_times(self._instance, self._order)
        return [node for node, time in enumerate(wait) if time]

    def _step(self) -> None:
        node, target = self._move()
        here = self._place[node]
        if target == here:
            return
        self._shift(here, target)
        time = self._evaluator.evaluate(self._order, min(here, target))
        if time is None or not self._accepts(time):
            self._shift(target, here)
            return
        self._evaluator.accept()
        self._now = time
        if time < self.fastest:
            self.fastest, self.best = time, list(self._order)
            self._stalls = self._stalled()

    def _accepts(self, time: int) -> bool:
        loss = time - self._now
        if loss > 0 and self._random.random() >= math.exp(-loss / max(self._temperature, 1e-9)):
            return False
        cap = self._instance.problem.memory_cap
        return cap is None or peak_memory(self._instance.problem, np.array(self._order, np.int64)) <= cap

    def _move(self) -> tuple[int, int]:
        """A node and the position it is to move to."""
        draw = self._random
        if self._stalls and draw.random() < 0.5:
            done = draw.choice(self._stalls)
            choice = draw.random()
            if choice < 0.3:
                return done, self._target(done, later=True)
            if choice < 0.6:
                start = self._instance.partner[done]
                return start, self._target(start, later=False)
            return self._filler(done)
        node = draw.choice(self._movable)
        low, high = self._range(node)
        return node, draw.randint(low, high)

    def _filler(self, done: int) -> tuple[int, int]:
        """Something near a done that waits, moved into its transfer's time."""
        at, begin = self._place[done], self._place[self._instance.partner[done]]
        draw = self._random
        if draw.random() < 0.5:
            node = self._order[min(len(self._order) - 1, at + draw.randint(1, REACH // 4))]
            low, _ = self._range(node)
            return node, draw.randint(low, at) if low <= at else self._place[node]
        node = self._order[max(len(self._instance.parameters), begin - draw.randint(1, REACH // 4))]
        _, high = self._range(node)
        return node, draw.randint(begin, high) if begin <= high else self._place[node]

    def _target(self, node: int, *, later: bool) -> int:
        low, high = self._range(node)
        here = self._place[node]
        return self._random.randint(here, high) if later else self._random.randint(low, here)

    def _range(self, node: int) -> tuple[int, int]:
        """First and last position that what `node` needs and what needs it allow."""
        place, here = self._place, self._place[node]
        low = max([place[p] for p in self._instance.predecessors[node]], default=-1) + 1
        high = min([place[s] for s in self._instance.successors[node]], default=len(place)) - 1
        return max(low, here - REACH, len(self._instance.parameters)), min(high, here + REACH)

    def _shift(self, here: int, target: int) -> None:
        order, place = self._order, self._place
        order.insert(target, order.pop(here))
        for position in range(min(here, target), max(here, target) + 1):
            place[order[position]] = position
