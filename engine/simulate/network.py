"""Transfers under way, and time passing for them and for the compute beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.simulate.sharing import ONE, Flight, Load, Loads

_NEVER = 1 << 62


class Network:
    """Transfers under way, and time passing for them. Remaining work is kept in picoseconds × `ONE`."""

    def __init__(self, loads: Loads, flights: Sequence[Flight] = ()) -> None:
        self._loads = loads
        self.left = {flight.owner: flight.left for flight in flights}
        """Owner → what is left of its transfer."""
        self.signature = {flight.owner: loads.number(flight.load) for flight in flights}
        """Owner → number of its load."""
        self.arrived: dict[int, int] = {}
        """Owner → when its transfer was over."""
        self.busy = 0
        """Time passed with a transfer under way."""
        self._since = 0
        self._rates: Mapping[int, int] = {}
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
