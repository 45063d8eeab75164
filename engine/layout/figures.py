"""Numbers on the items of an outline, by which the graph view colours them: of instructions from a variant, of groups
summed up."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt

from engine.ir.graph import Graph, Ints
from engine.layout.outline import Outline
from engine.session.variant import Variant
from engine.timeline.statistics import executions
from engine.timeline.timeline import Category

Floats = npt.NDArray[np.float64]


class Figure(StrEnum):
    """What nodes are coloured by."""

    KIND = "kind"
    TIME = "time"
    BYTES = "bytes"
    SLACK = "slack"
    EXPOSED = "exposed time"
    MEMORY = "memory"
    DECISION = "decision"


class Decision(StrEnum):
    """What was decided about a collective and what it was joined with."""

    DECOMPOSED = "decomposed"
    LEFT = "left whole"
    FUSED = "fused"
    NONE = "nothing decided"


DECISIONS = tuple(Decision)
_ROUNDS = 64
"""Instructions that take no time, one behind the other, that slack is followed through."""


def values_of(outline: Outline, variant: Variant, figure: Figure) -> Floats:
    """The figure of every item, NaN where it has none. Times in picoseconds, sizes in bytes, decisions as numbers into
    `DECISIONS`. Groups have the sum of what lies in them; of slack the least. Shape [n]."""
    if figure == Figure.DECISION:
        return _decisions(outline, variant)
    ids, values = _BY_FIGURE[figure](variant)
    leaves = _on_leaves(outline, ids, values)
    return _gathered(outline, leaves, least=figure == Figure.SLACK)


def _on_leaves(outline: Outline, ids: Ints, values: Floats) -> Floats:
    """Values by instruction id as values of items."""
    leaves = np.full(len(outline), np.nan)
    if len(ids):
        order = np.argsort(ids, kind="stable")
        at = np.minimum(np.searchsorted(ids[order], outline.instruction), len(ids) - 1)
        known = ids[order][at] == outline.instruction
        leaves[known] = values[order][at[known]]
    return leaves


def _gathered(outline: Outline, leaves: Floats, *, least: bool) -> Floats:
    """Values of groups from those of the leaves in them."""
    there = ~np.isnan(leaves)
    if least:
        found = np.where(there, leaves, np.inf)
        for level in range(int(outline.depth.max()), 0, -1):
            items = np.flatnonzero(outline.depth == level)
            np.minimum.at(found, outline.parent[items], found[items])
        return np.where(np.isinf(found), np.nan, found)
    sums = np.concatenate([[0.0], np.cumsum(np.where(there, leaves, 0.0))])
    counts = np.concatenate([[0], np.cumsum(there)])
    index = np.arange(len(outline))
    total = sums[outline.end] - sums[index]
    return np.where(counts[outline.end] > counts[index], total, np.nan)


def _decisions(outline: Outline, variant: Variant) -> Floats:
    module = variant.program.module
    verdict = {c.collective: 0 if c.chosen else 1 for c in variant.candidates}
    for candidate in variant.candidates:
        if candidate.chosen:
            verdict.update(dict.fromkeys(candidate.einsums, 0))
    told = {i: float(number) for i, number in verdict.items()}
    made = module.origins
    for instruction, origins in made.items():
        found = [verdict[origin] for origin in origins if origin in verdict]
        if found:
            told[instruction] = float(min(found))
    ids = np.fromiter(told, np.int64, len(told))
    values = _on_leaves(outline, ids, np.fromiter(told.values(), np.float64, len(told)))
    fusions = np.array([detail.startswith("fusion") for detail in outline.details], np.bool_)
    fused = fusions & np.isin(outline.instruction, np.fromiter(made, np.int64, len(made)))
    values[fused & np.isnan(values)] = DECISIONS.index(Decision.FUSED)
    return _gathered(outline, values, least=True)


def _columns(variant: Variant, name: str) -> tuple[Ints, Floats]:
    program = variant.program
    ids = np.concatenate([graph.ids for graph in program.graphs.values()])
    values = np.concatenate([getattr(program.costs[key], name) for key in program.graphs])
    return ids, values.astype(np.float64)


def _time(variant: Variant) -> tuple[Ints, Floats]:
    """Over a whole execution, loops multiplied; of what is not on the timeline, one execution by the cost model."""
    timeline = variant.timeline
    runs = (timeline.category != Category.EXPOSED) & (timeline.category != Category.LOOP)
    length = (timeline.duration * executions(timeline))[runs]
    ids, where = np.unique(timeline.instruction[runs].astype(np.int64), return_inverse=True)
    return ids, np.bincount(where, weights=length, minlength=len(ids)).astype(np.float64)


def _exposed(variant: Variant) -> tuple[Ints, Floats]:
    timeline = variant.timeline
    waits = timeline.category == Category.EXPOSED
    length = (timeline.duration * executions(timeline))[waits]
    ids, where = np.unique(timeline.waits_for[waits], return_inverse=True)
    return ids, np.bincount(where, weights=length, minlength=len(ids)).astype(np.float64)


def _bytes(variant: Variant) -> tuple[Ints, Floats]:
    return _columns(variant, "hbm_bytes")


def _memory(variant: Variant) -> tuple[Ints, Floats]:
    """Bytes of the buffers that each instruction defines."""
    ids, values = [], []
    for key, graph in variant.program.graphs.items():
        buffers = variant.program.buffers[key]
        ids.append(graph.ids)
        values.append(np.bincount(buffers.node, weights=buffers.size, minlength=len(graph)))
    return np.concatenate(ids), np.concatenate(values)


def _slack(variant: Variant) -> tuple[Ints, Floats]:
    """How much later an instruction could end before the first of its users is late; NaN where nothing waits."""
    timeline = variant.timeline
    runs = np.flatnonzero((timeline.category != Category.EXPOSED) & (timeline.instruction >= 0))
    runs = runs[np.argsort(timeline.start[runs], kind="stable")]
    ids, first = np.unique(timeline.instruction[runs], return_index=True)
    start = timeline.start[runs[first]]
    end = start + timeline.duration[runs[first]]
    found = [_slack_in(graph, ids, start, end) for graph in variant.program.graphs.values()]
    return np.concatenate([g.ids for g in variant.program.graphs.values()]), np.concatenate(found)


def _slack_in(graph: Graph, ids: Ints, start: Ints, end: Ints) -> Floats:
    at = np.minimum(np.searchsorted(ids, graph.ids), max(0, len(ids) - 1))
    ran = ids[at] == graph.ids if len(ids) else np.zeros(len(graph), np.bool_)
    begins = np.where(ran, start[at] if len(ids) else 0, np.inf)
    owner = np.repeat(np.arange(len(graph)), np.diff(graph.successors.starts))
    needed = np.full(len(graph), np.inf)
    for _ in range(_ROUNDS):  # through what takes no time: it is needed when its users are
        before = needed
        needed = np.full(len(graph), np.inf)
        np.minimum.at(needed, owner, np.where(ran, begins, before)[graph.successors.items])
        if np.array_equal(needed, before):
            break
    known = ran & np.isfinite(needed)
    slack = np.where(known, needed, 0.0) - np.where(known, end[at] if len(ids) else 0, 0.0)
    return np.where(known & (slack >= 0), slack, np.nan)


_BY_FIGURE = {
    Figure.TIME: _time,
    Figure.BYTES: _bytes,
    Figure.SLACK: _slack,
    Figure.EXPOSED: _exposed,
    Figure.MEMORY: _memory,
}
