"""Slices, exposed gaps and loop frames of one lane."""

from __future__ import annotations

import re

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QFontMetrics, QPainter, QPen, QPolygonF

from engine.ir.graph import Ints
from engine.quantities import time_text
from engine.session.variant import Variant
from engine.timeline.timeline import Category
from views.in_place import Floats
from views.theme import GRID, colour
from views.timeline.bands import Band, LaneBands, bands_of
from views.timeline.iterations import iterations_text
from views.timeline.paint_folds import paint_folds
from views.timeline.paint_shares import paint_crowded
from views.timeline.scene import Positions, Scene, instruction_name, positions_of
from views.timeline.shares import per_column
from views.timeline.stack import FRAME, Row, RowKind

LABEL = 34.0
"""Slices narrower than this many pixels carry no name."""
_THIN = GRID
_BACKWARDS = re.compile(r"[a-z][-−]")


def elided(text: str, width: int, metrics: QFontMetrics) -> str:
    """`text` cut to a width; empty where less than three characters would be left."""
    cut = metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
    return cut if len(cut) > 3 or cut == text else ""


def paint_lane(painter: QPainter, scene: Scene, row: Row) -> None:
    """One compute or transfer lane."""
    entry = scene.entry(row.entry)
    variant = entry.variant
    if variant is None:
        return
    bands = bands_of(variant.timeline)[row.lane]
    positions = scene.gliding.get(entry.key) or positions_of(variant.timeline)
    top = scene.y(row.top)
    if row.kind == RowKind.COMPUTE:
        _paint_frames(painter, scene, row, variant, bands)
        top += row.frames * FRAME
    height = row.height - (top - scene.y(row.top))
    thin = row.kind == RowKind.TRANSFER
    paint_folds(painter, scene, variant.timeline, row.lane, top, height)
    least = 0.0 if entry.key in scene.gliding else 1.0
    _paint_slices(painter, scene, variant, bands.slices, positions, top, height, thin, least)
    _paint_gaps(painter, scene, variant, bands.gaps, positions, top, height, least)
    if least:
        paint_crowded(
            painter, scene.theme, scene.rectangles, scene.window, variant.timeline, row.lane, top, float(height)
        )


def _extent(scene: Scene, start: Ints, duration: Ints) -> tuple[Floats, Floats]:
    """Left edges and widths in pixels, cut to the view with a margin so that Qt never sees large numbers."""
    edge = scene.window
    low, high = edge.left - 16.0, edge.left + edge.width + 16.0
    left = np.clip(edge.x(start), low, high)
    right = np.clip(edge.x(start + duration), low, high)
    return left, right - left


def _paint_slices(
    painter: QPainter,
    scene: Scene,
    variant: Variant,
    band: Band,
    at: Positions,
    top: float,
    height: float,
    thin: bool,
    least: float,
) -> None:
    """`least`: pixels under which slices are left to `paint_crowded`."""
    timeline = variant.timeline
    columns = max(1, int(scene.window.width))
    rows = band.slices[band.visible(scene.window.start, scene.window.stop, columns)]
    if not len(rows):
        return
    rows = rows[at(rows)[1] >= least * per_column(scene.window)]
    left, width = _extent(scene, *at(rows))
    category = timeline.category[rows]
    shown = np.where(width > 3.0, width - 1.0, np.maximum(width, 1.0))
    painter.setPen(Qt.PenStyle.NoPen)
    for kind in np.unique(category):
        of_kind = category == kind
        y, tall = (top + _THIN / 2, height - _THIN) if thin and kind == Category.PERMUTE else (top, height)
        painter.setBrush(colour(scene.theme.of(Category(kind)).fill))
        scene.rectangles.draw(painter, left[of_kind], y, shown[of_kind], tall)
    if thin and len(rows):
        _paint_arrow_ends(painter, scene, variant, rows, left, shown, category, top, height)
    _paint_names(painter, scene, variant, rows, left, width, category, top, height)


def _paint_arrow_ends(
    painter: QPainter,
    scene: Scene,
    variant: Variant,
    rows: Ints,
    left: Floats,
    width: Floats,
    category: np.ndarray[tuple[int], np.dtype[np.uint8]],
    top: float,
    height: float,
) -> None:
    """Permutes point the way of the ring: a lane with a minus in its name runs backwards."""
    wide = np.flatnonzero((category == Category.PERMUTE) & (width >= 2.5 * GRID))
    if not len(wide):
        return
    lane = variant.timeline.lanes[int(variant.timeline.lane[rows[0]])].name
    back = _BACKWARDS.search(lane) is not None
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=True)
    painter.setBrush(colour(scene.theme.permute.fill))
    middle = top + height / 2
    for n in wide.tolist():
        x = left[n] if back else left[n] + width[n]
        tail = x + GRID * 1.75 if back else x - GRID * 1.75
        painter.drawPolygon(QPolygonF([QPointF(x, middle), QPointF(tail, top - 1), QPointF(tail, top + height + 1)]))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)


