"""How transfers under way and the compute beside them share links, memory bandwidth and cores.

Rates are integers: `ONE` is the speed of something that runs alone. Links are shared max-min fairly in progress, each
transfer slowed alike until one of its links is full. HBM bandwidth is shared max-min fairly in bytes, so a transfer
that needs little gets all of it and the compute beside it what is left. Everything is exact integer arithmetic: a rate
is rounded down, a finish up, so no resource is ever oversubscribed and results do not depend on the platform.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

ONE = 1 << 20
"""Full speed, and all of a resource."""
HBM = -1
"""Number of the memory bandwidth among the resources whose others are link classes."""
_LEAST_CORES = ONE // 8
"""What transfers leave compute of the cores, however many there are."""


@dataclass(frozen=True, slots=True)
class Load:
    """What one transfer takes of each resource while it runs at full speed, as parts of `ONE`."""

    links: tuple[tuple[int, int], ...]
    """(link, part of the link's bandwidth), ascending."""
    hbm: int = 0
    """Part of the chip's memory bandwidth."""
    cores: int = 0
    """Part of the chip's cores (a GPU's SMs), taken at any speed."""

    @property
    def demands(self) -> tuple[tuple[int, int], ...]:
        """(resource, part) of links and memory; resources are link classes and `HBM`."""
        return (*self.links, (HBM, self.hbm)) if self.hbm else self.links


@dataclass(frozen=True, slots=True)
class Flight:
    """A transfer under way when a computation begins or ends."""

    owner: int
    """Key by which whoever started it knows it."""
    load: Load
    left: int
    """Time it still takes when alone, in picoseconds × `ONE`."""


class Rates(NamedTuple):
    """At what rates things run while some transfers are under way."""

    transfers: Mapping[int, int]
    """By number of their load."""
    hbm: int
    """Part of the memory bandwidth that the transfers take."""
    compute: int
    """Of compute that does not want for memory: what is left of the cores."""


class Loads:
    """The distinct loads of a simulation by number, and the rates of any set of them."""

    def __init__(self, *, sharing: bool) -> None:
        self._sharing = sharing
        self._numbers: dict[Load, int] = {}
        self._loads: list[Load] = []
        self._rates: dict[tuple[int, ...], Rates] = {}

    def number(self, load: Load) -> int:
        """The number of `load`."""
        found = self._numbers.setdefault(load, len(self._loads))
        if found == len(self._loads):
            self._loads.append(load)
        return found

    def load(self, number: int) -> Load:
        """The load of this number."""
        return self._loads[number]

    def rates(self, flights: Sequence[int]) -> Rates:
        """Rates while the loads with the numbers `flights` are under way; everything runs at `ONE` without sharing."""
        key = tuple(sorted(flights))
        known = self._rates.get(key)
        if known is None:
            known = self._rates[key] = self._find(key)
        return known

    def beside(self, flights: Sequence[int], compute: int, hbm: int) -> tuple[int, Mapping[int, int]]:
        """Rates when compute at rate `compute` (`hbm` at full speed) and the flights want more memory than there is.

        Gives the rate of compute and that of each load number.
        """
        rates = self.rates(flights).transfers
        numbers = sorted(set(flights))
        wants = {number: _part(self._loads[number].hbm, rates[number]) for number in numbers}
        mine = _part(hbm, compute)
        if not mine:
            return compute, rates
        shares = fair_shares([mine, *(wants[number] for number in flights)], ONE)
        granted = dict(rates)
        for number, share in zip(flights, shares[1:], strict=True):
            if share < wants[number]:
                granted[number] = min(granted[number], max(1, rates[number] * share // wants[number]))
        return max(1, compute * shares[0] // mine), granted

    def _find(self, flights: tuple[int, ...]) -> Rates:
        if not self._sharing:
            return Rates(dict.fromkeys(flights, ONE), 0, ONE)
        rates = self._fill(flights)
        hbm = sum(_part(self._loads[number].hbm, rates[number]) for number in flights)
        cores = sum(self._loads[number].cores for number in flights)
        return Rates(rates, min(hbm, ONE), max(ONE - cores, _LEAST_CORES))

    def _fill(self, flights: tuple[int, ...]) -> dict[int, int]:
        """Raise the rates of all flights alike until a resource is full; go on with those that do not use it."""
        count = {number: flights.count(number) for number in flights}
        demands = {number: self._loads[number].demands for number in count}
        left: dict[int, int] = {}
        rates: dict[int, int] = {}
        waiting = sorted(count)
        while waiting:
            wanted: dict[int, int] = {}
            for number in waiting:
                for resource, part in demands[number]:
                    wanted[resource] = wanted.get(resource, 0) + part * count[number]
            reach = {resource: left.get(resource, ONE * ONE) // part for resource, part in wanted.items()}
            level = min(ONE, *reach.values()) if reach else ONE
            full = {resource for resource, most in reach.items() if most == level}
            stopped = waiting if level == ONE else [n for n in waiting if any(k in full for k, _ in demands[n])]
            for number in stopped:
                rates[number] = max(1, level)
                for resource, part in demands[number]:
                    left[resource] = max(0, left.get(resource, ONE * ONE) - part * count[number] * level)
            waiting = [number for number in waiting if number not in rates]
        return rates


def fair_shares(wants: Sequence[int], capacity: int) -> list[int]:
    """Max-min fair shares of `capacity`: nobody gets more than it wants, nor less than another unless it wants less."""
    shares = [0] * len(wants)
    left = capacity
    for served, index in enumerate(sorted(range(len(wants)), key=wants.__getitem__)):
        shares[index] = min(wants[index], left // (len(wants) - served))
        left -= shares[index]
    return shares


def _part(part: int, rate: int) -> int:
    """What something takes at `rate` that takes `part` at full speed, rounded up."""
    return -(-part * rate // ONE)
