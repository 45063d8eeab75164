"""How the time of a pixel column is divided: what to draw where slices are narrower than that, as in a loop of
thousands of iterations seen from far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from engine.ir.graph import Ints
from engine.timeline.timeline import Category, Timeline
from views.in_place import Floats
from views.timeline.axis import Window
from views.timeline.bands import bands_of

ORDER = (
    Category.EINSUM,
    Category.ELEMENTWISE,
    Category.COPY,
    Category.COLLECTIVE,
    Category.PERMUTE,
    Category.EXPOSED,
)
"""From the bottom to the top of a column; what is missing above is idle."""
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Busy:
    """Slices of one category, ascending, and how long they are together before each."""

    start: Ints
    end: Ints
    before: Ints

    def until(self, times: Floats) -> Floats:
        """Picoseconds that the slices take before some times."""
        at = np.searchsorted(self.start, times, side="right")
        over = np.maximum(0.0, self.end[np.maximum(at - 1, 0)] - times)
        return np.asarray(self.before[at] - np.where(at > 0, over, 0.0), np.float64)


@dataclass(frozen=True, eq=False)
class LaneShares:
    """One lane's slices and gaps, ascending by start, and by category."""

    busy: Mapping[Category, _Busy]
    start: Ints
    end: Ints

    def of(self, window: Window) -> Mapping[Category, Floats]:
        """Category → its share of the time of each column of a window, 0 to 1, from the left."""
        edges = edges_of(window)
        each = np.diff(edges)
        shares = {kind: np.diff(self.busy[kind].until(edges)) / each for kind in ORDER if kind in self.busy}
        whole = np.maximum(1.0, sum(shares.values(), np.zeros(len(each))))
        return {kind: share / whole for kind, share in shares.items()}

    def crowded(self, window: Window) -> Bools:
        """Which columns any slice touches that is narrower than one."""
        columns = max(1, int(window.width))
        seen = slice(*np.searchsorted(self.start, (window.start - per_column(window), window.stop)).tolist())
        start, end = self.start[seen], self.end[seen]
        narrow = (end - start < per_column(window)) & (end > window.start)
        first, last = (
            np.clip(np.floor(window.x(times[narrow]) - window.left), 0, columns - 1).astype(np.int64)
            for times in (start, end - 1)
        )
        steps = np.bincount(first, minlength=columns + 1) - np.bincount(last + 1, minlength=columns + 1)
        return np.cumsum(steps)[:columns] > 0


def per_column(window: Window) -> float:
    """Picoseconds of a column: what is shorter is drawn by its share of it."""
    return window.span / window.width


def edges_of(window: Window) -> Floats:
    """Times at which the columns of a window begin, and the end of the last."""
    columns = max(1, int(window.width))
    return np.asarray(window.start + np.arange(columns + 1) * per_column(window), np.float64)


@lru_cache(maxsize=64)
def shares_of(timeline: Timeline) -> tuple[LaneShares, ...]:
    """Those of every lane, in the order of `Timeline.lanes`. Kept for the timelines seen last."""
    return tuple(
        _lane(timeline, np.sort(np.concatenate((bands.slices.slices, bands.gaps.slices))))
        for bands in bands_of(timeline)
    )


def _lane(timeline: Timeline, rows: Ints) -> LaneShares:
    category = timeline.category[rows]
    busy = {Category(kind): _busy(timeline, rows[category == kind]) for kind in np.unique(category).tolist()}
    rows = rows[np.argsort(timeline.start[rows], kind="stable")]
    start = timeline.start[rows]
    end = start + timeline.duration[rows]
    for times in (start, end):
        times.setflags(write=False)
    return LaneShares(busy, start, end)


def _busy(timeline: Timeline, rows: Ints) -> _Busy:
    rows = rows[np.argsort(timeline.start[rows], kind="stable")]
    start, duration = timeline.start[rows], timeline.duration[rows]
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(duration)))
    made = _Busy(start, start + duration, before)
    for column in (made.start, made.end, made.before):
        column.setflags(write=False)
    return made
