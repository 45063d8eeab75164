"""The event loop over one computation's order: one in-order compute stream and the transfers it starts."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from engine.ir.graph import Ints
from engine.simulate.run import Call, CallPlan, ComputationRun, Plan, Stretch, Totals
from engine.simulate.sharing import Flight, Loads, Network


def execute(plan: Plan, loads: Loads, flights: Sequence[Flight] = ()) -> tuple[ComputationRun, Network]:
    """Execute `plan` while `flights` of its callers are under way; also gives the network as it is at the end.

    Owners of `flights` are negative, those of the plan's own transfers are its nodes.
    """
    work, call_plans = plan.work, plan.calls
    n = len(work)
    reached, start, end, depart = [0] * n, [0] * n, [0] * n, [-1] * n
    network = Network(loads, flights)
    calls: dict[int, Call] = {}
    compute, hbm, transfer, waits, blocking = work.compute, work.hbm, work.transfer, work.waits, work.blocking
    totals = Totals()
    now = busy = exposed = 0
    for node in plan.order.nodes.tolist():
        reached[node] = now
        if waits[node] >= 0 and network.left:
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
        if node in call_plans:
            call = _call(call_plans[node], network, now, loads)
            calls[node] = call
            totals = totals.plus(call.totals)
            now += call.totals.makespan
        end[node] = now
    network.pass_to(now)
    own = Totals(
        makespan=now - totals.makespan,
        compute=busy,
        exposed=exposed,
        comm=_comm(depart, network.arrived, now),
        transfer_union=network.busy,
        flops=work.flops,
        hbm_bytes=work.hbm_bytes,
    )
    arrive = np.full(n, -1, dtype=np.int64)
    for owner, time in network.arrived.items():
        if owner >= 0:
            arrive[owner] = time
    run = ComputationRun(
        plan=plan,
        reached=_column(reached),
        start=_column(start),
        end=_column(end),
        depart=_column(depart),
        arrive=_freeze(arrive),
        calls=MappingProxyType(calls),
        totals=totals.plus(own),
        flights=tuple(flight for flight in network.flights() if flight.owner >= 0),
    )
    return run, network


def _comm(depart: list[int], arrived: dict[int, int], end: int) -> int:
    """Sum of the durations of a computation's own transfers; those that outlive it count up to its `end`."""
    return sum(arrived.get(node, end) - time for node, time in enumerate(depart) if time >= 0)


def _call(plan: CallPlan, network: Network, now: int, loads: Loads) -> Call:
    """Execute what a node calls, beginning `now`, while the transfers of `network` go on."""
    if len(plan.branches) > 1:
        return _conditional(plan, network, now)
    network.pass_to(now)
    runs = plan.branches[0][1]
    stretches: list[Stretch] = []
    totals = Totals()
    left = plan.trips
    while left:
        stretch = _iterate(runs, plan.copies, left, network, now + totals.makespan, loads)
        stretches.append(stretch)
        totals = totals.plus(stretch.totals, stretch.count)
        left -= stretch.count
    if plan.last:
        stretch = _iterate(plan.last, 0, 1, network, now + totals.makespan, loads)
        stretches.append(stretch)
        totals = totals.plus(stretch.totals)
    return Call(plan.trips, totals, tuple(stretches))


def _iterate(
    runs: tuple[ComputationRun, ...], copies: int, trips: int, network: Network, now: int, loads: Loads
) -> Stretch:
    """One iteration, and as many after it as run alike: all when nothing of the callers is under way.

    Rates depend on which transfers are under way, not on what is left of them: while no transfer ends within an
    iteration the next is the same, and what it moves of each transfer too.
    """
    if not network.left:
        return Stretch(trips, runs, copies)
    before, busy = dict(network.left), network.busy
    again: list[ComputationRun] = []
    passed = 0
    for run in runs:
        outer = network.flights()
        keys = {-1 - k: flight.owner for k, flight in enumerate(outer)}
        inner = tuple(Flight(-1 - k, flight.load, flight.left) for k, flight in enumerate(outer))
        done, after = execute(run.plan, loads, inner)
        left = {keys[k]: rest for k, rest in after.left.items() if k < 0}
        arrived = {keys[k]: now + passed + time for k, time in after.arrived.items() if k < 0}
        passed += done.makespan
        network.resume(now + passed, left, arrived)
        again.append(done)
    if copies:
        network.pass_to(now + passed + copies)
    if len(network.left) < len(before):
        return Stretch(1, tuple(again), copies)
    used = {owner: before[owner] - rest for owner, rest in network.left.items()}
    alike = min(((rest - 1) // used[owner] for owner, rest in network.left.items() if used[owner]), default=trips)
    alike = min(alike, trips - 1)
    stretch = Stretch(1 + alike, tuple(again), copies)
    rest = {owner: left - alike * used[owner] for owner, left in network.left.items()}
    network.busy += alike * (network.busy - busy)
    network.resume(now + (1 + alike) * stretch.duration, rest, {})
    return stretch


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
