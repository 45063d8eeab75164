"""What a computation's nodes ask of the machine, whatever their order: plain lists for loops over nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from engine.chips.budget import Kind
from engine.cost.program import Program
from engine.ir.graph import Graph, Ints
from engine.ir.opcodes import is_start
from engine.simulate.carried import Carried, carried_of, loop_key, slot_key
from engine.simulate.sharing import ONE, Load


@dataclass(frozen=True, eq=False)
class Work:
    """Of one computation, callees not included. Lists are indexed by node; times are picoseconds."""

    graph: Graph
    compute: list[int]
    hbm: list[int]
    """Part of the memory bandwidth that a node takes while it computes, of `ONE`."""
    transfer: list[int]
    """Duration alone of the transfer that a start or blocking collective begins."""
    loads: Mapping[int, Load]
    """Of every node with a transfer."""
    kind: list[int]
    blocking: frozenset[int]
    """Nodes whose transfer the compute stream waits for at once."""
    waits: list[int]
    """For a done the owner of its transfer: its start, or a key of `engine.simulate.carried`; else -1."""
    awaited: Ints
    """Instruction id of the start that a done waits for, -1 where there is none or it is not known. Shape [n]."""
    flying: Ints
    """By how much a node changes the number of operations in flight, shape [n]."""
    carried: Carried
    flops: int
    hbm_bytes: int

    def __len__(self) -> int:
        return len(self.graph)


_KNOWN: WeakKeyDictionary[Program, dict[int, Work]] = WeakKeyDictionary()


def work_of(program: Program, computation: int) -> Work:
    """The work of one computation of `program`, put together once."""
    known = _KNOWN.setdefault(program, {})
    if computation not in known:
        known[computation] = _work(program, computation)
    return known[computation]


def _work(program: Program, computation: int) -> Work:
    graph, costs = program.graphs[computation], program.costs[computation]
    dones = (graph.partner >= 0) & (graph.partner < np.arange(len(graph)))
    transfer = np.where(dones, 0, costs.transfer)
    senders = np.flatnonzero(transfer)
    memory = _parts(costs.hbm_bytes, costs.compute, program.machine.hbm_bandwidth)
    blocking = (n for n in senders.tolist() if graph.partner[n] < 0 and not is_start(graph.opcodes[n]))
    carried = carried_of(program.module, graph)
    waits = np.where(dones, graph.partner, -1)
    awaited = np.where(dones, graph.ids[graph.partner], -1)
    flying = np.where(dones, -1, graph.partner >= 0).astype(np.int64)
    flying[[*carried.leaves, *(start for starts in carried.enters.values() for start in starts)]] = 1
    flying[[*carried.takes, *carried.after]] = -1
    for node, slot in carried.takes.items():
        waits[node] = slot_key(slot)
        awaited[node] = _leaving(graph, carried, slot)
    for node, (loop, slot) in carried.after.items():
        waits[node] = loop_key(loop, slot)
        body = program.graphs[int(graph.called.of(loop)[0])]
        awaited[node] = _leaving(body, carried_of(program.module, body), slot)
    return Work(
        graph=graph,
        compute=costs.compute.tolist(),
        hbm=np.where(transfer > 0, 0, memory).tolist(),
        transfer=transfer.tolist(),
        loads=_loads(program, computation, senders),
        kind=costs.kind.tolist(),
        blocking=frozenset(blocking),
        waits=waits.tolist(),
        awaited=awaited,
        flying=flying,
        carried=carried,
        flops=int(costs.flops.sum()),
        hbm_bytes=int(costs.hbm_bytes.sum()),
    )


def _leaving(graph: Graph, carried: Carried, slot: int) -> int:
    """Instruction id of the start that leaves a computation as element `slot` of its result."""
    return next((int(graph.ids[node]) for node, left in carried.leaves.items() if left == slot), -1)


def _parts(volume: Ints, time: Ints, bandwidth: float | npt.NDArray[np.float64]) -> Ints:
    """Part of `bandwidth` (bytes a second) that moving `volume` bytes in `time` picoseconds takes, of `ONE`."""
    wanted = volume.astype(np.float64) / np.maximum(time, 1) * (ONE * 1e12 / bandwidth)
    parts: Ints = np.minimum(ONE, wanted).astype(np.int64)
    return parts


def _loads(program: Program, computation: int, senders: Ints) -> Mapping[int, Load]:
    """What each transfer takes of links, memory and cores while it runs at full speed."""
    costs, machine = program.costs[computation], program.machine
    rates = np.array([link.rate.usable for link in machine.links])
    cores = int(machine.chip.collective_share * ONE)
    sizes = np.diff(costs.load_start)
    used = _parts(costs.load_bytes, np.repeat(costs.transfer, sizes), rates[costs.load_link])
    memory = _parts(costs.hbm_bytes, costs.transfer, machine.hbm_bandwidth)
    known: dict[Load, Load] = {}
    loads: dict[int, Load] = {}
    entries = list(zip(costs.load_link.tolist(), used.tolist(), strict=True))
    ends, kinds, parts = costs.load_start.tolist(), costs.kind.tolist(), memory.tolist()
    for node in senders.tolist():
        links = tuple(sorted(entry for entry in entries[ends[node] : ends[node + 1]] if entry[1]))
        load = Load(links, parts[node], 0 if kinds[node] == Kind.COPY else cores)
        loads[node] = known.setdefault(load, load)
    return loads
