"""Curves under the lanes: operations in flight against their budget and bytes against the cap."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from engine.ir.graph import Ints
from engine.quantities import bytes_text
from engine.timeline.timeline import Curve
from views.theme import GRID, colour
from views.timeline.axis import Window
from views.timeline.budget_marks import paint_budget_marks
from views.timeline.scene import Scene
from views.timeline.stack import Row, RowKind

_IN_SIGHT = 4
"""A limit of memory that is at most so many times the peak is in the picture; a budget always is."""


def paint_counter(painter: QPainter, scene: Scene, row: Row) -> None:
    """The in-flight or the memory curve of an entry."""
    entry = scene.entry(row.entry)
    variant = entry.variant
    if variant is None:
        return
    flight = row.kind == RowKind.IN_FLIGHT
    curve = variant.timeline.in_flight if flight else variant.timeline.memory
    limit = variant.schedule.budget.total if flight else variant.plan.memory_cap
    room = None if flight or variant.is_measured else variant.program.machine.chip.hbm_bytes
    fill = scene.theme.in_flight if flight else scene.theme.memory.fill
    lines = [line for line in (limit, room) if line is not None and (flight or line <= _IN_SIGHT * curve.peak)]
    top = max(1, curve.peak, *lines)
    _paint_curve(painter, scene, row, curve, top, fill, limit if limit is not None else room)
    labels = []
    if limit is not None:
        text = f"budget {limit}" if flight else f"cap {bytes_text(limit)}"
        labels.append((text, _paint_limit(painter, scene, row, curve, limit, top, text)))
    if room is not None and (limit is None or room < limit):
        text = f"HBM {bytes_text(room)}"
        labels.append((text, _paint_limit(painter, scene, row, curve, room, top, text)))
    if flight:
        paint_budget_marks(painter, scene, row, [place for _, place in labels if place is not None])
    for text, place in labels:  # over the marks, of which there may be one in every pixel
        if place is not None:
            _paint_label(painter, scene, text, place)


def sampled(curve: Curve, start: int, stop: int, columns: int) -> tuple[Ints, Ints]:
    """Times and values of a step function between two times, at most about `columns` of them, each the highest near."""
    steps = _steps_between(curve, start, stop)
    time, value = curve.time[steps], curve.value[steps]
    if len(time) <= columns:
        return time, value
    edges = start + (np.arange(1, columns, dtype=np.int64) * (stop - start)) // columns
    heads = np.unique(np.concatenate((np.zeros(1, np.int64), np.searchsorted(time, edges))))
    heads = heads[heads < len(time)]
    return time[heads], np.maximum.reduceat(value, heads)


def _steps_between(curve: Curve, start: int, stop: int) -> slice:
    """The steps of a curve that reach into what lies between two times."""
    first = max(0, int(np.searchsorted(curve.time, start, side="right")) - 1)
    return slice(first, int(np.searchsorted(curve.time, stop, side="left")))


def _paint_curve(
    painter: QPainter, scene: Scene, row: Row, curve: Curve, top: int, fill: str, limit: int | None
) -> None:
    """The curve; where it reaches its limit, in the limit's colour: there something had to wait."""
    window = scene.window
    time, value = sampled(curve, window.start, window.stop, max(1, int(window.width)))
    if not len(time):
        return
    x = np.clip(window.x(time), window.left - 1, window.left + window.width + 1)
    end = min(window.x_of(scene_end(scene, row)), window.left + window.width)
    height = row.height - 2
    rise = np.round(value.astype(np.float64) * (height / top))
    base = scene.y(row.bottom) - 1
    right = np.append(x[1:], max(end, float(x[-1])))
    width = np.maximum(right - x, 0.0)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour(fill, 80))
    scene.rectangles.draw_each(painter, x, base - rise, width, rise)
    painter.setBrush(colour(fill))
    scene.rectangles.draw_each(painter, x, base - rise, np.maximum(width, 1.0), np.ones(len(x)))
    bound = value >= limit if limit is not None else np.zeros(len(x), np.bool_)
    if bound.any():
        painter.setBrush(colour(scene.theme.budget, 110))
        scene.rectangles.draw_each(painter, x[bound], (base - rise)[bound], np.maximum(width, 1.0)[bound], rise[bound])


def scene_end(scene: Scene, row: Row) -> int:
    variant = scene.entry(row.entry).variant
    return variant.timeline.makespan if variant is not None else 0


def _paint_limit(
    painter: QPainter, scene: Scene, row: Row, curve: Curve, limit: int, top: int, text: str
) -> QRectF | None:
    """A dashed line, and the place of its name where the curve leaves room for it; None where it is not in sight."""
    if limit > top:
        return None
    window = scene.window
    y = scene.y(row.bottom) - 1 - limit * (row.height - 2) / top
    height = scene.small_metrics.height()
    middle = min(max(y, scene.y(row.top) + height / 2), scene.y(row.bottom) - height / 2)
    width = scene.small_metrics.horizontalAdvance(text)
    below = top * (scene.y(row.bottom) - middle - height / 2) / row.height
    left = label_place(window, curve, width + 2 * GRID, below)
    painter.setPen(QPen(colour(scene.theme.budget), 1, Qt.PenStyle.DashLine))
    painter.drawLine(QPointF(window.left, y), QPointF(left, y))
    painter.drawLine(QPointF(left + width + 2 * GRID, y), QPointF(window.left + window.width, y))
    return QRectF(left, middle - height / 2, width + 2 * GRID, height)


def _paint_label(painter: QPainter, scene: Scene, text: str, place: QRectF) -> None:
    painter.fillRect(place, colour(scene.theme.base, 200))
    painter.setFont(scene.small)
    painter.setPen(colour(scene.theme.budget))
    painter.drawText(place, Qt.AlignmentFlag.AlignCenter, text)


def label_place(window: Window, curve: Curve, width: int, below: float) -> float:
    """Left edge of a label so wide over a curve: the place nearest to the right edge under which the curve stays
    `below` a value, else the right edge."""
    right = window.left + window.width - width
    steps = np.arange(right, window.left, -2.0 * GRID)
    for left in steps.tolist():
        value = curve.value[_steps_between(curve, window.time_at(left), window.time_at(left + width))]
        if not len(value) or value.max() <= below:
            return float(left)
    return right
