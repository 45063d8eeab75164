"""Where one variant gains on another: for each instruction that both run, how much earlier it is done."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

import numpy as np

from engine.ir.graph import Ints
from engine.session.matching import Match
from engine.session.variant import Variant
from engine.timeline.difference import Keys
from engine.timeline.timeline import Category, Curve


@lru_cache(maxsize=64)
def finished(variant: Variant, keys: Keys) -> tuple[Ints, Ints]:
    """Keys, ascending, and when the last instruction of each has run for the last time (picoseconds)."""
    timeline = variant.timeline
    rows = np.flatnonzero((timeline.instruction >= 0) & (timeline.category != Category.EXPOSED))
    ids, inverse = np.unique(timeline.instruction[rows], return_inverse=True)
    end = np.zeros(len(ids), np.int64)
    np.maximum.at(end, inverse, timeline.start[rows] + timeline.duration[rows])
    made_from = [keys(instruction) for instruction in ids.tolist()]
    count = np.fromiter(map(len, made_from), np.int64, len(made_from))
    flat = np.fromiter(chain.from_iterable(made_from), np.int64, int(count.sum()))
    times = np.repeat(end, count)
    order = np.lexsort((times, flat))
    flat, times = flat[order], times[order]
    latest = np.append(flat[1:] != flat[:-1], len(flat) > 0)[: len(flat)]
    return flat[latest], times[latest]


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
