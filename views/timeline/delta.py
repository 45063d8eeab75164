"""Where one variant gains on another: at each moment, how long before or after it the base has done as much.

Work is what both compute, counted in the time that it takes in the base: an instruction of the other variant does the
part of its counterpart that its share of their time is. Waiting and what only one of them computes do no work, so that
they cost lead, and an order that differs does not jump back and forth. Where both wait after the same work, their waits
are laid over each other from end to end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from engine.ir.graph import Ints
from engine.session.matching import Match
from engine.timeline.difference import Keys
from engine.timeline.timeline import Category, LaneKind, Timeline

_Floats = npt.NDArray[np.float64]
_SAME = 1e-9
"""Amounts of work that differ by less than this part of all are one: sums in different orders round differently."""


@dataclass(frozen=True, eq=False)
class Lead:
    """Picoseconds by which the base does as much later, linear between moments of the other variant. It ends at the
    difference of the makespans."""

    time: Ints
    """Ascending, from 0 to the other variant's makespan. Where two are equal the lead jumps."""
    value: Ints
    """Positive where the other variant is ahead."""

    def at(self, times: Ints) -> Ints:
        """The lead at other times; after the end it stays what it was there."""
        return np.rint(np.interp(times, self.time, self.value)).astype(np.int64)

    @property
    def largest(self) -> int:
        """How far ahead or behind it is where that is most."""
        return int(np.abs(self.value).max())

    @property
    def makespan(self) -> int:
        """Of the other variant."""
        return int(self.time[-1])

    @property
    def end(self) -> int:
        """Makespan of the base less that of the other variant."""
        return int(self.value[-1])


@lru_cache(maxsize=64)
def lead_of(match: Match) -> Lead:
    """How far the other variant of a match is ahead of its base."""
    base, other = match.base.timeline, match.other.timeline
    theirs, mine = _Work(base, match.base_keys), _Work(other, match.other_keys)
    shared, theirs_at, mine_at = np.intersect1d(theirs.keys, mine.keys, return_indices=True)
    worth = theirs.spent[theirs_at]
    one = _progress(base, theirs.rate(theirs_at, np.ones(len(shared))))
    two = _progress(other, mine.rate(mine_at, worth / mine.spent[mine_at]))
    total = float(one[1][-1])
    two = two[0], _snapped(two[1] * (total / two[1][-1] if two[1][-1] else 1.0), one[1], _SAME * total)
    levels = np.union1d(one[1], two[1])
    (since, until), (base_since, base_until) = _when(*two, levels), _when(*one, levels)
    time = np.stack((since, until), axis=1).ravel()
    value = np.stack((base_since - since, base_until - until), axis=1).ravel()
    return Lead(np.rint(time).astype(np.int64), np.rint(value).astype(np.int64))


class _Work:
    """What a timeline's compute is made from: picoseconds by key, folded iterations included."""

    def __init__(self, timeline: Timeline, keys: Keys) -> None:
        rows = compute_rows(timeline)
        times = _times(timeline)
        ids, inverse = np.unique(timeline.instruction[rows], return_inverse=True)
        took = np.bincount(inverse, timeline.duration[rows] * times[rows], len(ids))
        made_from = [keys(instruction) for instruction in ids.tolist()]
        count = np.fromiter(map(len, made_from), np.int64, len(made_from))
        flat = np.fromiter(chain.from_iterable(made_from), np.int64, int(count.sum()))
        self._rows, self._inverse, self._many, self._took = rows, inverse, len(timeline), took
        self._owner = np.repeat(np.arange(len(ids)), count)
        self._part = np.repeat(took / np.maximum(count, 1), count)
        self.keys, self._key = np.unique(flat, return_inverse=True)
        self.spent = np.bincount(self._key, self._part, len(self.keys)).astype(np.float64)

    def rate(self, at: Ints, worth: _Floats) -> _Floats:
        """Work for each picosecond of each slice, where that of the keys `at` is worth so much; shape [slices]."""
        of_key = np.zeros(len(self.keys))
        of_key[at] = worth
        done = np.bincount(self._owner, self._part * of_key[self._key], len(self._took))
        rates = np.zeros(self._many)
        rates[self._rows] = (done / np.maximum(self._took, 1))[self._inverse]
        return rates


