"""Iterations of a loop on a timeline: which loop is meant, and where an iteration lies if it is shown."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from engine.timeline.timeline import Category, Timeline
from views.timeline.scene import rows_of

_LISTED = 4
"""Iterations that are named."""


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


def frame_of_fold(timeline: Timeline, fold: int) -> int | None:
    """Row of the frame of the loop that a folded stretch is of."""
    folds = timeline.folds
    begin = int(folds.start[fold])
    around = (timeline.category == Category.LOOP) & (timeline.instruction == folds.instruction[fold])
    around &= (timeline.start <= begin) & (timeline.start + timeline.duration > begin)
    rows = np.flatnonzero(around & (timeline.depth == folds.depth[fold] - 1))
    return int(rows[0]) if len(rows) else None


def iteration_span(timeline: Timeline, frame: int, iteration: int) -> tuple[int, int] | None:
    """Start and end of an iteration (from 0) of the loop with frame row `frame`; None where it is not shown."""
    start, stop = int(timeline.start[frame]), int(timeline.start[frame] + timeline.duration[frame])
    inside = (timeline.lane == timeline.lane[frame]) & (timeline.depth == timeline.depth[frame] + 1)
    inside &= (timeline.iteration == iteration) & (timeline.start >= start) & (timeline.start < stop)
    rows = np.flatnonzero(inside)
    if not len(rows):
        return None
    return int(timeline.start[rows].min()), int((timeline.start[rows] + timeline.duration[rows]).max())


def iterations_text(timeline: Timeline, frame: int, start: int, stop: int) -> str:
    """Which iterations of a loop that is folded are shown between two times, counted from 1: ``iteration 5,001``."""
    loop = timeline.folds.instruction == timeline.instruction[frame]
    ends = timeline.start[frame], timeline.start[frame] + timeline.duration[frame]
    if not (loop & (timeline.folds.start >= ends[0]) & (timeline.folds.start < ends[1])).any():
        return ""
    inside = (timeline.lane == timeline.lane[frame]) & (timeline.depth == timeline.depth[frame] + 1)
    inside &= (timeline.start >= ends[0]) & (timeline.start < min(ends[1], stop))
    inside &= (timeline.start + timeline.duration > start) & (timeline.iteration < timeline.repeat[frame])
    shown = np.unique(timeline.iteration[inside]) + 1
    if not len(shown):
        return ""
    if len(shown) > _LISTED:
        return f"{len(shown)} iterations shown"
    return f"iteration{'s' if len(shown) > 1 else ''} {', '.join(f'{n:,}' for n in shown.tolist())} shown"