def _paint_names(
    painter: QPainter,
    scene: Scene,
    variant: Variant,
    rows: Ints,
    left: Floats,
    width: Floats,
    category: np.ndarray[tuple[int], np.dtype[np.uint8]],
    top: float,
    height: float,
) -> None:
    edge = scene.window.left
    start = np.maximum(left, edge)
    room = np.minimum(left + width, edge + scene.window.width) - start - 2 * GRID
    painter.setFont(scene.small)
    for n in np.flatnonzero(room >= LABEL).tolist():
        pad = GRID * 2 if category[n] == Category.PERMUTE else GRID
        name = instruction_name(variant, int(variant.timeline.instruction[rows[n]]))
        text = elided(name, int(room[n]), scene.small_metrics)
        if text:
            painter.setPen(colour(scene.theme.of(Category(category[n])).label))
            place = QRectF(start[n] + pad, top, room[n] + GRID, height)
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)


def hatch(scene: Scene) -> QBrush:
    """Stripes over the exposed colour: darker ones, so that a white label keeps its contrast."""
    return QBrush(colour("#000000", 70), Qt.BrushStyle.BDiagPattern)


def _paint_gaps(
    painter: QPainter,
    scene: Scene,
    variant: Variant,
    band: Band,
    at: Positions,
    top: float,
    height: float,
    least: float,
) -> None:
    columns = max(1, int(scene.window.width))
    rows = band.slices[band.visible(scene.window.start, scene.window.stop, columns)]
    if not len(rows):
        return
    timeline = variant.timeline
    rows = rows[at(rows)[1] >= least * per_column(scene.window)]
    left, width = _extent(scene, *at(rows))
    wide = width >= 2.0
    role = scene.theme.exposed
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour(role.fill))
    narrow = ~wide
    # Too narrow for stripes; under a pixel, while the picture moves, as high as its part of the pixel.
    tall = np.clip(width[narrow], 2.0 / height, 1.0) * height
    scene.rectangles.draw(painter, left[narrow], top, np.maximum(width[narrow], 1.0), tall)
    shown = np.maximum(width[wide] - 1.0, 1.0)
    scene.rectangles.draw(painter, left[wide], top, shown, height)
    painter.setBrush(hatch(scene))
    scene.rectangles.draw(painter, left[wide], top, shown, height)
    painter.setFont(scene.small)
    start = np.maximum(left, scene.window.left)
    room = np.minimum(left + width, scene.window.left + scene.window.width) - start - 2 * GRID
    for n in np.flatnonzero(room >= LABEL).tolist():
        waiting = int(timeline.waits_for[rows[n]])
        name = instruction_name(variant, waiting) or "waits"
        text = elided(f"waits for {name}", int(room[n]), scene.small_metrics)
        if room[n] < 2.5 * LABEL or not text:
            text = elided(name, int(room[n]), scene.small_metrics)
        if text:
            wanted = scene.small_metrics.horizontalAdvance(text) + GRID
            painter.fillRect(QRectF(start[n] + GRID, top + 3, wanted, height - 6), colour(role.fill))
            painter.setPen(colour(role.label))
            place = QRectF(start[n] + GRID * 1.5, top, room[n] + GRID, height)
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)


def _paint_frames(painter: QPainter, scene: Scene, row: Row, variant: Variant, bands: LaneBands) -> None:
    """Frames of loops and calls, outermost on top, with their trip counts."""
    timeline = variant.timeline
    columns = max(1, int(scene.window.width))
    bottom = scene.y(row.bottom)
    painter.setFont(scene.small)
    for depth, band in enumerate(bands.frames):
        strip = scene.y(row.top) + min(depth, row.frames - 1) * FRAME
        rows = band.slices[band.visible(scene.window.start, scene.window.stop, columns)]
        left, width = _extent(scene, timeline.start[rows], timeline.duration[rows])
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour(scene.theme.band))
        scene.rectangles.draw(painter, left, strip, np.maximum(width - 1.0, 1.0), FRAME)
        wide = np.flatnonzero(width >= 2 * GRID).tolist()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colour(scene.theme.muted), 1))
        for n in wide:
            painter.drawRect(QRectF(left[n] + 0.5, strip + 0.5, width[n] - 2, bottom - strip - 1))
        for n in wide:
            _paint_frame_text(painter, scene, variant, int(rows[n]), strip)


def _paint_frame_text(painter: QPainter, scene: Scene, variant: Variant, frame: int, strip: float) -> None:
    timeline, window = variant.timeline, scene.window
    start, stop = int(timeline.start[frame]), int(timeline.start[frame] + timeline.duration[frame])
    left = max(window.x_of(start), window.left)
    right = min(window.x_of(stop), window.left + window.width)
    repeat = int(timeline.repeat[frame])
    name = instruction_name(variant, int(timeline.instruction[frame]))
    count = f"×{repeat:,}" if repeat != 1 else ""
    each = f", {time_text((stop - start) // repeat)} each" if repeat > 1 else ""
    which = f" · {listed}" if (listed := iterations_text(timeline, frame, window.start, window.stop)) else ""
    room = int(right - left - 2 * GRID)
    metrics = scene.small_metrics
    choices = (f"{name}  {count}{each}{which}", f"{name}  {count}{which}", f"{count}{which}", f"{name}  {count}", count)
    text = next((t for t in choices if metrics.horizontalAdvance(t) <= room), "")
    painter.setPen(colour(scene.theme.text))
    place = QRectF(left + GRID, strip, room + GRID, FRAME)
    painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
