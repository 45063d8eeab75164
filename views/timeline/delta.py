"""Where one variant gains on another: at each moment, the time in which the base has done as much, less that moment.

What an instruction computes, and the wait for a transfer, are worth the time that they take in the base. The other
variant has done its share of that when it has spent that share of its own time on it; a transfer that it never waits
for is done when it is there. What only the base does is spread over all that both do. So an order that differs does not
by itself make a lead, while a shorter wait, a faster fusion, and what only the other variant does change it where they
happen.
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
_HIDDEN = 1e-9
"""Picoseconds of waiting that count for each picosecond of a transfer: next to nothing beside a true wait for it, and
all there is where there is none."""


@dataclass(frozen=True, eq=False)
class Lead:
    """Picoseconds by which the base has done as much later, linear between moments of the other variant. It ends at the
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
    theirs, mine = _Spent(base, match.base_times, 0.0), _Spent(other, match.other_times, _HIDDEN)
    _, theirs_at, mine_at = np.intersect1d(theirs.keys, mine.keys, return_indices=True)
    times, done = _progress(other, mine, mine.rate(mine_at, theirs.spent[theirs_at] / mine.spent[mine_at]))
    if done[-1]:
        done *= base.makespan / done[-1]
    value = np.rint(done - times).astype(np.int64)
    ends = np.array([0]), np.array([other.makespan])
    time = np.concatenate((ends[0], np.rint(times).astype(np.int64), ends[1]))
    return Lead(time, np.concatenate(([0], value, [base.makespan - other.makespan])))


class _Spent:
    """What the time of a timeline is spent on: picoseconds by key, folded iterations included. What is computed has the
    even keys, what is waited for the odd ones."""

    def __init__(self, timeline: Timeline, keys: Keys, hidden: float) -> None:
        computes = np.array([lane.kind == LaneKind.COMPUTE for lane in timeline.lanes], np.bool_)[timeline.lane]
        waits = computes & (timeline.category == Category.EXPOSED)
        self.moves = ~computes
        """Which slices are transfers."""
        about = np.where(waits, timeline.waits_for, timeline.instruction)
        self.rows = np.flatnonzero((timeline.category != Category.LOOP) & (about >= 0))
        self.once: _Floats = np.where(self.moves, timeline.duration * hidden, timeline.duration)
        """What each slice counts for when it runs once, shape [slices]."""
        worth = self.once * _times(timeline)
        what = about * 2 + (waits | self.moves)
        ids, self._inverse = np.unique(what[self.rows], return_inverse=True)
        self._took = np.bincount(self._inverse, worth[self.rows], len(ids)).astype(np.float64)
        made_from = [[2 * key + id_ % 2 for key in keys(id_ // 2)] for id_ in ids.tolist()]
        count = np.fromiter(map(len, made_from), np.int64, len(made_from))
        flat = np.fromiter(chain.from_iterable(made_from), np.int64, int(count.sum()))
        self._owner = np.repeat(np.arange(len(ids)), count)
        self._part = np.repeat(self._took / np.maximum(count, 1), count)
        named, self._key = np.unique(flat, return_inverse=True)
        self._all = np.bincount(self._key, self._part, len(named)).astype(np.float64)
        self._with = np.flatnonzero(self._all > 0)
        self.keys: Ints = named[self._with]
        self.spent: _Floats = self._all[self._with]

    def rate(self, at: Ints, worth: _Floats) -> _Floats:
        """What each picosecond of each slice is worth, where one spent on the keys `at` is worth so much."""
        of_key = np.zeros(len(self._all))
        of_key[self._with[at]] = worth
        done = np.bincount(self._owner, self._part * of_key[self._key], len(self._took))
        rates = np.zeros(len(self.once))
        rates[self.rows] = np.divide(done, self._took, out=np.zeros(len(done)), where=self._took > 0)[self._inverse]
        return rates


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


def _progress(timeline: Timeline, spent: _Spent, rates: _Floats) -> tuple[_Floats, _Floats]:
    """Times, ascending, and what is done by then is worth; linear between them."""
    folds = timeline.folds
    rows = spent.rows[~spent.moves[spent.rows]]
    done = spent.once * rates
    folded = np.zeros(len(folds))
    for fold in np.argsort(-folds.depth, kind="stable").tolist():
        stop = int(folds.start[fold])
        within = (
            (folds.start >= stop - int(folds.sample[fold])) & (folds.start < stop) & (folds.depth > folds.depth[fold])
        )
        sample = rows_of_sample(timeline, fold)
        folded[fold] = int(folds.count[fold]) * (done[sample].sum() + folded[within].sum())
    start = np.concatenate(([0], timeline.start[rows], folds.start)).astype(np.float64)
    end = np.concatenate(([0], timeline.start[rows] + timeline.duration[rows], folds.start + folds.duration))
    order = np.argsort(end, kind="stable")
    end = end[order].astype(np.float64)
    work = np.cumsum(np.concatenate(([0.0], done[rows], folded))[order])
    before = np.concatenate(([0.0], work[:-1]))
    begin = np.maximum(start[order], np.concatenate(([0.0], end[:-1])))  # of several streams that which ends last
    times, work = np.stack((begin, end), axis=1).ravel(), np.stack((before, work), axis=1).ravel()
    return _with_steps(times, work, *_arrivals(timeline, spent, done))


def _arrivals(timeline: Timeline, spent: _Spent, done: _Floats) -> tuple[_Floats, _Floats]:
    """When transfers are there, ascending, and what those that nothing waits for are worth."""
    rows = spent.rows[spent.moves[spent.rows]]
    end = timeline.start[rows] + timeline.duration[rows]
    order = np.argsort(end, kind="stable")
    return end[order].astype(np.float64), done[rows][order]


def _with_steps(times: _Floats, work: _Floats, at: _Floats, steps: _Floats) -> tuple[_Floats, _Floats]:
    """A line over time that is higher by each of `steps` from the moment `at` which that happens."""
    total = np.concatenate(([0.0], np.cumsum(steps)))
    moments = np.concatenate((times, at, at))
    passed = [np.searchsorted(at, times, "right"), np.searchsorted(at, at, "left"), np.searchsorted(at, at, "right")]
    height = np.concatenate((work, np.interp(at, times, work), np.interp(at, times, work)))
    height += total[np.concatenate(passed)]
    order = np.lexsort((height, moments))
    return moments[order], height[order]
