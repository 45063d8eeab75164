"""What is where: from a point of the widget to a row and a slice, and from a selection to the slice it begins with."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF

from engine.session.matching import shown_in
from engine.session.session import Session
from engine.timeline.timeline import Category
from views.timeline.axis import Window
from views.timeline.bands import bands_of
from views.timeline.iterations import frame_of_fold
from views.timeline.overlay import Hit
from views.timeline.scene import AXIS, GUTTER, rows_of
from views.timeline.stack import FRAME, Row, RowKind, Stack


def row_at(stack: Stack, scroll: int, y: float) -> tuple[Row, bool] | None:
    """The row at a height of the widget, and whether it is a header (which may stick)."""
    if y < AXIS:
        return None
    at = y - AXIS + scroll
    row = stack.at(at)
    if row is not None and row.entry >= 0:
        # What stays under the axis lies over what scrolls beneath it.
        placed = sorted(stack.placed(row.entry, scroll), key=lambda r: r.kind != RowKind.HEADER and not r.pinned)
        row = next((r for r in placed if r.top <= at < r.bottom), row)
    return None if row is None else (row, row.kind == RowKind.HEADER)


def hit_at(session: Session, stack: Stack, scroll: int, window: Window, position: QPointF) -> Hit | None:
    """The slice, gap or frame under a point of the widget; within a pixel of it where nothing is wide enough. Where
    iterations are folded it is the loop's frame."""
    found = row_at(stack, scroll, position.y())
    if found is None or found[1] or position.x() < GUTTER or found[0].lane < 0:
        return None
    row = found[0]
    variant = session.entries[row.entry].variant
    if variant is None:
        return None
    time, slack = window.time_at(position.x()), window.per_pixel
    bands = bands_of(variant.timeline)[row.lane]
    inside = position.y() - AXIS + scroll - row.top
    if inside < row.frames * FRAME:
        depth = min(int(inside // FRAME), len(bands.frames) - 1)
        at = bands.frames[depth].at(time, slack)
        return None if at is None else Hit(row.entry, at)
    for band, reach in ((bands.gaps, 0), (bands.slices, 0), (bands.slices, slack), (bands.gaps, slack)):
        at = band.at(time, reach)
        if at is not None:
            return Hit(row.entry, at)
    fold = variant.timeline.folds.at(time)
    frame = frame_of_fold(variant.timeline, fold) if fold is not None else None
    return Hit(row.entry, frame) if frame is not None else None


def anchor_of(session: Session, before: Hit | None) -> Hit | None:
    """The slice where arrows and steps begin: what was clicked; after a selection made elsewhere, its first slice."""
    if before is not None and before.entry < len(session.entries):
        variant = session.entries[before.entry].variant
        if variant is not None and before.row < len(variant.timeline):
            timeline = variant.timeline
            ids = {int(timeline.instruction[before.row]), int(timeline.waits_for[before.row])}
            if ids & shown_in(session, session.entries[before.entry].key):
                return before
    return _first_slice(session)


def _first_slice(session: Session) -> Hit | None:
    number = next((n for n, e in enumerate(session.entries) if e.key == session.active), None)
    variant = session.active_variant
    if number is None or variant is None or not session.selection:
        return None
    timeline = variant.timeline
    rows = rows_of(timeline, shown_in(session, session.active))
    rows = rows[timeline.category[rows] != Category.EXPOSED]
    return Hit(number, int(rows[np.argmin(timeline.start[rows])])) if len(rows) else None
