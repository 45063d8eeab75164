"""Outlines of what is selected in one lane: of each slice where they can be told apart, else of stretches of them.

A loop's condition is a slice for each of its thousands of iterations: outlined one by one they would be a black bar.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from engine.ir.graph import Ints
from engine.timeline.timeline import Category, Timeline
from views.in_place import Floats
from views.theme import colour
from views.timeline.scene import Scene
from views.timeline.stack import FRAME, Row, RowKind

OUTLINED = 5.0
"""Slices narrower than this many pixels are marked by a stroke in their column; so near to each other they are one."""
MOST = 64
"""Wide slices of a lane that are outlined each; of more, those near to each other are outlined together."""


def paint_selected(painter: QPainter, scene: Scene, timeline: Timeline, rows: Ints, place: Row) -> None:
    """Mark some slices of one lane, and frames of loops apart from them; `rows` ascend by their starts."""
    framing = timeline.category[rows] == Category.LOOP
    inside = scene.y(place.top) + (place.frames * FRAME if place.kind == RowKind.COMPUTE else 0)
    for part, top in ((rows[~framing], inside), (rows[framing], scene.y(place.top))):
        if len(part):
            _paint_spans(painter, scene, *_spans(scene, timeline, part), top, scene.y(place.bottom) - top)


def _spans(scene: Scene, timeline: Timeline, rows: Ints) -> tuple[Floats, Floats]:
    """From which pixel to which what is to be outlined together lies."""
    window = scene.window
    low, high = window.left - 8, window.left + window.width + 8
    left = np.clip(window.x(timeline.start[rows]), low, high)
    right = np.clip(window.x(timeline.start[rows] + timeline.duration[rows]), low, high)
    return merged(left, right)


def merged(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Spans of slices from their edges in pixels, ascending by the left one: of each, or of those near to each other
    where it is narrow or one of too many."""
    if not len(left):
        return left, right
    narrow = right - left < OUTLINED
    near = left[1:] <= np.maximum.accumulate(right)[:-1] + OUTLINED
    together = near & (narrow[1:] & narrow[:-1] if np.count_nonzero(~narrow) <= MOST else True)
    first = np.flatnonzero(np.concatenate(([True], ~together)))
    return left[first], np.maximum.reduceat(right, first)


def _paint_spans(painter: QPainter, scene: Scene, left: Floats, right: Floats, top: float, height: float) -> None:
    strokes = right - left < OUTLINED
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour(scene.theme.text))
    begin = np.round(left[strokes])
    width = np.maximum(np.round(right[strokes]) - begin + 2, 3.0)
    scene.rectangles.draw(painter, begin - 1, top - 1, width, height + 2)
    for start, end in zip(left[~strokes].tolist(), right[~strokes].tolist(), strict=True):
        paint_outline(painter, scene, QRectF(start, top, max(2.0, end - start - 1), height), 2)


def paint_outline(painter: QPainter, scene: Scene, rect: QRectF, width: int) -> None:
    """An outline in the text colour with a line of the base colour inside, visible on every fill."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(colour(scene.theme.text), width))
    painter.drawRect(rect.adjusted(0, 0, 0, 0))
    if rect.width() > 5 * width:
        painter.setPen(QPen(colour(scene.theme.base), 1))
        painter.drawRect(rect.adjusted(width, width, -width, -width))
