"""Prepares a computation and its order for the event loop."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from engine.chips.budget import Kind
from engine.cost.program import Program
from engine.ir.graph import Graph, Ints
from engine.schedule.problem import Order
from engine.simulate.memory import live_bytes
from engine.simulate.run import CallPlan, ComputationRun, Plan
from engine.simulate.sharing import ONE, Load

_ASYNCHRONOUS = ("send", "recv")


def plan_computation(
    program: Program, computation: int, order: Order, callees: Mapping[int, ComputationRun]
) -> Plan:
    """Prepare `computation` in `order`; `callees` are the runs of the computations that it calls."""
    graph, costs = program.graphs[computation], program.costs[computation]
    transfer = costs.transfer.copy()
    dones = (graph.partner >= 0) & (graph.partner < np.arange(len(graph)))
    transfer[dones] = 0
    senders = np.flatnonzero(transfer)
    blocking = frozenset(int(n) for n in senders if graph.partner[n] < 0 and not _is_asynchronous(graph.opcodes[n]))
    calls = {node: _plan_call(program, graph, node, callees) for node in _callers(graph, callees)}
    bandwidth = program.machine.chip.hbm_bandwidth
    place = np.empty(len(graph), dtype=np.int64)
    place[order.nodes] = np.arange(len(graph))
    held, in_flight = _held(graph, place, costs.kind, calls)
    buffers = program.buffers[computation]
    live = live_bytes(buffers, place)
    for node, call in calls.items():
        live[place[node]] += max((run.extra for run in call.runs), default=0)
    peak = int(live.max(initial=0))
    return Plan(
        graph=graph,
        order=order,
        compute=costs.compute.tolist(),
        hbm=_parts(costs.hbm_bytes, costs.compute, bandwidth).tolist(),
        transfer=transfer.tolist(),
        loads=_loads(program, computation, senders),
        kind=costs.kind.tolist(),
        blocking=blocking,
        waits=np.where(dones, graph.partner, -1).tolist(),
        calls=calls,
        flops=int(costs.flops.sum()),
        hbm_bytes=int(costs.hbm_bytes.sum()),
        held=held,
        in_flight=in_flight,
        peak=peak,
        extra=peak - int(buffers.size[buffers.live_in].sum()),
    )


def _is_asynchronous(opcode: str) -> bool:
    return opcode.endswith("-start") or opcode in _ASYNCHRONOUS


def _callers(graph: Graph, callees: Mapping[int, ComputationRun]) -> list[int]:
    nodes = np.flatnonzero(np.diff(graph.called.starts))
    return [int(n) for n in nodes if any(int(c) in callees for c in graph.called.of(int(n)))]


def _plan_call(program: Program, graph: Graph, node: int, callees: Mapping[int, ComputationRun]) -> CallPlan:
    called = [callees[int(c)] for c in graph.called.of(node) if int(c) in callees]
    opcode = graph.opcodes[node]
    if opcode == "while":
        body, condition = called[0], tuple(called[1:])
        return CallPlan(program.trips[int(graph.ids[node])], ((1.0, (*condition, body)),), condition)
    if opcode == "conditional":
        return CallPlan(1, tuple((1.0 / len(called), (run,)) for run in called))
    return CallPlan(1, ((1.0, tuple(called)),))


def _parts(volume: Ints, time: Ints, bandwidth: float) -> Ints:
    """Part of `bandwidth` (bytes a second) that moving `volume` bytes in `time` picoseconds takes, of `ONE`."""
    wanted = volume.astype(np.float64) * (ONE * 1e12 / bandwidth)
    return np.minimum(ONE, wanted / np.maximum(time, 1)).astype(np.int64)


def _loads(program: Program, computation: int, senders: Ints) -> Mapping[int, Load]:
    costs = program.costs[computation]
    parts = _parts(costs.hbm_bytes[senders], costs.transfer[senders], program.machine.chip.hbm_bandwidth)
    loads: dict[int, Load] = {}
    for node, hbm in zip(senders.tolist(), parts.tolist(), strict=True):
        first, last = int(costs.load_start[node]), int(costs.load_start[node + 1])
        volume = costs.load_bytes[first:last].tolist()
        most = max(volume, default=0)
        links = zip(costs.load_link[first:last].tolist(), volume, strict=True)
        loads[node] = Load(tuple(sorted((link, b * ONE // most) for link, b in links if b)), hbm)
    return loads


def _held(graph: Graph, place: Ints, kind: npt.NDArray[np.uint8], calls: Mapping[int, CallPlan]) -> tuple[Ints, int]:
    """Most in flight by kind, and of all kinds together. `place` is each node's position."""
    numbers = np.arange(len(graph))
    dones = np.flatnonzero((graph.partner >= 0) & (graph.partner < numbers))
    starts = graph.partner[dones]
    change = np.zeros((len(graph) + 1, len(Kind)), dtype=np.int64)
    np.add.at(change, (place[starts], kind[starts]), 1)
    np.add.at(change, (place[dones] + 1, kind[starts]), -1)
    held = np.cumsum(change, axis=0)
    most, in_flight = held.max(axis=0), int(held.sum(axis=1).max())
    for node, call in calls.items():
        at = held[place[node]]
        for run in call.runs:
            most = np.maximum(most, at + run.held)
            in_flight = max(in_flight, int(at.sum()) + run.in_flight)
    return most, in_flight
