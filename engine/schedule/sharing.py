"""Transfers in flight that share links: when each will be over if the set in flight stays as it is.

Each link's bandwidth is divided evenly among the transfers that load it, and a transfer goes at the rate of its
tightest link: the processor sharing that XLA's scheduler assumes. The simulator is exact about it (max-min).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from engine.schedule.instance import Instance
from engine.schedule.problem import Loads


class SharedFlights:
    """Transfers in flight, known by their starts."""

    def __init__(self, instance: Instance, loads: Loads) -> None:
        starts = loads.start.tolist()
        links = loads.link.tolist()
        self._links = [tuple(links[a:b]) for a, b in pairwise(starts)]
        self._transfer = instance.problem.transfer.tolist()
        self._left: dict[int, float] = {}
        """Picoseconds that each transfer still takes when alone."""
        self._use: Counter[int] = Counter()
        """Transfers on each link."""
        self._then = 0

    def open(self, start: int, now: int) -> None:
        self._advance(now)
        self._left[start] = float(self._transfer[start])
        self._use.update(self._links[start])

    def close(self, start: int, now: int) -> None:
        self._advance(now)
        del self._left[start]
        self._use.subtract(self._links[start])

    def projected(self, now: int) -> Iterable[tuple[int, int]]:
        """(start, when its transfer will have had its time) of everything in flight."""
        return [(start, now + round(left * self._sharers(start))) for start, left in self._left.items()]

    def _advance(self, now: int) -> None:
        for start, left in self._left.items():
            self._left[start] = max(0.0, left - (now - self._then) / self._sharers(start))
        self._then = now

    def _sharers(self, start: int) -> int:
        return max((self._use[link] for link in self._links[start]), default=1)
