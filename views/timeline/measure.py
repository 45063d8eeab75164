"""What happens in a stretch of time: compute, transfer, what overlaps of it, and what is exposed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from engine.ir.graph import Ints
from engine.timeline.timeline import LaneKind, Timeline
from views.timeline.bands import Band, bands_of

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
    """Measure one timeline between two times. Of folded iterations each counts as the one that stands for them."""
    return Measurement(max(0, stop - start), *_lengths(timeline, start, stop, 0))


_Lengths = tuple[int, int, int, int]
"""Picoseconds of compute, transfer, overlap and exposed."""


def _lengths(timeline: Timeline, start: int, stop: int, depth: int) -> _Lengths:
    """Of what lies in at least `depth` frames."""
    compute: list[Intervals] = []
    transfer: list[Intervals] = []
    gaps: list[Intervals] = []
    for lane, bands in zip(timeline.lanes, bands_of(timeline), strict=True):
        slices = _clipped(timeline, bands.slices, start, stop, depth)
        (compute if lane.kind == LaneKind.COMPUTE else transfer).append(slices)
        gaps.append(_clipped(timeline, bands.gaps, start, stop, depth))
    computing, transferring = union(compute), union(transfer)
    both = union([computing, transferring])
    parts = [_length(part) for part in (computing, transferring, both, union(gaps))]
    found = parts[0], parts[1], parts[0] + parts[1] - parts[2], parts[3]
    folds = timeline.folds
    inside = (folds.start < stop) & (folds.start + folds.duration > start) & (folds.depth > depth)
    # What is folded in an iteration that stands for others counts with that iteration.
    for number in np.flatnonzero(inside).tolist():
        found = _sum(found, _folded(timeline, number, start, stop, transferring))
    return found


def _folded(timeline: Timeline, number: int, start: int, stop: int, around: Intervals) -> _Lengths:
    """Of the folded stretch `number` between two times; transfers `around` it are under way beside what it does."""
    folds = timeline.folds
    low = max(start, int(folds.start[number]))
    high = min(stop, int(folds.start[number] + folds.duration[number]))
    first = int(np.searchsorted(around[1], low, side="right"))
    last = int(np.searchsorted(around[0], high, side="left"))
    found: _Lengths = (0, 0, 0, 0)
    at = low
    for begin, end in zip(around[0][first:last].tolist(), around[1][first:last].tolist(), strict=True):
        begin, end = max(begin, low), min(end, high)
        found = _sum(found, _repeated(timeline, number, at, begin))
        compute, _, _, exposed = _repeated(timeline, number, begin, end)
        found = _sum(found, (compute, 0, compute, exposed))  # the transfer around it is counted already
        at = end
    return _sum(found, _repeated(timeline, number, at, high))


def _repeated(timeline: Timeline, number: int, start: int, stop: int) -> _Lengths:
    """Whole iterations between two times within a folded stretch, and what is begun of the first and the last."""
    folds = timeline.folds
    begin, duration, sample = (int(column[number]) for column in (folds.start, folds.duration, folds.sample))
    whole = sample * int(folds.count[number])
    ends = [divmod((time - begin) * whole // duration, sample) for time in (start, stop)]
    (before, left), (after, right) = ends
    one = (timeline, number)
    parts = zip(_of_sample(*one, sample), _of_sample(*one, left), _of_sample(*one, right), strict=True)
    compute, transfer, overlap, exposed = (
        ((after - before) * all_ - head + tail) * duration // whole for all_, head, tail in parts
    )
    return compute, transfer, overlap, exposed


@lru_cache(maxsize=4096)
def _of_sample(timeline: Timeline, number: int, length: int) -> _Lengths:
    """Of the beginning of the iteration that stands for a folded stretch."""
    folds = timeline.folds
    start = int(folds.start[number] - folds.sample[number])
    return _lengths(timeline, start, start + length, int(folds.depth[number])) if length else (0, 0, 0, 0)


def _sum(one: _Lengths, two: _Lengths) -> _Lengths:
    return one[0] + two[0], one[1] + two[1], one[2] + two[2], one[3] + two[3]


def _clipped(timeline: Timeline, band: Band, low: int, high: int, depth: int) -> Intervals:
    first = int(np.searchsorted(band.end, low, side="right"))
    last = int(np.searchsorted(band.start, high, side="left"))
    start, end = band.start[first:last], band.end[first:last]
    if depth:
        deep = timeline.depth[band.slices[first:last]] >= depth
        start, end = start[deep], end[deep]
    return np.clip(start, low, high), np.clip(end, low, high)


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
