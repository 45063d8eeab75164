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


def execute(plan: Plan, loads: Loads, flights: Sequence[Flight] = ()) -> tuple[ComputationRun, Network]:
    """Execute `plan` while `flights` of its callers are under way; also gives the network as it is at the end.

    Owners of `flights` are negative, those of the plan's own transfers are its nodes.
    """
    work, call_plans = plan.work, plan.calls
    n = len(work)
    reached, start, end, depart = [0] * n, [0] * n, [0] * n, [-1] * n
    network = Network(loads, flights)
    calls: dict[int, Call] = {}
    rest = {start_: (0, slot_key(slot)) for start_, slot in work.carried.leaves.items()}
    compute, hbm, transfer, waits, blocking = work.compute, work.hbm, work.transfer, work.waits, work.blocking
    totals = Totals()
    now = busy = exposed = 0
    for node in plan.order.nodes.tolist():
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
        if node in call_plans:
            network.pass_to(now)
            entering = work.carried.enters.get(node, {})
            for begun, slot in entering.items():
                network.rename(now, begun, loop_key(node, slot))
            call = _call(call_plans[node], node, network, now, loads)
            calls[node] = call
            totals = totals.plus(call.totals)
            now += call.totals.makespan
            rest.update({begun: (now, loop_key(node, slot)) for begun, slot in entering.items()})
        end[node] = now
    network.pass_to(now)
    carried = _carried(rest, network, now) if rest else {}
    own = Totals(
        makespan=now - totals.makespan,
        compute=busy,
        exposed=exposed,
        comm=_comm(depart, network.arrived, now) + sum(over - begin for begin, over in carried.values()),
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
        calls=calls,
        totals=totals.plus(own),
        flights=tuple(flight for flight in network.flights() if flight.owner >= 0),
        carried=carried,
    )
    return run, network


def _comm(depart: list[int], arrived: Mapping[int, int], end: int) -> int:
    """Sum of the durations of a computation's own transfers; those that outlive it count up to its `end`."""
    return sum(arrived.get(node, end) - time for node, time in enumerate(depart) if time >= 0)


def _carried(rest: Mapping[int, tuple[int, int]], network: Network, end: int) -> Mapping[int, tuple[int, int]]:
    """By start, (begin, end) of transfers that loop state carried in; `rest` gives their beginnings and owners."""
    known = network.arrived.keys() | network.left.keys()
    found = {node: (begin, network.arrived.get(key, end)) for node, (begin, key) in rest.items() if key in known}
    return {node: (begin, over) for node, (begin, over) in found.items() if over > begin}


def _call(plan: CallPlan, node: int, network: Network, now: int, loads: Loads) -> Call:
    """Execute what `node` calls, beginning `now`, while the transfers of `network` go on."""
    if len(plan.branches) > 1:
        return _conditional(plan, network, now)
    runs = plan.branches[0][1]
    stretches: list[Stretch] = []
    totals = Totals()
    left = plan.trips
    while left:
        settled = len(stretches) >= _UNSETTLED
        stretch = _iterate(runs, plan.copies, left, node, network, now + totals.makespan, loads, settled=settled)
        stretches.append(stretch)
        totals = totals.plus(stretch.totals, stretch.count)
        left -= stretch.count
    if plan.last:
        stretch = _iterate(plan.last, 0, 1, node, network, now + totals.makespan, loads)
        stretches.append(stretch)
        totals = totals.plus(stretch.totals)
    return Call(plan.trips, totals, tuple(stretches))


_UNSETTLED = 32
"""Iterations after which a loop that carries transfers is taken to have settled, should it not have before."""


def _iterate(
    runs: tuple[ComputationRun, ...],
    copies: int,
    trips: int,
    node: int,
    network: Network,
    now: int,
    loads: Loads,
    *,
    settled: bool = False,
) -> Stretch:
    """One iteration of the loop at `node`, and as many after it as run alike: all where nothing is under way.

    Rates depend on which transfers are under way, not on what is left of them: while no transfer of the callers ends
    within an iteration the next is the same, and what it moves of each too. What the loop's state carries must be left
    as it was found, or come to that (`settled`).
    """
    if not network.left and not any(run.plan.work.carried.leaves for run in runs):
        return Stretch(trips, runs, copies)
    before, busy = dict(network.left), network.busy
    again: list[ComputationRun] = []
    passed = 0
    for run in runs:
        again.append(_beside(run, node, network, now + passed, loads))
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


def _beside(run: ComputationRun, node: int, network: Network, now: int, loads: Loads) -> ComputationRun:
    """Execute what the loop at `node` runs once more, beside what is under way, and leave `network` at its end."""
    owners: dict[int, int] = {}
    inside: list[Flight] = []
    for number, flight in enumerate(network.flights()):
        slot = slot_of(flight.owner, node)
        key = -2 - number if slot is None else slot_key(slot)
        owners[key] = flight.owner
        inside.append(replace(flight, owner=key))
    done, after = execute(run.plan, loads, inside)
    flights = [replace(flight, owner=owners[flight.owner]) for flight in after.flights() if flight.owner in owners]
    leaves = run.plan.work.carried.leaves
    left = (flight for flight in done.flights if flight.owner in leaves)
    flights.extend(replace(flight, owner=loop_key(node, leaves[flight.owner])) for flight in left)
    arrived = {owners[key]: now + time for key, time in after.arrived.items() if key in owners}
    network.resume(now + done.makespan, flights, arrived)
    return done


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
