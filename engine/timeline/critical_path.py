"""What a timeline's makespan consists of: from its end back, each piece is what the piece after it had to wait for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.ir.graph import Ints
from engine.timeline.timeline import Category, LaneKind, Timeline


@dataclass(frozen=True, eq=False)
class CriticalPath:
    """Pieces in order of time, one beginning where the one before it ends, from 0 to the makespan. Read-only."""

    rows: Ints
    """Row of the timeline's columns for each piece; the loop's frame for iterations not shown, -1 for idle time."""
    start: Ints
    """Picoseconds."""
    end: Ints

    def __len__(self) -> int:
        return len(self.rows)


def critical_path(timeline: Timeline) -> CriticalPath:
    """The critical path of a timeline: what follows on the stream counts as having waited for what runs before it."""
    return _Walk(timeline).path()


class _Walk:
    """From the end of the timeline back to its beginning."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        kinds = np.array([lane.kind for lane in timeline.lanes], dtype=np.uint8)
        on_stream = kinds[timeline.lane] == LaneKind.COMPUTE
        frames = timeline.category == Category.LOOP
        leaves = np.flatnonzero(on_stream & ~frames)
        end = timeline.start + timeline.duration
        self._leaves = leaves[np.lexsort((timeline.start[leaves], end[leaves]))]
        self._start, self._end = timeline.start[self._leaves], end[self._leaves]
        self._frames = np.flatnonzero(frames)
        gap = timeline.category[self._leaves] == Category.EXPOSED
        apart = np.ones(len(self._leaves), dtype=np.bool_)
        apart[1:] = (self._start[1:] != self._end[:-1]) | gap[1:] | gap[:-1]
        self._heads = np.flatnonzero(apart)
        """First leaf of each block of leaves that run back to back."""
        self._gap = gap
        self._transfers = np.flatnonzero(~on_stream)
        by_instruction = np.argsort(timeline.instruction[self._transfers], kind="stable")
        self._transfers = self._transfers[by_instruction]
        self._pieces: list[Ints] = []
        """Tables of shape [3, pieces]: row, start, end; the last ones first."""

    def path(self) -> CriticalPath:
        now = self._timeline.makespan
        while now > 0:
            now = self._back(now)
        empty = np.zeros((3, 0), dtype=np.int64)
        rows, start, end = np.concatenate([empty, *self._pieces[::-1]], axis=1)
        for column in (rows, start, end):
            column.flags.writeable = False
        return CriticalPath(rows, start, end)

    def _back(self, now: int) -> int:
        """Put what runs up to `now` on the path; when it begins. A measured transfer may begin within other work."""
        at = int(np.searchsorted(self._end, now, side="left"))
        if at == len(self._leaves) or self._start[at] >= now:
            return self._nothing(int(self._end[at - 1]) if at else 0, now)
        if self._gap[at]:
            return self._transfer(at, now)
        head = int(self._heads[np.searchsorted(self._heads, at, side="right") - 1])
        rows, start = self._leaves[head : at + 1], self._start[head : at + 1]
        end = np.minimum(self._end[head : at + 1], now)
        self._pieces.append(np.stack([rows, start, end]))
        return int(start[0])

    def _transfer(self, at: int, now: int) -> int:
        """Put the transfer that a gap waits for on the path, as far as it is known."""
        timeline = self._timeline
        waited = int(timeline.waits_for[self._leaves[at]])
        ids = timeline.instruction[self._transfers]
        first, last = np.searchsorted(ids, waited, side="left"), np.searchsorted(ids, waited, side="right")
        rows = self._transfers[first:last]
        rows = rows[timeline.start[rows] < now]
        if waited < 0 or not len(rows):
            self._append(int(self._leaves[at]), int(self._start[at]), now)
            return int(self._start[at])
        row = int(rows[np.argmax(timeline.start[rows])])
        begin = int(timeline.start[row])
        self._append(row, begin, now)
        return begin

    def _nothing(self, begin: int, now: int) -> int:
        """Nothing on the stream ends at `now`: iterations that are not shown, or idle time back to `begin`."""
        start = self._timeline.start[self._frames]
        around = self._frames[(start < now) & (start + self._timeline.duration[self._frames] >= now)]
        if not len(around):
            self._append(-1, begin, now)
            return begin
        row = int(around[np.argmax(self._timeline.depth[around])])
        begin = max(begin, int(self._timeline.start[row]))
        self._append(row, begin, now)
        return begin

    def _append(self, row: int, start: int, end: int) -> None:
        self._pieces.append(np.array([[row], [start], [end]], dtype=np.int64))
