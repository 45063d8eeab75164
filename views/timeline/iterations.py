"""Iterations of a loop on a timeline: which loop is meant, and where an iteration lies if it is shown."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from engine.timeline.timeline import Category, Timeline
from views.timeline.scene import rows_of


def loop_at(timeline: Timeline, instructions: Iterable[int]) -> int | None:
    """Row of the frame of a selected loop, else of the innermost loop around the first selected slice."""
    rows = rows_of(timeline, frozenset(instructions))
    loops = np.flatnonzero((timeline.category == Category.LOOP) & (timeline.repeat > 1))
    own = np.intersect1d(rows, loops)
    if len(own):
        return int(own[0])
    if not len(rows):
        return None
    at = timeline.start[rows].min()
    around = loops[(timeline.start[loops] <= at) & (timeline.start[loops] + timeline.duration[loops] > at)]
    return int(around[np.argmax(timeline.depth[around])]) if len(around) else None


def iteration_span(timeline: Timeline, frame: int, iteration: int) -> tuple[int, int] | None:
    """Start and end of an iteration (from 0) of the loop with frame row `frame`; None where it is not shown."""
    start, stop = int(timeline.start[frame]), int(timeline.start[frame] + timeline.duration[frame])
    inside = (timeline.lane == timeline.lane[frame]) & (timeline.depth == timeline.depth[frame] + 1)
    inside &= (timeline.iteration == iteration) & (timeline.start >= start) & (timeline.start < stop)
    rows = np.flatnonzero(inside)
    if not len(rows):
        return None
    return int(timeline.start[rows].min()), int((timeline.start[rows] + timeline.duration[rows]).max())
