"""The slices that decide a timeline's makespan: from its end back, each is what the one after it had to wait for."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from engine.ir.graph import Ints
from engine.session.variant import Variant
from engine.timeline.timeline import Category, LaneKind, Timeline
from views.timeline.bands import bands_of
from views.timeline.scene import rows_of


@lru_cache(maxsize=64)
def critical_rows(variant: Variant) -> Ints:
    """Rows on the critical path, ascending.

    Compute runs back to back until an exposed gap; there the path goes to the transfer that the gap waits for, and
    from its start back to the compute that ran before it.
    """
    timeline = variant.timeline
    path: list[int] = []
    for number, lane in enumerate(timeline.lanes):
        if lane.kind == LaneKind.COMPUTE and len(bands_of(timeline)[number].slices):
            path = _walk(timeline, number)
            break
    rows = np.unique(np.array(path, np.int64))
    rows.setflags(write=False)
    return rows


def _walk(timeline: Timeline, lane: int) -> list[int]:
    bands = bands_of(timeline)[lane]
    slices, gaps = bands.slices, bands.gaps
    path: list[int] = []
    now = int(slices.end[-1])
    while now > 0:
        gap = int(np.searchsorted(gaps.start, now, side="left")) - 1
        floor = int(gaps.end[gap]) if gap >= 0 else 0
        if floor < now:
            first = int(np.searchsorted(slices.start, floor, side="left"))
            last = int(np.searchsorted(slices.start, now, side="left"))
            path.extend(slices.slices[first:last].tolist())
        if gap < 0:
            break
        now = _before_transfer(timeline, int(gaps.slices[gap]), int(gaps.start[gap]), path)
    return path


def _before_transfer(timeline: Timeline, gap: int, start: int, path: list[int]) -> int:
    """Put the transfer that a gap waits for on the path; the time from which the path goes on."""
    rows = rows_of(timeline, (int(timeline.waits_for[gap]),))
    rows = rows[(timeline.category[rows] != Category.EXPOSED) & (timeline.start[rows] <= start)]
    if not len(rows):
        return start
    transfer = int(rows[np.argmax(timeline.start[rows])])
    path.append(transfer)
    return min(start, int(timeline.start[transfer]))
