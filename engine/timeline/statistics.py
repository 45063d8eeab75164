"""How long each instruction runs in a whole execution, iterations that a timeline does not show included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


@dataclass(frozen=True, eq=False)
class TimeColumns:
    """Times of n instructions, as `Times` has them of one. Arrays have shape [n]; picoseconds."""

    instruction: Ints
    """Ids, ascending."""
    compute: Ints
    transfer: Ints
    exposed: Ints

    def exposed_of(self, instructions: Iterable[int]) -> int:
        """Time in which the compute stream waits for some instructions together."""
        return int(self.exposed[np.isin(self.instruction, list(instructions))].sum())


def times_by_instruction(timeline: Timeline) -> Mapping[int, Times]:
    """Times by instruction id. Iterations that are not shown count like the mean of those that are."""
    columns = time_columns(timeline)
    rows = zip(columns.compute.tolist(), columns.transfer.tolist(), columns.exposed.tolist(), strict=True)
    return MappingProxyType(dict(zip(columns.instruction.tolist(), (Times(*row) for row in rows), strict=True)))


def time_columns(timeline: Timeline) -> TimeColumns:
    """As `times_by_instruction`, as columns: nothing is made for each instruction."""
    counts = executions(timeline)
    length = timeline.duration * counts
    kinds = np.array([lane.kind for lane in timeline.lanes], dtype=np.uint8)[timeline.lane]
    exposed = timeline.category == Category.EXPOSED
    compute = (kinds == LaneKind.COMPUTE) & ~exposed & (timeline.category != Category.LOOP)
    transfer = kinds == LaneKind.TRANSFER
    parts = (
        (timeline.instruction[compute], length[compute]),
        (timeline.instruction[transfer], length[transfer]),
        (timeline.waits_for[exposed], length[exposed]),
    )
    ids = np.unique(np.concatenate([keys for keys, _ in parts]))
    ids = ids[ids != -1]
    return TimeColumns(ids, *(_sums(ids, keys, lengths) for keys, lengths in parts))


def executions(timeline: Timeline) -> npt.NDArray[np.float64]:
    """How many executions each slice stands for, shape [s]: more than 1 where iterations around it are not shown."""
    counts = np.ones(len(timeline), dtype=np.float64)
    frames = np.flatnonzero(timeline.category == Category.LOOP)
    for depth in np.unique(timeline.depth[frames]).tolist():
        level = frames[timeline.depth[frames] == depth]
        level = level[np.argsort(timeline.start[level], kind="stable")]
        inside = np.flatnonzero(timeline.depth > depth)
        frame = np.searchsorted(timeline.start[level], timeline.start[inside], side="right") - 1
        # What begins after the frame that began last has ended is in something else beside it: a call, a branch.
        ends = timeline.start[level] + timeline.duration[level]
        begun = timeline.start[inside] + np.minimum(timeline.duration[inside], 1)
        held = (frame >= 0) & (begun <= ends[frame])
        inside, frame = inside[held], frame[held]
        direct = timeline.depth[inside] == depth + 1
        trips = timeline.repeat[level]
        shown = _iterations(frame[direct], timeline.iteration[inside][direct], trips)
        share = np.where(shown > 0, trips / np.maximum(shown, 1), 1.0)
        last = direct & (timeline.iteration[inside] >= trips[frame])
        counts[inside] *= np.where(last, 1.0, share[frame])
    return counts


def _iterations(frame: Ints, iteration: Ints, trips: Ints) -> Ints:
    """How many different iterations of each frame some slices are of, shape of `trips`."""
    # Iteration number `trips` is a loop's condition, asked once more at the end.
    within = iteration < trips[frame]
    # One number a pair: sorting pairs takes 20 times as long, which the window would stand still for.
    most = int(iteration.max(initial=0)) + 2
    pairs = frame[within] * most + iteration[within] + 1  # -1 stands for no iteration
    found: Ints = np.bincount(np.unique(pairs) // most, minlength=len(trips))
    return found


def _sums(ids: Ints, keys: Ints, lengths: npt.NDArray[np.float64]) -> Ints:
    """Sum of the lengths under each of `ids`, in whole picoseconds."""
    known = keys != -1
    sums = np.bincount(np.searchsorted(ids, keys[known]), weights=lengths[known], minlength=len(ids))
    whole: Ints = np.rint(sums).astype(np.int64)
    return whole
