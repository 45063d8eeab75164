"""The event loop over one computation's order: one in-order compute stream and the transfers it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.ir.graph import Ints
from engine.simulate.carried import loop_key, slot_key, slot_of
from engine.simulate.network import Network
from engine.simulate.run import Call, CallPlan, ComputationRun, Plan, Stretch, Totals
from engine.simulate.sharing import Flight, Loads

_UNSETTLED = 32
"""Iterations after which a loop that carries transfers is taken to have settled, should it not have before."""


def execute(plan: Plan, loads: Loads, flights: Sequence[Flight] = ()) -> tuple[ComputationRun, Network]:
    """Execute `plan` while `flights` of its callers are under way; also gives the network as it is at the end.

    Owners of `flights` are negative, those of the plan's own transfers are its nodes.
    """
    execution = _Execution(plan, loads, flights)
    execution.run()
    return execution.result(), execution.network


class _Execution:
    """One execution of one computation. Times are picoseconds from its beginning; lists are indexed by node."""

    def __init__(self, plan: Plan, loads: Loads, flights: Sequence[Flight]) -> None:
        n = len(plan.work)
        self.network = Network(loads, flights)
        self._plan = plan
        self._loads = loads
        self._reached, self._start, self._end, self._depart = [0] * n, [0] * n, [0] * n, [-1] * n
        self._calls: dict[int, Call] = {}
        self._called = Totals()
        """Of everything that was called."""
        self._rest = {start: (0, slot_key(slot)) for start, slot in plan.work.carried.leaves.items()}
        """Start → (begin, owner) of the rest of its transfer that loop state carries in."""
        self._now = self._busy = self._exposed = 0

    def run(self) -> None:
        """Execute every node, in order."""
        work, network, calls = self._plan.work, self.network, self._plan.calls
        reached, start, end, depart = self._reached, self._start, self._end, self._depart
        compute, hbm, transfer, waits, blocking = work.compute, work.hbm, work.transfer, work.waits, work.blocking
        now = busy = exposed = 0
        for node in self._plan.order.nodes.tolist():
            reached[node] = now
            if waits[node] != -1 and network.left:
                now = network.wait(now, waits[node])
                exposed += now - reached[node]
            start[node] = now
            time = compute[node]
            if time:
                now = network.work(now, time, hbm[node]) if network.left else now + time
                busy += now - start[node]
            time = transfer[node]
            if time:
                depart[node] = now
                network.begin(now, node, work.loads[node], time)
                if node in blocking:
                    now = network.wait(now, node)
                    exposed += now - depart[node]
            if node in calls:
                now = self._run_called(node, now)
            end[node] = now
        network.pass_to(now)
        self._now, self._busy, self._exposed = now, busy, exposed

    def result(self) -> ComputationRun:
        """What `run` came to."""
        work, network, now = self._plan.work, self.network, self._now
        carried = _carried(self._rest, network, now) if self._rest else {}
        own = Totals(
            makespan=now - self._called.makespan,
            compute=self._busy,
            exposed=self._exposed,
            comm=_comm(self._depart, network.arrived, now) + sum(over - begin for begin, over in carried.values()),
            transfer_union=network.busy,
            flops=work.flops,
            hbm_bytes=work.hbm_bytes,
        )
        arrive = np.full(len(work), -1, dtype=np.int64)
        for owner, time in network.arrived.items():
            if owner >= 0:
                arrive[owner] = time
        return ComputationRun(
            plan=self._plan,
            reached=_column(self._reached),
            start=_column(self._start),
            end=_column(self._end),
            depart=_column(self._depart),
            arrive=_freeze(arrive),
            calls=self._calls,
            totals=self._called.plus(own),
            flights=tuple(flight for flight in network.flights() if flight.owner >= 0),
            carried=carried,
        )

    def _run_called(self, node: int, now: int) -> int:
        """Execute what `node` calls, beginning `now`; when that ends."""
        network = self.network
        network.pass_to(now)
        entering = self._plan.work.carried.enters.get(node, {})
        for begun, slot in entering.items():
            network.rename(now, begun, loop_key(node, slot))
        call = self._call(self._plan.calls[node], node, now)
        self._calls[node] = call
        self._called = self._called.plus(call.totals)
        now += call.totals.makespan
        self._rest.update({begun: (now, loop_key(node, slot)) for begun, slot in entering.items()})
        return now

    def _call(self, plan: CallPlan, node: int, now: int) -> Call:
        if len(plan.branches) > 1:
            return _conditional(plan, self.network, now)
        runs = plan.branches[0][1]
        stretches: list[Stretch] = []
        totals = Totals()
        left = plan.trips
        while left:
            settled = len(stretches) >= _UNSETTLED
            stretch = self._iterate(runs, node, now + totals.makespan, left, plan.copies, settled=settled)
            stretches.append(stretch)
            totals = totals.plus(stretch.totals, stretch.count)
            left -= stretch.count
        if plan.last:
            stretch = self._iterate(plan.last, node, now + totals.makespan)
            stretches.append(stretch)
            totals = totals.plus(stretch.totals)
        return Call(plan.trips, totals, tuple(stretches))

    def _iterate(
        self,
        runs: tuple[ComputationRun, ...],
        node: int,
        now: int,
        trips: int = 1,
        copies: int = 0,
        *,
        settled: bool = False,
    ) -> Stretch:
        """One iteration of the loop at `node`, and as many of `trips` as run alike: all where nothing is under way.

        Rates depend on which transfers are under way, not on what is left of them: while no transfer of the callers
        ends within an iteration the next is the same, and what it moves of each too. What the loop's state carries must
        be left as it was found, or come to that (`settled`).
        """
        network = self.network
        if not network.left and not any(run.plan.work.carried.leaves for run in runs):
            return Stretch(trips, runs, copies)
        before, busy = dict(network.left), network.busy
        again: list[ComputationRun] = []
        passed = 0
        for run in runs:
            again.append(self._beside(run, node, now + passed))
            passed += again[-1].makespan
        if copies:
            network.pass_to(now + passed + copies)
        if set(network.left) != set(before):
            return Stretch(1, tuple(again), copies)
        used = {owner: before[owner] - rest for owner, rest in network.left.items() if slot_of(owner, node) is None}
        if not settled and any(before[owner] != rest for owner, rest in network.left.items() if owner not in used):
            return Stretch(1, tuple(again), copies)
        alike = min(((network.left[owner] - 1) // part for owner, part in used.items() if part), default=trips)
        alike = min(alike, trips - 1)
        stretch = Stretch(1 + alike, tuple(again), copies)
        network.busy += alike * (network.busy - busy)
        flights = [replace(f, left=f.left - alike * used.get(f.owner, 0)) for f in network.flights()]
        network.resume(now + (1 + alike) * stretch.duration, flights, {})
        return stretch

    def _beside(self, run: ComputationRun, node: int, now: int) -> ComputationRun:
        """Execute what the loop at `node` runs once more, beside what is under way; the network is then at its end."""
        owners: dict[int, int] = {}
        inside: list[Flight] = []
        for number, flight in enumerate(self.network.flights()):
            slot = slot_of(flight.owner, node)
            key = -2 - number if slot is None else slot_key(slot)
            owners[key] = flight.owner
            inside.append(replace(flight, owner=key))
        done, after = execute(run.plan, self._loads, inside)
        flights = [replace(flight, owner=owners[flight.owner]) for flight in after.flights() if flight.owner in owners]
        leaves = run.plan.work.carried.leaves
        left = (flight for flight in done.flights if flight.owner in leaves)
        flights.extend(replace(flight, owner=loop_key(node, leaves[flight.owner])) for flight in left)
        arrived = {owners[key]: now + time for key, time in after.arrived.items() if key in owners}
        self.network.resume(now + done.makespan, flights, arrived)
        return done


def _comm(depart: list[int], arrived: Mapping[int, int], end: int) -> int:
    """Sum of the durations of a computation's own transfers; those that outlive it count up to its `end`."""
    return sum(arrived.get(node, end) - time for node, time in enumerate(depart) if time >= 0)


