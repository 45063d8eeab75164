"""Puts a module together with its prices, buffers and trip counts, as a `Program`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.chips.budget import Kind
from engine.chips.machine import Machine
from engine.cost.costs import Costs, Origin
from engine.cost.imports import ImportedCosts, compiler_estimates
from engine.cost.pricing import Pricing
from engine.cost.program import Program, UsedCosts
from engine.ir.buffering import buffers_of
from engine.ir.graph import Graph
from engine.ir.graphs import SEQUENTIAL, graphs_of
from engine.ir.loop_copies import shows_copies
from engine.ir.module import Module
from engine.ir.trips import trips_of

_LISTED = 20
"""Names that a note lists before it only counts the rest; `ImportedCosts.unmatched` gives all of them."""


def prepare(
    module: Module, machine: Machine, imports: Sequence[ImportedCosts] = (), *, estimates: bool = True
) -> Program:
    """Graphs, costs, buffers and trip counts of everything `module` executes on `machine`.

    `imports` replace modelled times where their names match, the higher `Origin` over the lower, among equals the
    later over the earlier. With `estimates` the `estimated_cycles` that TPU HLO carries come before all of them.
    """
    trips, notes = trips_of(module)
    graphs = graphs_of(module)
    pricing = Pricing(module, machine)
    machine = pricing.tell_links_apart(graphs.values())
    costs = {id_: pricing.costs(graph) for id_, graph in graphs.items()}
    carried = compiler_estimates(module, machine.chip) if estimates else None
    ranked = sorted((*((carried,) if carried else ()), *imports), key=lambda found: found.origin)
    imported = tuple(_used(found, module, graphs) for found in ranked)
    said = [note for found in imported for note in _notes(found)]
    weights, unsaid = _weights(module, graphs, ranked)
    for found in ranked:
        costs = {id_: _replaced(costs[id_], graph, found) for id_, graph in graphs.items()}
    return Program(
        module=module,
        machine=machine,
        graphs=graphs,
        costs=costs,
        buffers={id_: buffers_of(module, graph) for id_, graph in graphs.items()},
        trips=trips,
        shows_copies=shows_copies(module),
        weights=weights,
        imported=imported,
        notes=(*machine.notes, *notes, *unsaid, *said),
    )


def _weights(
    module: Module, graphs: Mapping[int, Graph], imports: Sequence[ImportedCosts]
) -> tuple[Mapping[int, tuple[int, ...]], list[str]]:
    """Branch weights by id of the conditional, and what could not be told or used.

    They are the user's, else how often a profile saw each branch's instructions; later imports win.
    """
    weights: dict[int, tuple[int, ...]] = {}
    unknown, notes = [], []
    for graph in graphs.values():
        for node, opcode in enumerate(graph.opcodes):
            called = graph.called.of(node).tolist()
            if opcode != "conditional" or len(called) < 2:
                continue
            name = graph.names[node]
            seen = [found.branches.get(name) or _seen(module, called, found) for found in imports]
            for found, given in zip(imports, seen, strict=True):
                if given and len(given) != len(called):
                    notes.append(
                        f"{found.source}: {name} has {len(called)} branches, but {len(given)} weights came: not used."
                    )
                elif given:
                    weights[int(graph.ids[node])] = given
            if int(graph.ids[node]) not in weights:
                unknown.append(name)
    if unknown:
        notes.append(f"Branches are taken to be equally likely: {_listed(unknown)}.")
    return weights, notes


def _seen(module: Module, called: Sequence[int], found: ImportedCosts) -> tuple[int, ...]:
    """How often a profile saw each of `called` run; nothing where it saw none of them."""
    counts = tuple(
        max((found.counts.get(i.name, 0) for i in module.computations[c].instructions), default=0) for c in called
    )
    return counts if any(counts) else ()


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _replaced(costs: Costs, graph: Graph, found: ImportedCosts) -> Costs:
    """`costs` with the times that `found` has; loops, calls and conditionals keep those of their callees."""
    times = found.times
    hits = [
        (node, times[name])
        for node, (name, opcode) in enumerate(zip(graph.names, graph.opcodes, strict=True))
        if name in times and opcode not in SEQUENTIAL
    ]
    if not hits:
        return costs
    nodes, values = (np.array(column, np.int64) for column in zip(*hits, strict=True))
    split = np.array([graph.opcodes[n].endswith(("-start", "-done", "-update")) for n in nodes.tolist()])
    moves = (costs.kind[nodes] != Kind.COMPUTE) & ~(found.on_stream & split)
    dones = np.array([graph.opcodes[n].endswith(("-done", "-update")) for n in nodes.tolist()])
    compute, transfer, origin = costs.compute.copy(), costs.transfer.copy(), costs.origin.copy()
    compute[nodes[~moves]] = values[~moves]
    transfer[nodes[moves & ~dones]] = values[moves & ~dones]
    origin[nodes[~(moves & dones)]] = found.origin
    for column in (compute, transfer, origin):
        column.setflags(write=False)
    return replace(costs, compute=compute, transfer=transfer, origin=origin)


def _used(found: ImportedCosts, module: Module, graphs: Mapping[int, Graph]) -> UsedCosts:
    executed = {
        name: opcode for graph in graphs.values() for name, opcode in zip(graph.names, graph.opcodes, strict=True)
    }
    callers = tuple(sorted(name for name in found.times if executed.get(name) in SEQUENTIAL))
    inside = tuple(sorted(name for name in found.times if name not in executed and name in module.by_name))
    unmatched = found.unmatched(module)
    used = sum(name in executed for name in found.times) - len(callers)
    return UsedCosts(found.source, found.origin, used, unmatched, callers, inside)


def _notes(found: UsedCosts) -> list[str]:
    """What was used of an import and, by name, what was not."""
    what = {Origin.COMPILER: "the compiler's", Origin.MEASURED: "measured"}.get(found.origin, "given")
    notes = [f"Times of {found.used} instructions are {what}: {found.source}."]
    for names, why in (
        (found.unmatched, "match no instruction"),
        (found.callers, "are loops, calls or conditionals, whose times are those of their callees"),
        (found.inside, "lie inside fusions or reducers, which are priced whole"),
    ):
        if names:
            notes.append(f"{found.source}: {len(names)} names {why}: {_listed(names)}.")
    return notes
