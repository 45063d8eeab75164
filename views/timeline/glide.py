"""The short movement from an old timeline to a new one, so that the eye can follow an instruction."""

from __future__ import annotations

import numpy as np

from engine.ir.graph import Ints
from engine.timeline.timeline import Category, Timeline
from views.timeline.scene import Positions

MILLISECONDS = 150
MOST = 50_000
"""Timelines with more slices change at once: matching them would take longer than the movement."""


class Glide:
    """Positions between two timelines. Slices are matched by instruction and iteration; what is new stays put."""

    def __init__(self, old: Timeline, new: Timeline) -> None:
        self.timeline = new
        """Where the movement ends."""
        self._start = new.start.copy()
        self._duration = new.duration.copy()
        key_old, rows_old = _keys(old)
        key_new, rows_new = _keys(new)
        _, at_old, at_new = np.intersect1d(key_old, key_new, return_indices=True)
        self._start[rows_new[at_new]] = old.start[rows_old[at_old]]
        self._duration[rows_new[at_new]] = old.duration[rows_old[at_old]]

    def at(self, part: float) -> Positions:
        """Where slices are after `part` (0..1) of the way."""
        eased = 1.0 - (1.0 - min(1.0, max(0.0, part))) ** 3

        def positions(rows: Ints) -> tuple[Ints, Ints]:
            return (
                _between(self._start[rows], self.timeline.start[rows], eased),
                _between(self._duration[rows], self.timeline.duration[rows], eased),
            )

        return positions


def worthwhile(old: Timeline, new: Timeline) -> bool:
    return 0 < len(old) <= MOST and 0 < len(new) <= MOST


def _between(old: Ints, new: Ints, part: float) -> Ints:
    return old + ((new - old) * part).astype(np.int64)


def _keys(timeline: Timeline) -> tuple[Ints, Ints]:
    """A number for each slice of an instruction, and its row; the first one counts where several are alike."""
    rows = np.flatnonzero((timeline.instruction >= 0) & (timeline.category != Category.EXPOSED))
    lane = timeline.lane[rows].astype(np.int64) & 0xFF
    key = (timeline.instruction[rows] << 28) ^ (timeline.iteration[rows] << 8) ^ lane
    unique, first = np.unique(key, return_index=True)
    return unique, rows[first]
