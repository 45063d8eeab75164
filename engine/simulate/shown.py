"""Which iterations of loops a timeline shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate

import numpy as np

from engine.ir.graph import Ints
from engine.simulate.run import Call, ComputationRun, Stretch

_MOST_PACES = 48
"""A loop that changes its pace at most so often shows an iteration of each."""


class Shown:
    """All iterations of every loop while there are at most `cap` slices; else few of the loops that take most: the
    first two, the last, and the first at each pace, which stands for those that follow.

    `count` says how many slices a run has without its callees.
    """

    def __init__(
        self,
        entry: ComputationRun,
        count: Callable[[ComputationRun], int],
        cap: int,
        expand: Iterable[tuple[int, int]],
    ) -> None:
        self._count = count
        self._expand: dict[int, set[int]] = {}
        for loop, iteration in expand:
            self._expand.setdefault(loop, set()).add(iteration)
        self._folded: set[int] = set()
        while self._size(entry, {}) > cap:
            saved: dict[int, int] = {}
            self._savings(entry, 1, saved, {})
            loop, most = max(saved.items(), key=lambda entry: (entry[1], -entry[0]), default=(0, 0))
            if not most:
                break
            self._folded.add(loop)

    def iterations(self, loop: int, call: Call, first: int, stretch: Stretch) -> Ints:
        """Shown iterations among those of `stretch`, which begins with iteration `first`; ascending."""
        if loop not in self._folded:
            return np.arange(first, first + stretch.count, dtype=np.int64)
        return np.array([k for k in self._few(loop, call) if first <= k < first + stretch.count], dtype=np.int64)

    def _number(self, loop: int, call: Call, first: int, stretch: Stretch) -> int:
        """How many iterations of a stretch are shown, without listing them: there may be billions."""
        return stretch.count if loop not in self._folded else len(self.iterations(loop, call, first, stretch))

    def _few(self, loop: int, call: Call) -> list[int]:
        some = {0, 1, call.trips - 1, call.trips} | self._expand.get(loop, set())
        if len(call.stretches) <= _MOST_PACES:
            some.update(accumulate((stretch.count for stretch in call.stretches), initial=0))
        return sorted(k for k in some if 0 <= k <= call.trips)

    def _size(self, run: ComputationRun, known: dict[int, int]) -> int:
        if id(run) not in known:
            size = self._count(run)
            for node, call in run.calls.items():
                for number, stretch in self._shown_stretches(int(run.graph.ids[node]), call):
                    size += number * (bool(stretch.copies) + sum(self._size(r, known) for r in stretch.runs))
            known[id(run)] = size
        return known[id(run)]

    def _savings(self, run: ComputationRun, times: int, saved: dict[int, int], known: dict[int, int]) -> None:
        """Add up, by loop, how many slices folding it would save; `run` is shown `times` times."""
        for node, call in run.calls.items():
            loop = int(run.graph.ids[node])
            for number, stretch in self._shown_stretches(loop, call):
                if not number:
                    continue
                for callee in stretch.runs:
                    self._savings(callee, times * number, saved, known)
                if loop not in self._folded and call.trips > 3:
                    size = sum(self._size(r, known) for r in stretch.runs)
                    saved[loop] = saved.get(loop, 0) + times * number * size

    def _shown_stretches(self, loop: int, call: Call) -> Iterable[tuple[int, Stretch]]:
        first = 0
        for stretch in call.stretches:
            yield self._number(loop, call, first, stretch), stretch
            first += stretch.count