def _carried(rest: Mapping[int, tuple[int, int]], network: Network, end: int) -> Mapping[int, tuple[int, int]]:
    """By start, (begin, end) of transfers that loop state carried in; `rest` gives their beginnings and owners."""
    known = network.arrived.keys() | network.left.keys()
    found = {node: (begin, network.arrived.get(key, end)) for node, (begin, key) in rest.items() if key in known}
    return {node: (begin, over) for node, (begin, over) in found.items() if over > begin}


def _conditional(plan: CallPlan, network: Network, now: int) -> Call:
    """The mean over the branches, each as it runs alone; rounded up, so that parts still add up to no less."""
    weight = sum(branch_weight for branch_weight, _ in plan.branches)
    sums = Totals()
    for branch_weight, runs in plan.branches:
        for run in runs:
            sums = sums.plus(run.totals, branch_weight)
    means = Totals(*(-(-total // weight) for total in sums))
    makespan = means.makespan
    busy = network.busy
    network.pass_to(now + makespan)
    beside = makespan - (network.busy - busy)
    union = min(means.transfer_union, beside)
    return Call(1, means._replace(compute=makespan - means.exposed, transfer_union=union), ())


def _column(values: list[int]) -> Ints:
    return _freeze(np.array(values, dtype=np.int64))


def _freeze(array: Ints) -> Ints:
    array.flags.writeable = False
    return array
