"""A timeline sorted for drawing: which slices are visible at a zoom, and which one is under the mouse.

A band holds slices of one lane that do not overlap, so that both questions are two binary searches. Where several
slices share a pixel column, the longest stands for them: a longest-of-range question answered by one
`maximum.reduceat` over ranks, which keeps a frame at 10⁶ slices in a few milliseconds without a stored pyramid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from engine.ir.graph import Ints
from engine.timeline.timeline import Category, LaneKind, Timeline


@dataclass(frozen=True, eq=False)
class Band:
    """Slices that do not overlap, ascending by start."""

    slices: Ints
    """Rows of the timeline's columns."""
    start: Ints
    end: Ints
    rank: Ints
    """Place of each slice's duration among all of the band, 0 is the shortest."""
    by_rank: Ints
    """The inverse of `rank`."""

    def __len__(self) -> int:
        return len(self.slices)

    def visible(self, start: int, stop: int, columns: int) -> Ints:
        """Positions of at most about `columns` slices that stand for all between two times, ascending."""
        first = int(np.searchsorted(self.end, start, side="right"))
        last = int(np.searchsorted(self.start, stop, side="left"))
        if last <= first:
            return np.empty(0, np.int64)
        if last - first <= columns:
            return np.arange(first, last)
        edges = start + (np.arange(1, columns, dtype=np.int64) * (stop - start)) // columns
        cuts = np.searchsorted(self.start[first:last], edges, side="left")
        heads = np.unique(np.concatenate((np.zeros(1, np.int64), cuts)))
        heads = heads[heads < last - first]
        longest = np.maximum.reduceat(self.rank[first:last], heads)
        return np.asarray(self.by_rank[longest])

    def at(self, time: int, slack: int = 0) -> int | None:
        """Row of the slice at `time`; within `slack` of it, the longest that is near."""
        first = int(np.searchsorted(self.end, time - slack, side="right"))
        last = int(np.searchsorted(self.start, time + slack, side="right"))
        if last <= first:
            return None
        exact = int(np.searchsorted(self.start, time, side="right")) - 1
        if exact >= 0 and self.end[exact] > time and self.end[exact] - self.start[exact] > slack:
            return int(self.slices[exact])
        return int(self.slices[self.by_rank[int(self.rank[first:last].max())]])

    def next_to(self, row: int, step: int) -> int | None:
        """Row of the slice `step` places after (before) the one that is at or after the start of `row`."""
        found = np.flatnonzero(self.slices == row)
        at = (int(found[0]) if len(found) else -1) + step
        return int(self.slices[at]) if 0 <= at < len(self) else None


@dataclass(frozen=True, eq=False)
class LaneBands:
    """One lane: its slices, its exposed gaps, and the frames around them by depth."""

    slices: Band
    gaps: Band
    frames: tuple[Band, ...]


@lru_cache(maxsize=64)
def bands_of(timeline: Timeline) -> tuple[LaneBands, ...]:
    """The bands of every lane, in the order of `Timeline.lanes`. Kept for the timelines seen last."""
    cuts = np.searchsorted(timeline.lane, np.arange(len(timeline.lanes) + 1))
    return tuple(_lane(timeline, int(cuts[n]), int(cuts[n + 1])) for n in range(len(timeline.lanes)))


def _lane(timeline: Timeline, first: int, last: int) -> LaneBands:
    category = timeline.category[first:last]
    rows = np.arange(first, last)
    loop = category == Category.LOOP
    gap = category == Category.EXPOSED
    depths = np.unique(timeline.depth[first:last][loop])
    return LaneBands(
        slices=_band(timeline, rows[~loop & ~gap]),
        gaps=_band(timeline, rows[gap]),
        frames=tuple(_band(timeline, rows[loop & (timeline.depth[first:last] == depth)]) for depth in depths),
    )


def _band(timeline: Timeline, rows: Ints) -> Band:
    start = timeline.start[rows]
    duration = timeline.duration[rows]
    by_rank = np.argsort(duration, kind="stable")
    rank = np.empty(len(rows), np.int64)
    rank[by_rank] = np.arange(len(rows))
    columns = (rows, start, np.maximum.accumulate(start + duration) if len(rows) else start, rank, by_rank)
    for column in columns:
        column.setflags(write=False)
    return Band(*columns)


def compute_lanes(timeline: Timeline) -> tuple[int, ...]:
    return tuple(n for n, lane in enumerate(timeline.lanes) if lane.kind == LaneKind.COMPUTE)
