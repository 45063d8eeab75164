"""One frame of the stack: lanes, counters and their names, which stay until something moves; over them the headings.

Headings (headers that stick, messages, the time axis) say what jobs are doing and are drawn anew each time: a job that
reports twenty times a second must not have a million slices looked through for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from engine.quantities import bytes_text
from engine.session.session import Entry
from views.icons import pixmap
from views.theme import GRID, colour
from views.timeline.axis import tick_text, ticks
from views.timeline.paint_counters import paint_counter
from views.timeline.paint_delta import paint_delta, paint_scale
from views.timeline.paint_header import paint_header
from views.timeline.paint_lanes import paint_lane
from views.timeline.scene import AXIS, GUTTER, Scene
from views.timeline.stack import FRAME, GAP, Row, RowKind

TICKS_APART = 28 * GRID


def paint_frame(painter: QPainter, scene: Scene) -> None:
    """Lanes, counters and the names beside them."""
    painter.fillRect(0, 0, scene.width, scene.height, colour(scene.theme.base))
    _paint_grid(painter, scene)
    _paint_rows(painter, scene, [row for row in visible_rows(scene) if not row.pinned])
    pinned = [row for row in visible_rows(scene) if row.pinned]
    for row in pinned:
        # Other lanes scroll away beneath it.
        painter.fillRect(QRectF(0, scene.y(row.top), scene.width, row.height + GAP), colour(scene.theme.base))
    _paint_rows(painter, scene, pinned)
    painter.setClipping(False)


def _paint_rows(painter: QPainter, scene: Scene, rows: Sequence[Row]) -> None:
    painter.setClipRect(scene.lanes)
    for row in rows:
        _paint_row(painter, scene, row)
    painter.setClipRect(0, AXIS, scene.width, scene.height - AXIS)
    for row in rows:
        _paint_gutter(painter, scene, row)


def paint_headings(painter: QPainter, scene: Scene) -> None:
    """Messages, headers and the time axis."""
    painter.setClipRect(0, AXIS, scene.width, scene.height - AXIS)
    for row in visible_rows(scene):
        if row.kind == RowKind.MESSAGE:
            _paint_message(painter, scene, row)
    for number in range(len(scene.session.entries)):
        _paint_sticky(painter, scene, number)
    painter.setClipping(False)
    paint_axis(painter, scene)


def visible_rows(scene: Scene) -> list[Row]:
    """Rows of which something is seen, where it is seen; the delta row last."""
    rows = [row for number in range(len(scene.session.entries)) for row in scene.rows(number)]
    rows += scene.stack.of(-1)
    return [r for r in rows if r.bottom > scene.scroll and r.top < scene.scroll + scene.height]


def opacity_of(entry: Entry) -> float:
    """How an entry's result is drawn: faint where it is of an earlier plan."""
    return 0.45 if entry.stale or (entry.error and entry.variant is not None) else 1.0


def _paint_row(painter: QPainter, scene: Scene, row: Row) -> None:
    if row.kind == RowKind.DELTA:
        paint_delta(painter, scene, row)
        return
    entry = scene.entry(row.entry)
    painter.setOpacity(opacity_of(entry))
    if row.kind in (RowKind.COMPUTE, RowKind.TRANSFER):
        paint_lane(painter, scene, row)
    elif row.kind in (RowKind.IN_FLIGHT, RowKind.MEMORY):
        paint_counter(painter, scene, row)
    painter.setOpacity(1.0)


def _paint_message(painter: QPainter, scene: Scene, row: Row) -> None:
    """What stands in place of lanes: the error, or that there is nothing yet."""
    entry = scene.entry(row.entry)
    area = QRectF(2 * GRID + FOLD_ALIGN, scene.y(row.top), scene.width - 4 * GRID - FOLD_ALIGN, row.height)
    painter.setFont(scene.font)
    painter.setPen(colour(scene.theme.error if entry.ending == "failed" else scene.theme.muted))
    running = scene.running.get(entry.key, "")
    alike = scene.session.alike(entry)
    said = f"{entry.ending}, for the same reason as {alike}" if alike else entry.error
    text = said or (f"⟳ {running}" if running else "waiting for its turn …")
    if not entry.error and entry.variant is not None:
        text = "This module runs no instruction that takes time: there is nothing to show."
    painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextWordWrap, text)


FOLD_ALIGN = 7 * GRID


