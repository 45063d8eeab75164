"""Where everything lies from top to bottom: a pure function from the session's entries to rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from engine.session.lanes import Lanes
from engine.session.session import Entry
from engine.timeline.timeline import LaneKind, Timeline
from views.theme import GRID
from views.timeline.bands import bands_of

HEADER = 7 * GRID
COMPUTE = 6 * GRID
TRANSFER = 4 * GRID
COUNTER = 7 * GRID
FRAME = 4 * GRID
IDLE = 4 * GRID
GAP = GRID
MESSAGE = 12 * GRID
DELTA = 12 * GRID
_AS_THEY_COME = Lanes()
DEEPEST = 3
"""Frames nested deeper than this share the innermost strip."""


class RowKind(IntEnum):
    HEADER = 0
    COMPUTE = 1
    TRANSFER = 2
    IN_FLIGHT = 3
    MEMORY = 4
    IDLE = 5
    """Lanes without slices, folded into one line."""
    MESSAGE = 6
    """In place of lanes that are not there (yet)."""
    DELTA = 7


@dataclass(frozen=True, slots=True)
class Row:
    """One horizontal strip of the stack; tops are from the top of the content."""

    kind: RowKind
    entry: int
    """Number of the entry, -1 for the delta row."""
    top: int
    height: int
    lane: int = -1
    label: str = ""
    frames: int = 0
    """Strips for loop frames at the top of the row."""
    pinned: bool = False
    """Whether it stays under its entry's header."""

    @property
    def bottom(self) -> int:
        return self.top + self.height


@dataclass(frozen=True)
class Stack:
    """All rows, and where each entry begins and ends."""

    rows: tuple[Row, ...]
    height: int

    def at(self, y: float) -> Row | None:
        """The row at a height of the content."""
        return next((row for row in self.rows if row.top <= y < row.bottom), None)

    def of(self, entry: int) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.entry == entry)

    def placed(self, entry: int, scroll: int) -> tuple[Row, ...]:
        """The rows of an entry where they are seen when the content is scrolled: its header and what is pinned under it
        stay at the top for as long as there is room for them in the entry."""
        rows = self.of(entry)
        held = [row for row in rows if row.kind == RowKind.HEADER or row.pinned]
        top, bottom = rows[0].top, rows[-1].bottom
        shift = max(0, min(scroll - top, bottom - top - (held[-1].bottom - top)))
        if not shift:
            return rows
        return tuple(replace(row, top=row.top + shift) if row in held else row for row in rows)

    def span_of(self, entry: int) -> tuple[int, int]:
        """Top and bottom of an entry."""
        rows = self.of(entry)
        return rows[0].top, rows[-1].bottom

    def kept(self, before: Stack, scroll: int, page: int) -> int:
        """How far to scroll so that the entry in the middle of the page is where it was when `before`, of the same
        entries, was scrolled by `scroll`."""
        row = before.at(scroll + page / 2)
        if row is None or row.entry < 0:
            return scroll
        (old, _), (new, bottom) = before.span_of(row.entry), self.span_of(row.entry)
        return max(0, min(scroll + new - old, bottom - HEADER))


def stack_of(entries: Sequence[Entry], *, delta: str = "", lanes: Lanes = _AS_THEY_COME) -> Stack:
    """Rows for `entries` from the top, in the arrangement `lanes`; with `delta`, a last row with that label."""
    rows: list[Row] = []
    top = 0
    for number, entry in enumerate(entries):
        for kind, height, lane, label, frames in _parts(entry, lanes):
            held = kind != RowKind.IDLE and label in lanes.pinned  # a line of names is no lane, even of one name
            rows.append(Row(kind, number, top, height, lane, label, frames, held))
            top += height + (0 if kind == RowKind.HEADER else GAP)
        top += GAP
    if delta:
        rows.append(Row(RowKind.DELTA, -1, top, DELTA, label=delta))
        top += DELTA + GAP
    return Stack(tuple(rows), top)


_Part = tuple[RowKind, int, int, str, int]


def _parts(entry: Entry, lanes: Lanes) -> Iterator[_Part]:
    yield RowKind.HEADER, HEADER, -1, "", 0
    if entry.collapsed:
        return
    if entry.variant is None or entry.error:
        yield RowKind.MESSAGE, MESSAGE, -1, "", 0
        if entry.variant is None:
            return
    timeline = entry.variant.timeline
    if not len(timeline):
        yield RowKind.MESSAGE, MESSAGE, -1, "", 0
        return
    parts, idle = _lanes(timeline)
    if len(timeline.in_flight.time) and timeline.in_flight.peak > 0:
        parts.append((RowKind.IN_FLIGHT, COUNTER, -1, "in flight", 0))
    if len(timeline.memory.time) and timeline.memory.peak > 0:
        parts.append((RowKind.MEMORY, COUNTER, -1, "memory", 0))
    idle += [part[3] for part in parts if part[3] in lanes.hidden]
    parts = [part for part in parts if part[3] not in lanes.hidden]
    yield from (parts[at] for at in lanes.arranged([part[3] for part in parts]))
    if idle:
        yield RowKind.IDLE, IDLE, -1, ", ".join(idle), 0


def _lanes(timeline: Timeline) -> tuple[list[_Part], list[str]]:
    """Rows of the lanes with something on them, and the names of the others."""
    parts: list[_Part] = []
    idle: list[str] = []
    for number, (lane, bands) in enumerate(zip(timeline.lanes, bands_of(timeline), strict=True)):
        compute = lane.kind == LaneKind.COMPUTE
        if not (len(bands.slices) or bands.frames):
            idle.append(lane.name)
            continue
        frames = min(DEEPEST, len(bands.frames)) if compute else 0
        height = (COMPUTE if compute else TRANSFER) + frames * FRAME
        parts.append((RowKind.COMPUTE if compute else RowKind.TRANSFER, height, number, lane.name, frames))
    return parts, idle
