"""What happens in a stretch of time: compute, transfer, what overlaps of it, and what is exposed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from engine.ir.graph import Ints
from engine.timeline.timeline import LaneKind, Timeline
from views.timeline.bands import bands_of

Intervals = tuple[Ints, Ints]
"""Starts and ends."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Picoseconds within a range; compute and transfer are lengths of unions, so that nothing counts twice."""

    duration: int
    compute: int
    transfer: int
    overlap: int
    exposed: int


@lru_cache(maxsize=256)
def measure(timeline: Timeline, start: int, stop: int) -> Measurement:
    """Measure one timeline between two times.

    Iterations of loops that are not expanded hold no slices and count for nothing here.
    """
    compute: list[Intervals] = []
    transfer: list[Intervals] = []
    gaps: list[Intervals] = []
    for lane, bands in zip(timeline.lanes, bands_of(timeline), strict=True):
        slices = _clipped(bands.slices.start, bands.slices.end, start, stop)
        (compute if lane.kind == LaneKind.COMPUTE else transfer).append(slices)
        gaps.append(_clipped(bands.gaps.start, bands.gaps.end, start, stop))
    computing, transferring = union(compute), union(transfer)
    both = union([computing, transferring])
    lengths = [_length(part) for part in (computing, transferring, both, union(gaps))]
    return Measurement(
        duration=max(0, stop - start),
        compute=lengths[0],
        transfer=lengths[1],
        overlap=lengths[0] + lengths[1] - lengths[2],
        exposed=lengths[3],
    )


def _clipped(start: Ints, end: Ints, low: int, high: int) -> Intervals:
    first = int(np.searchsorted(end, low, side="right"))
    last = int(np.searchsorted(start, high, side="left"))
    return np.clip(start[first:last], low, high), np.clip(end[first:last], low, high)


def union(parts: list[Intervals]) -> Intervals:
    """Disjoint intervals, ascending, that cover the same times."""
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    start = np.concatenate([p[0] for p in parts])
    end = np.concatenate([p[1] for p in parts])
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    opens = np.concatenate((np.ones(1, np.bool_), start[1:] > end[:-1]))
    closes = np.concatenate((opens[1:], np.ones(1, np.bool_)))
    return start[opens], end[closes]


def _length(intervals: Intervals) -> int:
    return int((intervals[1] - intervals[0]).sum())
