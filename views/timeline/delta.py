"""Where one variant gains on another: for each instruction that both run, how much earlier it is done."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from engine.ir.graph import Ints
from engine.session.variant import Variant
from engine.timeline.timeline import Category, Curve


@lru_cache(maxsize=64)
def finished(variant: Variant) -> tuple[Ints, Ints]:
    """Origins, ascending, and when the last instruction made from each has run for the last time (picoseconds)."""
    timeline = variant.timeline
    rows = np.flatnonzero((timeline.instruction >= 0) & (timeline.category != Category.EXPOSED))
    ids, inverse = np.unique(timeline.instruction[rows], return_inverse=True)
    end = np.zeros(len(ids), np.int64)
    np.maximum.at(end, inverse, timeline.start[rows] + timeline.duration[rows])
    by_origin: dict[int, int] = {}
    for instruction, time in zip(ids.tolist(), end.tolist(), strict=True):
        for origin in variant.program.module.origins_of(instruction):
            by_origin[origin] = max(time, by_origin.get(origin, 0))
    origins = np.array(sorted(by_origin), np.int64)
    return origins, np.array([by_origin[o] for o in origins.tolist()], np.int64)


@lru_cache(maxsize=64)
def lead_of(base: Variant, variant: Variant) -> Curve:
    """Step function over `variant`'s time: by how much what it has finished last was finished later in `base`."""
    origins, end = finished(variant)
    theirs, their_end = finished(base)
    shared, mine_at, theirs_at = np.intersect1d(origins, theirs, return_indices=True)
    time, lead = end[mine_at], their_end[theirs_at] - end[mine_at]
    order = np.lexsort((shared, time))
    return Curve(time[order], lead[order])
