"""Boxes of text beside the mouse and beside a measured range."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from engine.quantities import time_text
from views.theme import GRID, colour
from views.timeline.measure import measure
from views.timeline.scene import AXIS, Scene


def measure_lines(scene: Scene, measured: tuple[int, int]) -> list[str]:
    """The measurement of a range, one line an entry; tabs separate columns."""
    start, stop = measured
    lines = [f"{time_text(stop - start)}\tcompute\ttransfer\toverlapped\texposed"]
    for entry in scene.session.entries:
        if entry.variant is None:
            continue
        found = measure(entry.variant.timeline, start, stop)
        times = (found.compute, found.transfer, found.overlap, found.exposed)
        lines.append("\t".join((entry.key, *map(time_text, times))))
    return lines


def paint_card(painter: QPainter, scene: Scene, lines: Sequence[str], near: QPointF) -> None:
    """A box of text beside a point, kept inside the view. The first line is strong; tabs separate columns."""
    cells = [line.split("\t") for line in lines]
    metrics = scene.small_metrics
    count = max(len(row) for row in cells)
    aligned = [row for row in cells if len(row) > 1] or cells
    widths = [max((metrics.horizontalAdvance(r[n]) for r in aligned if n < len(r)), default=0) for n in range(count)]
    single = max((metrics.horizontalAdvance(r[0]) for r in cells if len(r) == 1), default=0)
    line = metrics.height() + 2
    width = max(sum(widths) + 3 * GRID * (count - 1), single) + 4 * GRID
    height = line * len(lines) + 2 * GRID
    left = near.x() + 4 * GRID
    if left + width > scene.width:
        left = max(GRID, near.x() - width - 2 * GRID)
    top = min(max(near.y() + 3 * GRID, AXIS), scene.height - height - 1)
    box = QRectF(left, top, width, height)
    painter.setPen(QPen(colour(scene.theme.border), 1))
    painter.setBrush(colour(scene.theme.pane))
    painter.drawRect(box)
    painter.setFont(scene.small)
    for number, row in enumerate(cells):
        x = left + 2 * GRID
        painter.setPen(colour(scene.theme.text if number == 0 or len(row) > 1 else scene.theme.muted))
        for column, text in enumerate(row):
            place = QRectF(x, top + GRID + number * line, widths[column] if len(row) > 1 else width, line)
            side = Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | side, text)
            x += widths[column] + 3 * GRID
