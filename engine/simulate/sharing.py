"""How transfers under way and the compute beside them share links, memory bandwidth and cores.

Rates are integers: `ONE` is the speed of something that runs alone. Links are shared max-min fairly in progress, each
transfer slowed alike until one of its links is full. HBM bandwidth is shared max-min fairly in bytes, so a transfer
that needs little gets all of it and the compute beside it what is left. Everything is exact integer arithmetic: a rate
is rounded down, a finish up, so no resource is ever oversubscribed and results do not depend on the platform.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ONE = 1 << 20
"""Full speed, and all of a resource."""
HBM = -1
"""Number of the memory bandwidth among the resources whose others are link classes."""
_NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Load:
    """What one transfer takes of each resource while it runs at full speed, as parts of `ONE`."""

    links: tuple[tuple[int, int], ...]
    """(link, part of the link's bandwidth), ascending."""
    hbm: int = 0
    """Part of the chip's memory bandwidth."""
    cores: int = 0
    """Part of the chip's cores (a GPU's SMs), taken at any speed."""


@dataclass(frozen=True, slots=True)
class Flight:
    """A transfer under way when a computation begins or ends."""

    owner: int
    """Key by which whoever started it knows it."""
    load: Load
    left: int
    """Time it still takes when alone, in picoseconds × `ONE`."""


class Loads:
    """The distinct loads of a simulation by number, and the rates of any set of them."""

    def __init__(self, *, sharing: bool) -> None:
        self._sharing = sharing
        self._numbers: dict[Load, int] = {}
        self._loads: list[Load] = []
        self._rates: dict[tuple[int, ...], tuple[dict[int, int], int, int]] = {}

    def number(self, load: Load) -> int:
        """The number of `load`."""
        found = self._numbers.setdefault(load, len(self._loads))
        if found == len(self._loads):
            self._loads.append(load)
        return found

    def load(self, number: int) -> Load:
        """The load of this number."""
        return self._loads[number]

    def rates(self, flights: Sequence[int]) -> tuple[dict[int, int], int, int]:
        """Rate of each load number among `flights`, the HBM bandwidth they take, and the rate of compute beside them.

        The last is what is left of the cores. Without sharing everything runs at full speed.
        """
        key = tuple(sorted(flights))
        known = self._rates.get(key)
        if known is None:
            known = self._rates[key] = self._fill(key)
        return known

    def _fill(self, flights: tuple[int, ...]) -> tuple[dict[int, int], int, int]:
        if not self._sharing:
            return dict.fromkeys(flights, ONE), 0, ONE
        demands = {number: (*self._loads[number].links, (HBM, self._loads[number].hbm)) for number in set(flights)}
        left: dict[int, int] = {}
        rates: dict[int, int] = {}
        waiting = sorted(demands)
        count = {number: flights.count(number) for number in waiting}
        while waiting:
            wanted: dict[int, int] = {}
            for number in waiting:
                for link, part in demands[number]:
                    wanted[link] = wanted.get(link, 0) + part * count[number]
            level, full = ONE, -2
            for link, part in sorted(wanted.items()):
                reach = left.get(link, ONE * ONE) // part if part else ONE
                if reach < level:
                    level, full = reach, link
            stopped = waiting if full == -2 else [n for n in waiting if any(k == full and p for k, p in demands[n])]
            for number in stopped:
                rates[number] = max(1, level)
                for link, part in demands[number]:
                    left[link] = max(0, left.get(link, ONE * ONE) - part * count[number] * level)
            waiting = [number for number in waiting if number not in rates]
        taken = sum(-(-self._loads[number].hbm * rates[number] // ONE) for number in flights)
        cores = sum(self._loads[number].cores for number in flights)
        return rates, min(taken, ONE), max(ONE - cores, ONE // 8)

    def beside(self, flights: Sequence[int], compute: int, hbm: int) -> tuple[int, dict[int, int]]:
        """Rate of compute at speed `compute` that wants `hbm` at full speed, and rates of the flights beside it."""
        rates, _, _ = self.rates(flights)
        wants = sorted((-(-self._loads[number].hbm * rates[number] // ONE), number) for number in flights)
        mine = -(-hbm * compute // ONE)
        if not mine:
            return compute, rates
        left, sharers = ONE, len(wants) + 1
        granted: dict[int, int] = {}
        served = False
        share = mine
        for want, number in wants:
            if not served and mine <= min(want, left // sharers):
                left, sharers, served = left - mine, sharers - 1, True
            grant = min(want, left // sharers)
            left, sharers = left - grant, sharers - 1
            rate = rates[number] if grant >= want else max(1, rates[number] * grant // want)
            granted[number] = min(rate, granted.get(number, rate))
        if not served:
            share = min(mine, left)
        return max(1, compute * share // mine), granted


class Network:
    """Transfers under way, and time passing for them. Remaining work is kept in picoseconds × `ONE`."""

    def __init__(self, loads: Loads, flights: Sequence[Flight] = ()) -> None:
        self._loads = loads
        self.left: dict[int, int] = {flight.owner: flight.left for flight in flights}
        self.signature: dict[int, int] = {flight.owner: loads.number(flight.load) for flight in flights}
        self.arrived: dict[int, int] = {}
        """Owner → when its transfer was over."""
        self.busy = 0
        """Time passed with a transfer under way."""
        self._since = 0
        self._rates: dict[int, int] = {}
        self._hbm = 0
        self._compute = ONE
        self._next = _NEVER
        self._rerate()

    def begin(self, now: int, owner: int, load: Load, time: int) -> None:
        """A transfer that takes `time` when alone starts `now`."""
        self._pass(now)
        self.left[owner] = time * ONE
        self.signature[owner] = self._loads.number(load)
        self._rerate()

    def wait(self, now: int, owner: int) -> int:
        """When `owner`'s transfer is over, nothing else happening."""
        while owner in self.left:
            now = max(now, self._next)
            self._pass(now)
        return max(now, self.arrived.get(owner, now))

    def work(self, now: int, time: int, hbm: int) -> int:
        """When compute is over that starts `now`, takes `time` when alone and `hbm` of the memory bandwidth."""
        end = now + time
        if end <= self._next and self._compute == ONE and self._hbm + hbm <= ONE:
            return end
        left = time * ONE
        while left > 0:
            self._pass(now)
            if not self.left:
                return now - (-left // ONE)
            rate, beside = self._compute, self._rates
            if self._hbm - (-hbm * rate // ONE) > ONE:
                rate, beside = self._loads.beside(tuple(self.signature.values()), rate, hbm)
                self._rates = beside
                self._next = self._soonest()
            done = now - (-left // rate)
            upto = min(done, self._next)
            left -= rate * (upto - now)
            now = upto
            self._pass(now)
            self._rerate()
        return now

    def pass_to(self, now: int) -> None:
        """Let time pass until `now`."""
        while self._next <= now:
            self._pass(self._next)
        self._pass(now)

    def flights(self) -> tuple[Flight, ...]:
        """What is under way, in the order of its owners."""
        return tuple(Flight(o, self._loads.load(self.signature[o]), self.left[o]) for o in sorted(self.left))

    def resume(self, now: int, flights: Iterable[Flight], arrived: Mapping[int, int]) -> None:
        """Go on at `now` with `flights`, what became of the transfers while something else was simulated."""
        self._since = now
        self.arrived.update(arrived)
        self.left.clear()
        self.signature.clear()
        for flight in flights:
            self.left[flight.owner] = flight.left
            self.signature[flight.owner] = self._loads.number(flight.load)
        self._rerate()

    def rename(self, now: int, owner: int, other: int) -> None:
        """Know a transfer that is still under way `now` by another owner; for its old one it is over."""
        if owner in self.left:
            self.arrived[owner] = now
            self.left[other] = self.left.pop(owner)
            self.signature[other] = self.signature.pop(owner)

    def _soonest(self) -> int:
        signature, rates = self.signature, self._rates
        return min((self._since - (-left // rates[signature[o]]) for o, left in self.left.items()), default=_NEVER)

    def _pass(self, now: int) -> None:
        passed = now - self._since
        self._since = now
        if not passed or not self.left:
            return
        self.busy += passed
        over = []
        for owner in self.left:
            self.left[owner] -= self._rates[self.signature[owner]] * passed
            if self.left[owner] <= 0:
                over.append(owner)
        for owner in over:
            del self.left[owner], self.signature[owner]
            self.arrived[owner] = now
        if over:
            self._rerate()

    def _rerate(self) -> None:
        self._rates, self._hbm, self._compute = self._loads.rates(tuple(self.signature.values()))
        self._next = self._soonest()
