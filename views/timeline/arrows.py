"""Dependencies of a slice as pairs of slices: along operands and users, through instructions that take no time."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from engine.ir.graph import Csr, Graph
from engine.session.lookup import lookup
from engine.session.variant import Variant
from engine.timeline.timeline import Category
from views.timeline.scene import rows_of

MOST = 64
"""No more arrows than this are drawn for one selection."""


def graph_of(variant: Variant, instruction: int) -> tuple[Graph, int] | None:
    """The graph that holds an instruction, and its node number; None for instructions that are not scheduled."""
    return lookup(variant).place(instruction)


@lru_cache(maxsize=64)
def arrows_of(variant: Variant, row: int, *, operands: bool = True, users: bool = True) -> tuple[tuple[int, int], ...]:
    """Pairs (row of the producer, row of the consumer) around one slice."""
    timeline = variant.timeline
    place = graph_of(variant, int(timeline.instruction[row]))
    if place is None:
        return ()
    graph, node = place
    start = int(timeline.start[row])
    end = start + int(timeline.duration[row])
    pairs: list[tuple[int, int]] = []
    if operands:
        for other in _reached(variant, graph, graph.predecessors, node):
            found = _nearest(variant, int(graph.ids[other]), end, before=True)
            if found is not None:
                pairs.append((found, row))
    if users:
        for other in _reached(variant, graph, graph.successors, node):
            found = _nearest(variant, int(graph.ids[other]), start, before=False)
            if found is not None:
                pairs.append((row, found))
    return tuple(pairs[:MOST])


def neighbours(variant: Variant, instruction: int, *, forward: bool) -> tuple[int, ...]:
    """Ids of the drawn users (operands) of an instruction."""
    place = graph_of(variant, instruction)
    if place is None:
        return ()
    graph, node = place
    edges = graph.successors if forward else graph.predecessors
    return tuple(int(graph.ids[n]) for n in _reached(variant, graph, edges, node))


def _reached(variant: Variant, graph: Graph, edges: Csr, node: int) -> list[int]:
    """Nearest nodes with slices along `edges`; those without (bitcasts, tuples, …) are looked through."""
    found: list[int] = []
    seen = {node}
    waiting = edges.of(node).tolist()
    while waiting and len(found) < MOST:
        other = waiting.pop(0)
        if other in seen:
            continue
        seen.add(other)
        rows = rows_of(variant.timeline, (int(graph.ids[other]),))
        if np.any(variant.timeline.category[rows] != Category.EXPOSED):
            found.append(other)
        else:
            waiting.extend(edges.of(other).tolist())
    return found


def _nearest(variant: Variant, instruction: int, time: int, *, before: bool) -> int | None:
    """The slice of an instruction that began last before `time`, or that ends first after it."""
    timeline = variant.timeline
    rows = rows_of(timeline, (instruction,))
    rows = rows[timeline.category[rows] != Category.EXPOSED]
    if before:
        rows = rows[timeline.start[rows] < time]
        return int(rows[np.argmax(timeline.start[rows])]) if len(rows) else None
    ends = timeline.start[rows] + timeline.duration[rows]
    rows, ends = rows[ends > time], ends[ends > time]
    return int(rows[np.argmin(ends)]) if len(rows) else None
