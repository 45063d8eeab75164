"""Where one variant gains on another: for each instruction that both run, how much earlier it is done."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from engine.ir.graph import Ints
from engine.session.matching import Match
from engine.session.variant import Variant
from engine.timeline.difference import Keys
from engine.timeline.timeline import Category, Curve


def finished(variant: Variant, keys: Keys) -> tuple[Ints, Ints]:
    """Keys, ascending, and when the last instruction of each has run for the last time (picoseconds)."""
    timeline = variant.timeline
    rows = np.flatnonzero((timeline.instruction >= 0) & (timeline.category != Category.EXPOSED))
    ids, inverse = np.unique(timeline.instruction[rows], return_inverse=True)
    end = np.zeros(len(ids), np.int64)
    np.maximum.at(end, inverse, timeline.start[rows] + timeline.duration[rows])
    by_key: dict[int, int] = {}
    for instruction, time in zip(ids.tolist(), end.tolist(), strict=True):
        for key in keys(instruction):
            by_key[key] = max(time, by_key.get(key, 0))
    ordered = np.array(sorted(by_key), np.int64)
    return ordered, np.array([by_key[key] for key in ordered.tolist()], np.int64)


@lru_cache(maxsize=64)
def lead_of(match: Match) -> Curve:
    """Step function over the other variant's time: by how much what it has finished last was finished later in the
    base."""
    keys, end = finished(match.other, match.other_keys)
    theirs, their_end = finished(match.base, match.base_keys)
    shared, mine_at, theirs_at = np.intersect1d(keys, theirs, return_indices=True)
    time, lead = end[mine_at], their_end[theirs_at] - end[mine_at]
    order = np.lexsort((shared, time))
    return Curve(time[order], lead[order])
