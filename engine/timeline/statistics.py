"""How long each instruction runs in a whole execution, iterations that a timeline does not show included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from engine.ir.graph import Ints
from engine.timeline.timeline import Category, LaneKind, Timeline


@dataclass(frozen=True, slots=True)
class Times:
    """Of one instruction, picoseconds over all its executions."""

    compute: int = 0
    """On compute lanes."""
    transfer: int = 0
    """Of the transfers that it begins."""
    exposed: int = 0
    """In which the compute stream waited for those transfers."""

    @property
    def stream(self) -> int:
        """What it costs the compute stream: its own work and the waiting for its transfers."""
        return self.compute + self.exposed

    def plus(self, other: Times) -> Times:
        return Times(self.compute + other.compute, self.transfer + other.transfer, self.exposed + other.exposed)


def times_by_instruction(timeline: Timeline) -> Mapping[int, Times]:
    """Times by instruction id. Iterations that are not shown count like the mean of those that are."""
    counts = executions(timeline)
    length = timeline.duration * counts
    kinds = np.array([lane.kind for lane in timeline.lanes], dtype=np.uint8)[timeline.lane]
    exposed = timeline.category == Category.EXPOSED
    compute = (kinds == LaneKind.COMPUTE) & ~exposed & (timeline.category != Category.LOOP)
    parts = (
        _sums(timeline.instruction[compute], length[compute]),
        _sums(timeline.instruction[kinds == LaneKind.TRANSFER], length[kinds == LaneKind.TRANSFER]),
        _sums(timeline.waits_for[exposed], length[exposed]),
    )
    ids = sorted(set().union(*parts) - {-1})
    return MappingProxyType({id_: Times(*(part.get(id_, 0) for part in parts)) for id_ in ids})


def executions(timeline: Timeline) -> npt.NDArray[np.float64]:
    """How many executions each slice stands for, shape [s]: more than 1 where iterations around it are not shown."""
    counts = np.ones(len(timeline), dtype=np.float64)
    frames = np.flatnonzero(timeline.category == Category.LOOP)
    for depth in np.unique(timeline.depth[frames]).tolist():
        level = frames[timeline.depth[frames] == depth]
        level = level[np.argsort(timeline.start[level], kind="stable")]
        inside = np.flatnonzero(timeline.depth > depth)
        frame = np.searchsorted(timeline.start[level], timeline.start[inside], side="right") - 1
        direct = timeline.depth[inside] == depth + 1
        pairs = np.stack([frame[direct], timeline.iteration[inside][direct]])
        pairs = np.unique(pairs, axis=1)
        trips = timeline.repeat[level]
        # Iteration number `trips` is a loop's condition, asked once more at the end.
        shown = np.bincount(pairs[0][pairs[1] < trips[pairs[0]]], minlength=len(level))
        share = np.where(shown > 0, trips / np.maximum(shown, 1), 1.0)
        last = direct & (timeline.iteration[inside] >= trips[frame])
        counts[inside] *= np.where(last, 1.0, share[frame])
    return counts


def _sums(keys: Ints, lengths: npt.NDArray[np.float64]) -> dict[int, int]:
    ids, inverse = np.unique(keys, return_inverse=True)
    sums = np.bincount(inverse, weights=lengths, minlength=len(ids))
    return {int(id_): round(float(total)) for id_, total in zip(ids, sums, strict=True)}
