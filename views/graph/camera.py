"""Which part of a graph is looked at. Views that share one camera move together."""

from __future__ import annotations

from PySide6.QtCore import QObject, QPointF, QRectF, Signal

LEAST, MOST = 0.002, 4.0
"""Bounds of the scale."""


class Camera(QObject):
    """Centre in the picture's coordinates, and pixels for each of its units."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.centre = QPointF()
        self.scale = 1.0

    def look_at(self, centre: QPointF, scale: float | None = None) -> None:
        wanted = min(MOST, max(LEAST, scale if scale is not None else self.scale))
        if centre != self.centre or wanted != self.scale:
            self.centre, self.scale = QPointF(centre), wanted
            self.changed.emit()

    def pan(self, x: float, y: float) -> None:
        """By pixels."""
        self.look_at(self.centre + QPointF(x, y) / self.scale)

    def zoom(self, factor: float, at: QPointF) -> None:
        """About a point of the picture, which stays where it is."""
        scale = min(MOST, max(LEAST, self.scale * factor))
        self.look_at(at + (self.centre - at) * (self.scale / scale), scale)

    def fit(self, area: QRectF, width: float, height: float, most: float = 1.0) -> None:
        """Show an area of the picture in so many pixels, no larger than `most`."""
        if area.isEmpty() or width <= 0 or height <= 0:
            return
        self.look_at(area.center(), min(most, 0.96 * width / area.width(), 0.96 * height / area.height()))
