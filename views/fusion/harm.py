"""Figures of fusions, and plans with another decision, without Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from engine.ir.graph import Graph, Ints
from engine.passes.fusion import Alternative, Fusion
from engine.session import edits
from engine.session.lookup import lookup
from engine.session.plan import Plan
from engine.session.variant import Variant
from engine.timeline.timeline import Category


@dataclass(frozen=True)
class FusionRow:
    """A fusion as it is listed. Times in picoseconds of one execution of the entry computation, as far as drawn."""

    fusion: Fusion
    time: int
    exposed: int
    """Time in which compute waits for transfers that the fusion's einsum does not need and nothing reads earlier."""
    waits: int
    """Time in which compute waits for any transfer that the fusion waits for."""


def fusion_rows(variant: Variant) -> tuple[FusionRow, ...]:
    """Fusions by harm: what exposes most first, then what waits most, then what takes longest."""
    waited = waited_by_name(variant)
    compute: dict[int, int] = {}
    for computation, graph in variant.program.graphs.items():
        compute.update(zip(graph.ids.tolist(), variant.program.costs[computation].compute.tolist(), strict=True))
    rows = [
        FusionRow(
            fusion,
            compute.get(fusion.instruction, 0),
            sum([waited[name] for name in caused(variant, fusion) if name in waited]),
            sum([waited[name] for name in fusion.waits_for if name in waited]),
        )
        for fusion in variant.fusions
    ]
    return tuple(sorted(rows, key=lambda row: (-row.exposed, -row.waits, -row.time)))


def caused(variant: Variant, fusion: Fusion) -> tuple[str, ...]:
    """Those of the dones that a fusion's einsum does not need of which nothing that takes time runs before it."""
    return tuple(name for name in fusion.foreign if _first_reader(variant, name) == fusion.instruction)


@lru_cache(maxsize=4096)
def _first_reader(variant: Variant, done: str) -> int:
    """Id of the first instruction in the schedule's order that takes time and needs a done; -1 where none does."""
    place = _dones(variant).get(done)
    if place is None:
        return -1
    graph, node = place
    compute, position = variant.program.costs[graph.computation].compute, _positions(variant, graph.computation)
    front, seen, readers = graph.users.of(node).tolist(), {node}, []
    while front:
        user = front.pop()
        if user in seen:
            continue
        seen.add(user)
        if compute[user] > 0:
            readers.append(user)
        else:
            front.extend(graph.users.of(user).tolist())
    return int(graph.ids[min(readers, key=lambda reader: position[reader])]) if readers else -1


@lru_cache(maxsize=64)
def _dones(variant: Variant) -> Mapping[str, tuple[Graph, int]]:
    """Every transfer that something waits for, by name."""
    return {
        graph.names[node]: (graph, node)
        for graph in variant.program.graphs.values()
        for node, opcode in enumerate(graph.opcodes)
        if opcode.endswith("-done") or graph.partner[node] >= 0
    }


@lru_cache(maxsize=64)
def _positions(variant: Variant, computation: int) -> Ints:
    """When each node has its turn."""
    return variant.schedule.orders[computation].positions()


@lru_cache(maxsize=64)
def waited_by_name(variant: Variant) -> Mapping[str, int]:
    """Name of each done (or blocking collective) → time that compute waits at it."""
    timeline = variant.timeline
    gaps = np.flatnonzero(timeline.category == Category.EXPOSED)
    names = lookup(variant)
    found: dict[str, int] = {}
    for instruction, waits_for, duration in zip(
        timeline.instruction[gaps].tolist(),
        timeline.waits_for[gaps].tolist(),
        timeline.duration[gaps].tolist(),
        strict=True,
    ):
        for name in {names.name(instruction), names.name(waits_for)}:
            found[name] = found.get(name, 0) + duration
    return found


def taken(plan: Plan, alternative: Alternative) -> Plan:
    """`plan` with another decision for one fusion."""
    given = edits.options_of(plan, "fuse") or {}
    items = [item for item in given.get(alternative.option, "").split(";") if item]
    if alternative.value not in items:
        items.append(alternative.value)
    return edits.with_options(plan, "fuse", {alternative.option: ";".join(items)})
