"""Transfers in flight that share links: when each will be over if the set in flight stays as it is.

Each link's bandwidth is divided evenly among the transfers that load it, and a transfer goes at the rate of its
tightest link: the processor sharing that XLA's scheduler assumes. The simulator is exact about it (max-min, and memory
bandwidth too).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from engine.schedule.instance import DONE, START, Instance
from engine.schedule.measure import makespan
from engine.schedule.problem import Loads


class SharedFlights:
    """Transfers in flight, known by their starts. Times in picoseconds."""

    def __init__(self, instance: Instance, loads: Loads) -> None:
        self._links = _link_classes(instance, loads)
        self._transfer: list[int] = instance.problem.transfer.tolist()
        self._left: dict[int, float] = {}
        """Picoseconds that each transfer still takes when alone."""
        self._use: dict[int, int] = {}
        """Transfers on each class of links."""
        self._then = 0

    @property
    def clock(self) -> int:
        """Up to when what is in flight has gone on."""
        return self._then

    def open(self, start: int, now: int) -> None:
        self.advance(now)
        self._left[start] = float(self._transfer[start])
        for link in self._links.get(start, ()):
            self._use[link] = self._use.get(link, 0) + 1

    def close(self, start: int, now: int) -> None:
        self.advance(now)
        if self._left.pop(start, None) is not None:
            for link in self._links.get(start, ()):
                self._use[link] -= 1

    def projected(self, now: int) -> list[tuple[int, int]]:
        """(start, when its transfer will have had its time) of everything in flight, were nothing to change."""
        return [(start, now + round(left * self._sharers(start))) for start, left in self._left.items()]

    def advance(self, now: int) -> None:
        """Let what is in flight go on until `now`."""
        passed = now - self._then
        if passed > 0:
            for start, left in self._left.items():
                self._left[start] = max(0.0, left - passed / self._sharers(start))
        self._then = now

    def finish(self, start: int, now: int) -> int:
        """When the transfer of `start` is over, as others end; it and what ends before it leave."""
        while start in self._left:
            ends = self.projected(now)
            first, time = min(ends, key=lambda end: end[1])
            now = max(now, time)
            self.close(first, now)
        return now

    def _sharers(self, start: int) -> int:
        most = 1
        for link in self._links.get(start, ()):
            if self._use[link] > most:
                most = self._use[link]
        return most


def shared_makespan(instance: Instance, order: Sequence[int], loads: Loads) -> int:
    """Picoseconds of an order when transfers in flight share links evenly."""
    role, duration, partner = instance.role, instance.duration, instance.partner
    flights = SharedFlights(instance, loads)
    now = 0
    for node in order:
        if role[node] == START:
            _land(flights, now + duration[node])
            flights.open(node, now + duration[node])
        elif role[node] == DONE:
            _land(flights, now)
            now = flights.finish(partner[node], now)
        now += duration[node]
    return now


def estimate(instance: Instance, order: Sequence[int], loads: Loads | None) -> int:
    """Picoseconds of an order; with `loads`, transfers in flight share links."""
    return makespan(instance, order) if loads is None else shared_makespan(instance, order, loads)


def _land(flights: SharedFlights, now: int) -> None:
    """End, one after the other, the transfers that are over by `now`: the rest then go faster."""
    while True:
        over = [(time, start) for start, time in flights.projected(flights.clock) if time <= now]
        if not over:
            flights.advance(now)
            return
        time, start = min(over)
        flights.close(start, time)


def _link_classes(instance: Instance, loads: Loads) -> dict[int, tuple[int, ...]]:
    """For each start, classes of links that the same transfers load; only those that it may share with another."""
    starts, links = loads.start.tolist(), loads.link.tolist()
    loaded = {
        node: tuple(sorted(links[a:b]))
        for node, (a, b) in enumerate(pairwise(starts))
        if b > a and instance.role[node] == START
    }
    numbers = {route: k for k, route in enumerate(dict.fromkeys(loaded.values()))}
    users: dict[int, list[int]] = {}
    for route, number in numbers.items():
        for link in route:
            users.setdefault(link, []).append(number)
    classes: dict[tuple[int, ...], int] = {}
    of_link = {link: classes.setdefault(tuple(together), len(classes)) for link, together in users.items()}
    of_route = {route: tuple(sorted({of_link[link] for link in route})) for route in numbers}
    return {node: of_route[route] for node, route in loaded.items()}
