"""The makespan of an order that changes a little at a time: evaluation goes on from where it begins to differ."""

from __future__ import annotations

from engine.schedule.instance import DONE, START, TOTAL, UNLIMITED, Instance
from engine.schedule.problem import Loads
from engine.schedule.sharing import shared_makespan


class Evaluator:
    """Times of an accepted order, and of one that differs from it from some position on.

    With `loads`, transfers in flight share links and every evaluation goes through the whole order.
    """

    def __init__(self, instance: Instance, order: list[int], loads: Loads | None = None) -> None:
        n = len(instance)
        self._instance = instance
        self._loads = loads
        self._keys = [k for k in range(TOTAL + 1) if instance.limit[k] < UNLIMITED]
        self._now = [0] * (n + 1)
        """When each position is reached."""
        self._flying = [(0,) * len(self._keys)] * (n + 1)
        """In flight before each position, by limited kind."""
        self._depart = [0] * n
        self._first = 0
        self._trial_now: list[int] = []
        self._trial_flying: list[tuple[int, ...]] = []
        self._trial_depart: dict[int, int] = {}
        found = self.evaluate(order, 0)
        if found is None:
            raise ValueError("the first order must be within the budget")
        self.makespan = found
        self.accept()

    def evaluate(self, order: list[int], first: int) -> int | None:
        """Makespan of `order`, the accepted one up to position `first`; None where it is over the budget."""
        instance = self._instance
        role, duration, latency, partner = instance.role, instance.duration, instance.latency, instance.partner
        kind, limit, held = instance.kind, instance.limit, instance.held
        keys, depart = self._keys, self._depart
        now = self._now[first]
        flying = list(self._flying[first])
        limits = [limit[k] for k in keys]
        times: list[int] = []
        counts: list[tuple[int, ...]] = []
        departs: dict[int, int] = {}
        self._first = first
        for position in range(first, len(order)):
            node = order[position]
            part = role[node]
            times.append(now)
            counts.append(tuple(flying))
            if part == START:
                departs[node] = now + duration[node]
                for k, key in enumerate(keys):
                    if key == TOTAL or key == kind[node]:
                        flying[k] += 1
                        if flying[k] > limits[k]:
                            return None
            elif part == DONE:
                start = partner[node]
                left = departs.get(start)
                arrival = (depart[start] if left is None else left) + latency[node]
                if arrival > now:
                    now = arrival
                for k, key in enumerate(keys):
                    if key == TOTAL or key == kind[node]:
                        flying[k] -= 1
            elif held and node in held:
                own = held[node]
                if any(flying[k] + own[key] > limits[k] for k, key in enumerate(keys)):
                    return None
            now += duration[node]
        times.append(now)
        counts.append(tuple(flying))
        self._trial_now, self._trial_flying, self._trial_depart = times, counts, departs
        if self._loads is not None:
            return shared_makespan(instance, order, self._loads)
        return now

    def accept(self) -> None:
        """Make the order evaluated last the accepted one."""
        self._now[self._first :] = self._trial_now
        self._flying[self._first :] = self._trial_flying
        for node, time in self._trial_depart.items():
            self._depart[node] = time
