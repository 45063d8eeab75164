"""Puts a module together with its prices, buffers and trip counts, as a `Program`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.chips.budget import Kind
from engine.chips.machine import Machine
from engine.cost.carrying import Loaded
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
from engine.quantities import counted_text

_LISTED = 20
"""Names that a note lists before it only counts the rest; `ImportedCosts.unmatched` gives all of them."""


def prepare(
    module: Module,
    machine: Machine,
    imports: Sequence[ImportedCosts] = (),
    *,
    estimates: bool = True,
    loaded: Loaded | None = None,
) -> Program:
    """Graphs, costs, buffers and trip counts of everything `module` executes on `machine`.

    `imports` replace modelled times where their names match, the higher `Origin` over the lower, among equals the
    later over the earlier. With `estimates` the `estimated_cycles` that TPU HLO carries come before all of them.
    `loaded` has the same imports, and its module's estimates: what passes made of its instructions takes over their
    times, where that can be told.
    """
    trips, notes = trips_of(module)
    graphs = graphs_of(module)
    pricing = Pricing(module, machine)
    machine = pricing.tell_links_apart(graphs.values())
    costs = {id_: pricing.costs(graph) for id_, graph in graphs.items()}
    loaded = loaded if loaded is not None and loaded.module is not module else None
    own = compiler_estimates(module, machine.chip) if estimates and loaded is None else None
    ranked = loaded.given_by if loaded is not None else sorted((*((own,) if own else ()), *imports), key=_rank)
    carried_on = _Carried(costs)
    if loaded is not None:
        carried_on = _carry(loaded, module, graphs, costs, pricing)
        costs = dict(carried_on.costs)
    imported = tuple(_used(found, module, graphs, loaded, carried_on) for found in ranked)
    said = [note for found in imported for note in _notes(found)]
    weights, unsaid = _weights(module, graphs, ranked)
    for found in ranked:
        costs = {id_: _replaced(costs[id_], graph, found, carried_on.reused) for id_, graph in graphs.items()}
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
        notes=(*machine.notes, *notes, *((_SCATTERED,) if pricing.scattered else ()), *unsaid, *said),
    )


_SCATTERED = (
    "All-reduces of whose sum every device keeps only its own slice are priced as the reduce-scatters that compilers "
    "make of them."
)


def _rank(found: ImportedCosts) -> Origin:
    return found.origin


@dataclass(frozen=True, slots=True)
class _Carried:
    """What came of the times of the module as loaded."""

    costs: Mapping[int, Costs]
    kept: frozenset[int] = frozenset()
    scaled: frozenset[int] = frozenset()
    mixed: frozenset[int] = frozenset()
    """These three as in `Carrying`, over all computations."""
    reused: frozenset[str] = frozenset()
    """Names of loaded instructions that now are those of something else."""


def _carry(
    loaded: Loaded,
    module: Module,
    graphs: Mapping[int, Graph],
    costs: Mapping[int, Costs],
    pricing: Pricing,
) -> _Carried:
    names = {
        name: module.origins_of(id_) != (id_,) and name in loaded.module.by_name
        for graph in graphs.values()
        for name, id_ in zip(graph.names, graph.ids.tolist(), strict=True)
    }
    reused = frozenset(name for name, again in names.items() if again)
    named = frozenset(name for found in loaded.given_by for name in found.times) - reused
    made = {id_: loaded.carry(module, graph, costs[id_], pricing, named) for id_, graph in graphs.items()}
    return _Carried(
        {id_: carrying.costs for id_, carrying in made.items()},
        frozenset[int]().union(*(carrying.kept for carrying in made.values())),
        frozenset[int]().union(*(carrying.scaled for carrying in made.values())),
        frozenset[int]().union(*(carrying.mixed for carrying in made.values())),
        reused,
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


def _replaced(costs: Costs, graph: Graph, found: ImportedCosts, reused: frozenset[str]) -> Costs:
    """`costs` with the times that `found` has; loops, calls and conditionals keep those of their callees, and what only
    has a name again its own."""
    times = found.times
    hits = [
        (node, times[name])
        for node, (name, opcode) in enumerate(zip(graph.names, graph.opcodes, strict=True))
        if name in times and name not in reused and opcode not in SEQUENTIAL
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


def _used(
    found: ImportedCosts,
    module: Module,
    graphs: Mapping[int, Graph],
    loaded: Loaded | None,
    carried: _Carried,
) -> UsedCosts:
    """What became of `found`."""
    here = {name: opcode for g in graphs.values() for name, opcode in zip(g.names, g.opcodes, strict=True)}
    before = loaded.executed if loaded is not None else {}
    executed = {**before, **here}
    known = module.by_name if loaded is None else {**loaded.module.by_name, **module.by_name}
    callers = frozenset(name for name in found.times if executed.get(name) in SEQUENTIAL)
    direct = frozenset(name for name in found.times if name in here and name not in carried.reused) - callers
    kept, scaled, mixed = (
        loaded.names_of(ids, found) if loaded is not None else frozenset[str]()
        for ids in (carried.kept, carried.scaled, carried.mixed)
    )
    priced = direct | kept | scaled
    # What a higher rank gives a time of its own is not missing here.
    counts = loaded.names_of(loaded.given, found) if loaded is not None else frozenset[str]()
    return UsedCosts(
        found.source,
        found.origin,
        used=len(priced),
        unmatched=tuple(sorted(name for name in {*found.times, *found.branches} if name not in known)),
        callers=tuple(sorted(callers)),
        inside=tuple(sorted(name for name in found.times if name in known and name not in executed)),
        scaled=tuple(sorted(scaled)),
        gone=tuple(sorted(name for name in counts if name in before and name not in priced - mixed | callers)),
        priced=priced - mixed,
    )


def _notes(found: UsedCosts) -> list[str]:
    """What was used of an import and, by name, what was not."""
    what = {
        Origin.MODEL: "predictions of Lapstrake and not measured",
        Origin.COMPILER: "the compiler's",
        Origin.MEASURED: "measured",
    }.get(found.origin, "given")
    direct = found.used - len(found.scaled)
    notes = (
        [f"Times of {counted_text(direct, 'instruction')} are {what}: {found.source}."]
        if direct or not (found.scaled or found.gone)
        else []
    )
    if found.scaled:
        notes.append(
            f"{found.source}: times of {counted_text(len(found.scaled), 'instruction')} that passes rewrote are shared "
            f"out by the model over what was made of them: {_listed(found.scaled)}."
        )
    for names, why in (
        (found.unmatched, "match no instruction"),
        (found.callers, "are loops, calls or conditionals, whose times are those of their callees"),
        (found.inside, "lie inside fusions or reducers, which are priced whole"),
        (found.gone, "are of instructions that a plan's passes replace: what comes of them is priced by the model"),
    ):
        if names:
            notes.append(f"{found.source}: {len(names)} names {why}: {_listed(names)}.")
    return notes
