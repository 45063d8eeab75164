"""Folded iterations as what they are: on each lane a band divided as the time of the iteration that stands for them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QPainter, QPen

from engine.timeline.timeline import Category, Timeline
from views.theme import GRID, Theme, colour
from views.timeline.axis import Window
from views.timeline.delta import rows_of_sample
from views.timeline.scene import Scene
from views.timeline.shares import ORDER

_NARROWEST = 1.0
"""Pixels that a folded stretch takes at least."""

Mix = tuple[tuple[Category, float], ...]
"""Categories from the bottom to the top, each with its part of the time; what is missing to 1 is idle."""


def mix_of(timeline: Timeline, fold: int, lane: int) -> Mix:
    """What a lane does in a folded stretch."""
    sample = int(timeline.folds.sample[fold])
    times = _times(timeline, fold)[lane]
    return tuple((kind, float(times[kind]) / sample) for kind in ORDER if times[kind])


@lru_cache(maxsize=4096)
def _times(timeline: Timeline, fold: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Picoseconds by lane and category in the iteration that stands for a stretch, what is folded in it included."""
    folds = timeline.folds
    rows = rows_of_sample(timeline, fold)
    many = len(Category)
    at = timeline.lane[rows].astype(np.int64) * many + timeline.category[rows]
    found = np.bincount(at, timeline.duration[rows], len(timeline.lanes) * many).astype(np.float64).reshape(-1, many)
    stop = int(folds.start[fold])
    within = (folds.start >= stop - folds.sample[fold]) & (folds.start < stop) & (folds.depth > folds.depth[fold])
    for inner in np.flatnonzero(within).tolist():
        found = found + _times(timeline, inner) * int(folds.count[inner])
    return found


def paint_folds(painter: QPainter, scene: Scene, timeline: Timeline, lane: int, top: float, height: float) -> None:
    """The folded stretches of one lane; on the compute lane each says how many iterations it stands for."""
    paint_bands(painter, scene.theme, scene.window, timeline, lane, top, height)
    if lane:
        return
    painter.setFont(scene.small)
    for fold in _visible(timeline, scene.window):
        rect = _rect(scene.window, timeline, fold, top, height)
        text = fold_text(int(timeline.folds.count[fold]))
        width = scene.small_metrics.horizontalAdvance(text) + 2 * GRID
        if width + 2 * GRID > rect.width():
            text = text.split()[-1]
            width = scene.small_metrics.horizontalAdvance(text) + 2 * GRID
        if width + 2 * GRID <= rect.width():
            place = QRectF(rect.center().x() - width / 2, top + 3, width, height - 6)
            painter.fillRect(place, colour(scene.theme.base))
            painter.setPen(colour(scene.theme.text))
            painter.drawText(place, Qt.AlignmentFlag.AlignCenter, text)


def fold_text(count: int) -> str:
    """``folded ×99,997``."""
    return f"folded ×{count:,}"


def paint_bands(
    painter: QPainter, theme: Theme, window: Window, timeline: Timeline, lane: int, top: float, height: float
) -> None:
    """Bands without words, as high on each lane as the lane is busy."""
    for fold in _visible(timeline, window):
        rect = _rect(window, timeline, fold, top, height)
        bottom = rect.bottom()
        for kind, part in mix_of(timeline, fold, lane):
            layer = QRectF(rect.left(), bottom - part * height, rect.width(), part * height)
            bottom = layer.top()
            painter.fillRect(layer, colour(theme.of(kind).fill))
        # Stripes the other way than in an exposed gap: nothing here is one slice.
        drawn = QRectF(rect.left(), bottom, rect.width(), rect.bottom() - bottom)
        painter.fillRect(drawn, QBrush(colour(theme.base, 110), Qt.BrushStyle.FDiagPattern))
        if rect.width() > 2 * GRID:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colour(theme.muted), 1, Qt.PenStyle.DotLine))
            painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5))


def _visible(timeline: Timeline, window: Window) -> list[int]:
    """Folded stretches in view, those of a column of pixels as the longest of them."""
    folds = timeline.folds
    shown = np.flatnonzero((folds.start < window.stop) & (folds.start + folds.duration > window.start))
    if len(shown) > window.width:
        columns = np.floor(window.x(folds.start[shown])).astype(np.int64)
        order = np.lexsort((-folds.duration[shown], columns))
        shown = shown[order][np.unique(columns[order], return_index=True)[1]]
    found: list[int] = shown.tolist()
    return found


def _rect(window: Window, timeline: Timeline, fold: int, top: float, height: float) -> QRectF:
    start = int(timeline.folds.start[fold])
    left = max(window.x_of(start), window.left)
    right = min(window.x_of(start + int(timeline.folds.duration[fold])), window.left + window.width)
    return QRectF(left, top, max(right - left, _NARROWEST), height)
