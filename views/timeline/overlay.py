"""What lies over a frame: selection, hover, cursor, measured range, marks, arrows, search hits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen, QPolygonF, QRegion

from engine.ir.graph import Ints
from engine.quantities import exact_time_text
from engine.session.matching import shown_in
from engine.session.variant import Variant
from engine.timeline.timeline import Category
from views.theme import GRID, colour
from views.timeline.arrows import arrows_of
from views.timeline.covered import uncovered, uncovered_of
from views.timeline.paint_card import measure_lines, paint_card
from views.timeline.paint_selected import paint_outline, paint_selected
from views.timeline.scene import AXIS, GUTTER, Scene, rows_of
from views.timeline.stack import FRAME, Row, RowKind


@dataclass(frozen=True, slots=True)
class Hit:
    """A slice of an entry."""

    entry: int
    row: int


@dataclass(frozen=True)
class Overlay:
    """What is to be drawn over the frame."""

    hover: Hit | None = None
    cursor: float | None = None
    """Pixel of the mouse in the lanes."""
    mouse: QPointF | None = None
    measured: tuple[int, int] | None = None
    """Picoseconds."""
    found: Ints | None = None
    """Times of search hits."""
    anchor: Hit | None = None
    """The selected slice whose dependencies are shown."""
    operands: bool = True
    users: bool = True
    critical: Sequence[tuple[int, Ints]] = ()
    """Entry number and rows of its critical path."""
    card: Sequence[str] = ()
    drop: float | None = None
    """Height at which a lane that is carried would come to lie."""
    lit: Sequence[Hit] = ()
    """Slices that what is under the mouse is about."""


def paint_overlay(painter: QPainter, scene: Scene, over: Overlay) -> None:
    lanes = uncovered(scene)
    painter.setClipRegion(lanes)
    for entry, rows in over.critical:
        _paint_critical(painter, scene, lanes, entry, rows)
    _paint_selection(painter, scene, lanes)
    painter.setClipRegion(lanes)
    if over.hover is not None:
        _paint_hover(painter, scene, over.hover)
    for hit in over.lit:
        _paint_lit(painter, scene, hit, scene.theme.budget)
    if over.anchor is not None:
        _paint_arrows(painter, scene, over)
    painter.setClipRect(scene.lanes)
    if over.cursor is not None:
        painter.setPen(QPen(colour(scene.theme.text, 120), 1))
        painter.drawLine(QLineF(over.cursor, AXIS, over.cursor, scene.height))
    _paint_marks(painter, scene)
    if over.measured is not None:
        _paint_measured(painter, scene, over.measured)
    painter.setClipping(False)
    if over.drop is not None:
        painter.fillRect(QRectF(0, over.drop - 1, scene.width, 2), colour(scene.theme.focus))
    if over.found is not None:
        _paint_found(painter, scene, over.found)
    if over.cursor is not None:
        _paint_cursor_time(painter, scene, over.cursor)
    if over.measured is not None:
        _paint_measure_card(painter, scene, over.measured)
    elif over.card and over.mouse is not None:
        paint_card(painter, scene, over.card, over.mouse)


def slice_rect(scene: Scene, hit: Hit) -> QRectF | None:
    """Where a slice is drawn, None where its lane is not."""
    variant = scene.entry(hit.entry).variant
    if variant is None or hit.row >= len(variant.timeline):
        return None
    timeline = variant.timeline
    lane = int(timeline.lane[hit.row])
    place = next((r for r in scene.rows(hit.entry) if r.lane == lane), None)
    if place is None:
        return None
    return _rect(scene, variant, hit.row, place)


def _rect(scene: Scene, variant: Variant, row: int, place: Row) -> QRectF:
    timeline, window = variant.timeline, scene.window
    low, high = window.left - 8, window.left + window.width + 8
    start = int(timeline.start[row])
    left = min(max(window.x_of(start), low), high)
    right = min(max(window.x_of(start + int(timeline.duration[row])), low), high)
    top = scene.y(place.top)
    if place.kind == RowKind.COMPUTE and timeline.category[row] != Category.LOOP:
        top += place.frames * FRAME
    return QRectF(left, top, max(2.0, right - left - 1), scene.y(place.bottom) - top)


def _paint_selection(painter: QPainter, scene: Scene, lanes: QRegion) -> None:
    """Outlines of everything selected, in every entry that has it."""
    if not scene.session.selection:
        return
    for number, entry in enumerate(scene.session.entries):
        if entry.variant is None or entry.collapsed:
            continue
        timeline, window = entry.variant.timeline, scene.window
        rows = rows_of(timeline, shown_in(scene.session, entry.key))
        start = timeline.start[rows]
        rows = rows[(start + timeline.duration[rows] >= window.start) & (start <= window.stop)]
        for place in scene.rows(number):
            of_lane = rows[timeline.lane[rows] == place.lane]
            if place.lane >= 0 and len(of_lane):
                painter.setClipRegion(uncovered_of(scene, lanes, place))
                paint_selected(painter, scene, timeline, of_lane, place)


def _paint_hover(painter: QPainter, scene: Scene, hit: Hit) -> None:
    rect = slice_rect(scene, hit)
    if rect is None:
        return
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(colour(scene.theme.text), 1))
    painter.drawRect(rect)
    for row in lit_by(scene, hit):
        _paint_lit(painter, scene, Hit(hit.entry, row), scene.theme.exposed.fill)


def _paint_lit(painter: QPainter, scene: Scene, hit: Hit, fill: str) -> None:
    rect = slice_rect(scene, hit)
    if rect is not None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour(fill, 90))
        painter.drawRect(rect.adjusted(-2, -2, 2, 2))
        paint_outline(painter, scene, rect, 2)


def lit_by(scene: Scene, hit: Hit) -> Iterable[int]:
    """Rows of the transfers that an exposed gap waits for."""
    variant = scene.entry(hit.entry).variant
    if variant is None or variant.timeline.category[hit.row] != Category.EXPOSED:
        return ()
    timeline = variant.timeline
    waited = int(timeline.waits_for[hit.row])
    if waited < 0:
        return ()
    rows = rows_of(timeline, (waited,))
    end = int(timeline.start[hit.row] + timeline.duration[hit.row])
    transfers = rows[(timeline.category[rows] != Category.EXPOSED) & (timeline.start[rows] < end)]
    if not len(transfers):
        return ()
    last = int(timeline.start[transfers].max())
    return [r for r in transfers.tolist() if int(timeline.start[r]) == last]


def _paint_arrows(painter: QPainter, scene: Scene, over: Overlay) -> None:
    hit = over.anchor
    variant = scene.entry(hit.entry).variant if hit is not None else None
    if hit is None or variant is None:
        return
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=True)
    for source, target in arrows_of(variant, hit.row, operands=over.operands, users=over.users):
        start, end = slice_rect(scene, Hit(hit.entry, source)), slice_rect(scene, Hit(hit.entry, target))
        if start is not None and end is not None:
            _paint_arrow(painter, scene, start, end)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)


def _paint_arrow(painter: QPainter, scene: Scene, source: QRectF, target: QRectF) -> None:
    begin = QPointF(source.right(), source.center().y())
    end = QPointF(target.left(), target.center().y())
    if abs(end.x() - begin.x()) < 2 * GRID and abs(end.y() - begin.y()) < 1:
        return  # side by side already
    reach = max(6.0 * GRID, abs(end.x() - begin.x()) / 3)
    path = QPainterPath(begin)
    level = abs(end.y() - begin.y()) < 1  # along one lane: around the names, not through them
    bulge = QPointF(0, source.height() * 0.9) if level else QPointF()
    path.cubicTo(begin + QPointF(reach, 0) + bulge, end - QPointF(reach, 0) + bulge, end)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(colour(scene.theme.base, 200), 4))
    painter.drawPath(path)
    painter.setPen(QPen(colour(scene.theme.text), 1.5))
    painter.drawPath(path)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour(scene.theme.text))
    tip = [end, end + QPointF(-1.75 * GRID, -GRID), end + QPointF(-1.75 * GRID, GRID)]
    painter.drawPolygon(QPolygonF(tip))


def _paint_critical(painter: QPainter, scene: Scene, lanes: QRegion, entry: int, rows: Ints) -> None:
    """A thick line along the bottom of the slices that decide the makespan."""
    variant = scene.entry(entry).variant
    if variant is None or scene.entry(entry).stale:
        return
    timeline, window = variant.timeline, scene.window
    shown = rows[
        (timeline.start[rows] + timeline.duration[rows] >= window.start) & (timeline.start[rows] <= window.stop)
    ]
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour(scene.theme.critical))
    for place in scene.rows(entry):
        if place.lane < 0:
            continue
        painter.setClipRegion(uncovered_of(scene, lanes, place))
        of_lane = shown[timeline.lane[shown] == place.lane]
        left = np.clip(window.x(timeline.start[of_lane]), window.left - 8, window.left + window.width + 8)
        ends = timeline.start[of_lane] + timeline.duration[of_lane]
        right = np.clip(window.x(ends), window.left - 8, window.left + window.width + 8)
        scene.rectangles.draw(painter, left, scene.y(place.bottom) - 2, np.maximum(right - left, 1.0), 3.0)


def _paint_marks(painter: QPainter, scene: Scene) -> None:
    painter.setPen(QPen(colour(scene.theme.focus), 1, Qt.PenStyle.DashLine))
    for mark in scene.session.marks:
        x = scene.window.x_of(mark.time)
        if scene.window.left <= x <= scene.window.left + scene.window.width:
            painter.drawLine(QLineF(x, AXIS, x, scene.height))
            if mark.note:
                painter.setFont(scene.small)
                width = scene.small_metrics.horizontalAdvance(mark.note) + 2 * GRID
                box = QRectF(x + 2, AXIS + 2, width, scene.small_metrics.height() + 2)
                painter.fillRect(box, colour(scene.theme.pane))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, mark.note)


def _paint_found(painter: QPainter, scene: Scene, times: Ints) -> None:
    """Search hits as ticks at the bottom edge of the axis."""
    window = scene.window
    shown = times[(times >= window.start) & (times <= window.stop)]
    x = np.unique(np.round(window.x(shown)))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour(scene.theme.focus))
    scene.rectangles.draw(painter, x - 1, AXIS - GRID, np.full(len(x), 3.0), float(GRID))


def _paint_cursor_time(painter: QPainter, scene: Scene, x: float) -> None:
    text = exact_time_text(scene.window.time_at(x) // 1000 * 1000)
    painter.setFont(scene.small)
    width = scene.small_metrics.horizontalAdvance(text) + 2 * GRID
    left = min(max(x - width / 2, GUTTER), scene.width - width)
    box = QRectF(left, 2, width, AXIS - GRID)
    painter.fillRect(box, colour(scene.theme.text))
    painter.setPen(colour(scene.theme.base))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)


def _paint_measured(painter: QPainter, scene: Scene, measured: tuple[int, int]) -> None:
    left, right = (scene.window.x_of(t) for t in measured)
    area = QRectF(left, AXIS, right - left, scene.height - AXIS)
    painter.fillRect(area, colour(scene.theme.focus, 36))
    painter.setPen(QPen(colour(scene.theme.focus), 1))
    for x in (left, right):
        painter.drawLine(QLineF(x, AXIS, x, scene.height))


def _paint_measure_card(painter: QPainter, scene: Scene, measured: tuple[int, int]) -> None:
    right = scene.window.x_of(measured[1])
    paint_card(painter, scene, measure_lines(scene, measured), QPointF(right, AXIS + 6 * GRID))
