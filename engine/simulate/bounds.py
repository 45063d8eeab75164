"""How fast a program could be under any schedule: what no order of its instructions can beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from engine.cost.program import Program
from engine.ir.graph import Graph
from engine.simulate.plan import branch_weights, callers
from engine.simulate.sharing import HBM, ONE
from engine.simulate.work import Work, work_of


class ResourceBound(NamedTuple):
    """Time that a link class, or the memory, needs for everything it carries."""

    name: str
    time: int
    """Picoseconds."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds for the makespan of the entry computation, in picoseconds, under one cost model."""

    critical_path: int
    """Longest chain of dependent instructions and transfers, each as if it ran alone."""
    compute: int
    """All work of the compute stream, blocking collectives included."""
    resources: tuple[ResourceBound, ...]
    """Of each link class and of the memory bandwidth; empty without sharing."""

    @property
    def best(self) -> int:
        """The largest of them: the lower bound."""
        return max(self.critical_path, self.compute, *(resource.time for resource in self.resources))


class _Sums(NamedTuple):
    """Of one execution of a computation, callees included."""

    path: int
    compute: int
    used: Mapping[int, int]
    """Resource → time at full speed × `ONE`."""

    @property
    def best(self) -> int:
        return max(self.path, self.compute, max(self.used.values(), default=0) // ONE)


def bounds(program: Program, *, sharing: bool = True) -> Bounds:
    """Bounds that hold for every order, for simulations with or without sharing of links and memory."""
    sums: dict[int, _Sums] = {}
    for computation in program.graphs:
        sums[computation] = _sums(program, work_of(program, computation), sums, sharing)
    entry = sums[program.module.proto.entry_computation_id]
    names = {HBM: "HBM"} | {number: link.name for number, link in enumerate(program.machine.links)}
    heaviest: dict[str, int] = {}
    for number, used in sorted(entry.used.items()):
        heaviest[names[number]] = max(used // ONE, heaviest.get(names[number], 0))
    resources = tuple(ResourceBound(name, used) for name, used in heaviest.items())
    return Bounds(entry.path, entry.compute, resources)


def _sums(program: Program, work: Work, callees: Mapping[int, _Sums], sharing: bool) -> _Sums:
    time = list(work.compute)
    used: dict[int, int] = {}
    for node in callers(work.graph):
        called = _called(program, work.graph, node, callees)
        time[node] += called.best
        for resource, amount in called.used.items():
            used[resource] = used.get(resource, 0) + amount
    if sharing:
        _add_use(work, used)
    busy = sum(time) + sum(work.transfer[node] for node in work.blocking)
    return _Sums(_longest_path(work, time), busy, used)


def _called(program: Program, graph: Graph, node: int, callees: Mapping[int, _Sums]) -> _Sums:
    """Of everything that a node calls."""
    called = [callees[int(c)] for c in graph.called.of(node)]
    if graph.opcodes[node] == "conditional":
        # The simulator takes a mean for the time and lets the branches' transfers be.
        weights = branch_weights(program, graph, node)
        if len([weight for weight in weights if weight]) == 1:
            return next(branch for weight, branch in zip(weights, called, strict=True) if weight)
        mean = sum(w * branch.best for w, branch in zip(weights, called, strict=True)) // sum(weights)
        return _Sums(mean, mean, {})
    trips = program.trips[int(graph.ids[node])] if graph.opcodes[node] == "while" else 1
    times = [trips, *(trips + 1 for _ in called[1:])]
    used: dict[int, int] = {}
    for count, one in zip(times, called, strict=True):
        for resource, amount in one.used.items():
            used[resource] = used.get(resource, 0) + count * amount
    copies = program.copies.get(int(graph.called.of(node)[0]), 0) if graph.opcodes[node] == "while" else 0
    total = sum(count * one.best for count, one in zip(times, called, strict=True)) + trips * copies
    return _Sums(total, total, used)


def _add_use(work: Work, used: dict[int, int]) -> None:
    for node, load in work.loads.items():
        if node not in work.blocking and work.graph.partner[node] < 0:
            continue  # It may outlive the computation.
        for resource, part in (*load.links, (HBM, load.hbm)):
            used[resource] = used.get(resource, 0) + part * work.transfer[node]
    used[HBM] = used.get(HBM, 0) + sum(part * time for part, time in zip(work.hbm, work.compute, strict=True))


def _longest_path(work: Work, time: list[int]) -> int:
    """Picoseconds of the longest chain of predecessors; a done also comes its transfer after its start."""
    graph, waits, transfer, blocking = work.graph, work.waits, work.transfer, work.blocking
    first, items = graph.predecessors.starts.tolist(), graph.predecessors.items.tolist()
    end: list[int] = []
    for node, took in enumerate(time):
        ready = max((end[before] for before in items[first[node] : first[node + 1]]), default=0)
        if waits[node] >= 0:
            ready = max(ready, end[waits[node]] + transfer[waits[node]])
        end.append(ready + took + (transfer[node] if node in blocking else 0))
    return max(end, default=0)