def _paint_gutter(painter: QPainter, scene: Scene, row: Row) -> None:
    """Name of a lane, in the column at the left."""
    if row.kind in (RowKind.HEADER, RowKind.MESSAGE):
        return
    theme = scene.theme
    top, height = scene.y(row.top), row.height
    if row.kind == RowKind.IDLE:
        painter.setFont(scene.small)
        painter.setPen(colour(theme.muted))
        names = scene.small_metrics.elidedText(f"idle: {row.label}", Qt.TextElideMode.ElideRight, scene.width // 2)
        painter.drawText(QRectF(4 * GRID, top, scene.width, height), Qt.AlignmentFlag.AlignVCenter, names)
        return
    painter.fillRect(QRectF(0, top, GUTTER - GRID, height), colour(theme.base))
    if row.kind == RowKind.COMPUTE:
        top, height = top + row.frames * FRAME, height - row.frames * FRAME
    left, right = _gutter_text(scene, row)
    painter.setFont(scene.small)
    painter.setPen(colour(theme.muted))
    if row.pinned:
        ratio = painter.device().devicePixelRatio()
        painter.drawPixmap(int(0.5 * GRID), int(top + (height - 12) / 2), pixmap("pin", theme.muted, 12, ratio))
    place = QRectF(4 * GRID, top, GUTTER - 6 * GRID, height)
    painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, left)
    painter.setPen(colour(theme.text))
    painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, right)
    if row.kind == RowKind.DELTA:
        paint_scale(painter, scene, row)


def _gutter_text(scene: Scene, row: Row) -> tuple[str, str]:
    if row.kind == RowKind.DELTA:
        return row.label, ""
    variant = scene.entry(row.entry).variant
    if variant is None:
        return row.label, ""
    if row.kind == RowKind.IN_FLIGHT:
        budget = variant.schedule.budget.total
        most = variant.timeline.in_flight.peak
        return row.label, f"{most}/{budget}" if budget is not None else str(most)
    if row.kind == RowKind.MEMORY:
        return row.label, bytes_text(variant.timeline.memory.peak)
    return scene.small_metrics.elidedText(row.label, Qt.TextElideMode.ElideRight, GUTTER - 6 * GRID), ""


def _paint_sticky(painter: QPainter, scene: Scene, number: int) -> None:
    """An entry's header stays under the axis while any of the entry is in view."""
    top, bottom = scene.stack.span_of(number)
    if bottom > scene.scroll and top < scene.scroll + scene.height:
        paint_header(painter, scene, number, scene.y(scene.rows(number)[0].top))


def _paint_grid(painter: QPainter, scene: Scene) -> None:
    for time in _ticks(scene)[1]:
        painter.fillRect(round(scene.window.x_of(time)), AXIS, 1, scene.height - AXIS, colour(scene.theme.band))


def _ticks(scene: Scene) -> tuple[int, range]:
    """None while there is nothing whose times they could be."""
    if all(entry.variant is None for entry in scene.session.entries):
        return 1, range(0)
    return ticks(scene.window, TICKS_APART)


def paint_axis(painter: QPainter, scene: Scene) -> None:
    """The time axis; it belongs to all entries and does not scroll."""
    theme = scene.theme
    painter.fillRect(0, 0, scene.width, AXIS, colour(theme.pane))
    painter.setPen(QPen(colour(theme.border), 1))
    painter.drawLine(QPointF(0, AXIS - 0.5), QPointF(scene.width, AXIS - 0.5))
    painter.setClipRect(GUTTER - GRID, 0, scene.width - GUTTER + GRID, AXIS)
    painter.setFont(scene.small)
    step, times = _ticks(scene)
    for time in times:
        x = round(scene.window.x_of(time)) + 0.5
        painter.setPen(QPen(colour(theme.border), 1))
        painter.drawLine(QPointF(x, AXIS - 2 * GRID), QPointF(x, AXIS - 1))
        painter.setPen(colour(theme.muted))
        text = tick_text(time, step, times[-1])
        if x + GRID + scene.small_metrics.horizontalAdvance(text) > scene.width:
            continue  # a unit without its last letter is another unit, or none
        painter.drawText(QRectF(x + GRID, 0, TICKS_APART, AXIS - 2), Qt.AlignmentFlag.AlignVCenter, text)
    painter.setClipping(False)
