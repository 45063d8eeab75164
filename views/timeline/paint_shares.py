"""Columns of slices narrower than a pixel as stacks: each kind of work as high as its share of the column's time.

One slice for all of a column, or strokes of one height, would make a loop seen from far look as if it did one thing
only. On lanes of transfers, which are idle for the most part, a column with any is marked faintly in all its height.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter

from engine.timeline.timeline import Category, LaneKind, Timeline
from views.in_place import Floats
from views.theme import Theme, colour
from views.timeline.axis import Window
from views.timeline.rectangles import Rectangles
from views.timeline.shares import ORDER, Bools, edges_of, shares_of

_LEAST = {Category.EXPOSED: 2.0}
"""Pixels that a kind of work is high at least where there is any of it: 1, and exposed time can always be seen."""
_FAINT = 70
"""Opacity, of 255, of what marks a column with any transfer over its full height."""


def paint_crowded(
    painter: QPainter,
    theme: Theme,
    rectangles: Rectangles,
    window: Window,
    timeline: Timeline,
    lane: int,
    top: float,
    height: float,
) -> None:
    """Where slices of a lane are narrower than a pixel, in place of them."""
    chosen = shares_of(timeline)[lane].crowded(window) & ~_folded(window, timeline)
    if chosen.any():
        paint_shares(painter, theme, rectangles, window, timeline, lane, top, height, chosen)


def paint_shares(
    painter: QPainter,
    theme: Theme,
    rectangles: Rectangles,
    window: Window,
    timeline: Timeline,
    lane: int,
    top: float,
    height: float,
    chosen: Bools | None = None,
) -> None:
    """The columns of a lane that are `chosen`, or all, each as a stack."""
    shares = shares_of(timeline)[lane].of(window)
    columns = np.flatnonzero(chosen) if chosen is not None else np.arange(len(edges_of(window)) - 1)
    if not len(columns) or not shares:
        return
    left, wide = np.asarray(columns + window.left, np.float64), np.ones(len(columns))
    painter.setPen(Qt.PenStyle.NoPen)
    if chosen is not None:
        painter.setBrush(colour(theme.base))
        rectangles.draw(painter, left, top, wide, height)
    if timeline.lanes[lane].kind == LaneKind.TRANSFER:
        for kind in shares:
            painter.setBrush(colour(theme.of(kind).fill, _FAINT))
            rectangles.draw(painter, left[shares[kind][columns] > 0], top, wide[shares[kind][columns] > 0], height)
    heights = {kind: _heights(kind, shares[kind][columns] * height) for kind in ORDER if kind in shares}
    together = np.maximum(1.0, sum(heights.values(), np.zeros(len(columns))) / height)
    bottom = np.full(len(columns), top + height)
    for kind, tall in heights.items():
        tall = tall / together
        painter.setBrush(colour(theme.of(kind).fill))
        there = tall > 0
        rectangles.draw_each(painter, left[there], bottom[there] - tall[there], wide[there], tall[there])
        bottom = bottom - tall


def _heights(kind: Category, tall: Floats) -> Floats:
    return np.where(tall > 1e-9, np.maximum(tall, _LEAST.get(kind, 1.0)), 0.0)


def _folded(window: Window, timeline: Timeline) -> Bools:
    """Columns in which iterations are folded: they are drawn as such."""
    edges, folds = edges_of(window), timeline.folds
    inside = np.zeros(len(edges) - 1, np.bool_)
    first = np.clip(np.searchsorted(edges, folds.start, side="right") - 1, 0, len(inside))
    last = np.clip(np.searchsorted(edges, folds.start + folds.duration, side="left"), 0, len(inside))
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        inside[begin:end] = True
    return inside
