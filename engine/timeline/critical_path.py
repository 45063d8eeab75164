"""What a timeline's makespan consists of: from its end back, each piece is what the piece after it had to wait for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from engine.ir.graph import Graph, Ints
from engine.timeline.timeline import Category, LaneKind, Timeline


class Reason(IntEnum):
    """Why a piece begins when it does, and not before."""

    BEGIN = 0
    """It is the first."""
    STREAM = 1
    """The compute stream was busy with the piece before it, whose result it does not read."""
    RESULT = 2
    """It reads the result of the piece before it."""
    TRANSFER = 3
    """It waited for the transfer before it."""
    ISSUE = 4
    """It is a transfer, which begins when the stream comes to its start, after the piece before it."""
    HIDDEN = 5
    """It stands for iterations of a loop that are not shown, after the piece before it."""
    IDLE = 6
    """Nothing in the timeline says what was waited for."""


@dataclass(frozen=True, eq=False)
class CriticalPath:
    """Pieces in order of time, one beginning where the one before it ends, from 0 to the makespan. Read-only."""

    rows: Ints
    """Row of the timeline's columns for each piece; the loop's frame for iterations not shown, -1 for idle time."""
    start: Ints
    """Picoseconds."""
    end: Ints
    reason: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.rows)

    def time_by_category(self, timeline: Timeline) -> Mapping[int, int]:
        """Picoseconds of the path by `Category`, -1 for idle time; they add up to the makespan."""
        category = np.where(self.rows >= 0, timeline.category[self.rows].astype(np.int64), -1)
        return {int(c): int((self.end - self.start)[category == c].sum()) for c in np.unique(category)}


def critical_path(timeline: Timeline, graphs: Mapping[int, Graph] | None = None) -> CriticalPath:
    """The critical path of a timeline.

    With the computations' `graphs` pieces that only follow another on the stream are told from those that read its
    result.
    """
    return _Walk(timeline, graphs).path()


class _Walk:
    """From the end of the timeline back to its beginning."""

    def __init__(self, timeline: Timeline, graphs: Mapping[int, Graph] | None) -> None:
        self._timeline = timeline
        self._graphs = graphs
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
        """Tables of shape [4, pieces]: row, start, end, reason; the last ones first."""

    def path(self) -> CriticalPath:
        now = self._timeline.makespan
        while now > 0:
            now = self._back(now)
        empty = np.zeros((4, 0), dtype=np.int64)
        rows, start, end, reason = np.concatenate([empty, *self._pieces[::-1]], axis=1)
        path = CriticalPath(rows, start, end, reason.astype(np.uint8))
        for column in (path.rows, path.start, path.end, path.reason):
            column.flags.writeable = False
        return path

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
        self._pieces.append(np.stack([rows, start, end, self._reasons(rows, head)]))
        return int(start[0])

    def _reasons(self, rows: Ints, head: int) -> Ints:
        reasons = np.full(len(rows), Reason.STREAM, dtype=np.int64)
        if self._graphs is not None:
            instructions = self._timeline.instruction[rows].tolist()
            for place, (one, two) in enumerate(pairwise(instructions), start=1):
                if one in self._read_by(two):
                    reasons[place] = Reason.RESULT
        if self._start[head] == 0:
            reasons[0] = Reason.BEGIN
        elif head and self._gap[head - 1]:
            reasons[0] = Reason.TRANSFER
        return reasons

    def _read_by(self, instruction: int) -> set[int]:
        """Ids of the instructions that one reads or must follow."""
        if instruction not in self._places:
            return set()
        graph, node = self._places[instruction]
        return set(graph.ids[graph.predecessors.of(node)].tolist())

    @cached_property
    def _places(self) -> Mapping[int, tuple[Graph, int]]:
        graphs = self._graphs or {}
        return {id_: (graph, node) for graph in graphs.values() for node, id_ in enumerate(graph.ids.tolist())}

    def _transfer(self, at: int, now: int) -> int:
        """Put the transfer that a gap waits for on the path, as far as it is known."""
        timeline = self._timeline
        waited = int(timeline.waits_for[self._leaves[at]])
        ids = timeline.instruction[self._transfers]
        first, last = np.searchsorted(ids, waited, side="left"), np.searchsorted(ids, waited, side="right")
        rows = self._transfers[first:last]
        rows = rows[timeline.start[rows] < now]
        if waited < 0 or not len(rows):
            self._append(int(self._leaves[at]), int(self._start[at]), now, Reason.IDLE)
            return int(self._start[at])
        row = int(rows[np.argmax(timeline.start[rows])])
        begin = int(timeline.start[row])
        self._append(row, begin, now, Reason.ISSUE if begin else Reason.BEGIN)
        return begin

    def _nothing(self, begin: int, now: int) -> int:
        """Nothing on the stream ends at `now`: iterations that are not shown, or idle time back to `begin`."""
        start = self._timeline.start[self._frames]
        around = self._frames[(start < now) & (start + self._timeline.duration[self._frames] >= now)]
        if not len(around):
            self._append(-1, begin, now, Reason.IDLE)
            return begin
        row = int(around[np.argmax(self._timeline.depth[around])])
        begin = max(begin, int(self._timeline.start[row]))
        self._append(row, begin, now, Reason.HIDDEN)
        return begin

    def _append(self, row: int, start: int, end: int, reason: Reason) -> None:
        self._pieces.append(np.array([[row], [start], [end], [reason]], dtype=np.int64))