def compute_rows(timeline: Timeline) -> Ints:
    """Rows of what a compute lane computes."""
    computes = np.array([lane.kind == LaneKind.COMPUTE for lane in timeline.lanes], np.bool_)
    works = (timeline.category != Category.EXPOSED) & (timeline.category != Category.LOOP) & (timeline.instruction >= 0)
    return np.flatnonzero(computes[timeline.lane] & works)


def rows_of_sample(timeline: Timeline, fold: int) -> Ints:
    """Rows of the iteration that stands for a folded stretch, frames included, in every lane."""
    folds = timeline.folds
    stop = int(folds.start[fold])
    start = stop - int(folds.sample[fold])
    cuts = np.searchsorted(timeline.lane, np.arange(len(timeline.lanes) + 1)).tolist()
    found = []
    for low, high in pairwise(cuts):
        first, last = np.searchsorted(timeline.start[low:high], (start, stop))
        found.append(np.arange(low + first, low + last))
    rows: Ints = np.concatenate(found)
    deep: Ints = rows[timeline.depth[rows] >= folds.depth[fold]]
    return deep


def _times(timeline: Timeline) -> _Floats:
    """How often each slice runs: once, and once more for each iteration that it stands for."""
    times = np.ones(len(timeline))
    for fold in range(len(timeline.folds)):
        times[rows_of_sample(timeline, fold)] *= 1 + int(timeline.folds.count[fold])
    return times


def _progress(timeline: Timeline, rates: _Floats) -> tuple[_Floats, _Floats]:
    """Times, ascending, and how much work is done by then; linear between them."""
    folds = timeline.folds
    rows = compute_rows(timeline)
    done = timeline.duration * rates
    folded = np.zeros(len(folds))
    for fold in np.argsort(-folds.depth, kind="stable").tolist():
        stop = int(folds.start[fold])
        within = (
            (folds.start >= stop - int(folds.sample[fold])) & (folds.start < stop) & (folds.depth > folds.depth[fold])
        )
        sample = rows_of_sample(timeline, fold)
        folded[fold] = int(folds.count[fold]) * (done[sample].sum() + folded[within].sum())
    if not len(rows):
        return np.array([0.0, timeline.makespan]), np.zeros(2)
    start = np.concatenate((timeline.start[rows], folds.start)).astype(np.float64)
    end = np.concatenate((timeline.start[rows] + timeline.duration[rows], folds.start + folds.duration))
    order = np.argsort(end, kind="stable")
    start, end = start[order], end[order].astype(np.float64)
    work = np.cumsum(np.concatenate((done[rows], folded))[order])
    before = np.concatenate(([0.0], work[:-1]))
    begin = np.maximum(start, np.concatenate(([0.0], end[:-1])))  # of several streams the one that ends last counts
    times = np.concatenate(([0.0], np.stack((begin, end), axis=1).ravel(), [float(timeline.makespan)]))
    return times, np.concatenate(([0.0], np.stack((before, work), axis=1).ravel(), [work[-1]]))


def _snapped(levels: _Floats, to: _Floats, within: float) -> _Floats:
    after = np.clip(np.searchsorted(to, levels), 1, len(to) - 1)
    nearest = np.where(levels - to[after - 1] <= to[after] - levels, to[after - 1], to[after])
    return np.where(np.abs(nearest - levels) <= within, nearest, levels)


def _when(times: _Floats, work: _Floats, levels: _Floats) -> tuple[_Floats, _Floats]:
    """When each amount of work is first done, and until when nothing is added to it."""
    first = np.searchsorted(work, levels, side="left").clip(0, len(work) - 1)
    last = (np.searchsorted(work, levels, side="right") - 1).clip(0, len(work) - 1)
    met = work[first] == levels
    between = np.interp(levels, work, times)
    return np.where(met, times[first], between), np.where(met, times[last], between)
