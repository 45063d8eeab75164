"""The whole picture in a corner of the view, with the part that is seen."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QWidget

from views.graph.view import GraphView
from views.theme import GRID, colour
from views.timeline.rectangles import Rectangles

_WIDTH, _HEIGHT = 40 * GRID, 32 * GRID


class Minimap(QWidget):
    """Click or drag to look elsewhere. Hidden while everything is seen anyway."""

    def __init__(self, view: GraphView) -> None:
        super().__init__(view)
        self._view = view
        self._drawn: QPixmap | None = None
        self._of: object = None
        self.setFixedSize(_WIDTH, _HEIGHT)
        self.setAccessibleName("overview of the graph")
        self.setToolTip("Drag to look elsewhere")
        view.camera.changed.connect(self.refresh)

    def sizeHint(self) -> QSize:
        return QSize(_WIDTH, _HEIGHT)

    def refresh(self) -> None:
        """Follow the view: its size, its picture and what it looks at."""
        view = self._view
        self.move(view.width() - _WIDTH - 2 * GRID, view.height() - _HEIGHT - 2 * GRID)
        whole = self._whole()
        needed = whole is not None and not view.visible_area().adjusted(-9, -9, 9, 9).contains(whole)
        self.setVisible(needed and view.width() > 3 * _WIDTH and view.height() > 1.5 * _HEIGHT)
        self.update()

    def _whole(self) -> QRectF | None:
        shown = self._view.shown
        if shown is None:
            return None
        return QRectF(0, 0, float(shown.picture.width[0]), float(shown.picture.height[0]))

    def _scale(self, whole: QRectF) -> tuple[float, QPointF]:
        scale = min((_WIDTH - 2 * GRID) / whole.width(), (_HEIGHT - 2 * GRID) / whole.height())
        return scale, QPointF((_WIDTH - whole.width() * scale) / 2, (_HEIGHT - whole.height() * scale) / 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        whole, shown = self._whole(), self._view.shown
        if whole is None or shown is None:
            return
        if self._drawn is None or self._of is not shown:
            self._drawn, self._of = self._draw(whole), shown
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._drawn)
        scale, corner = self._scale(whole)
        area = self._view.visible_area()
        box = QRectF(area.topLeft() * scale + corner, area.size() * scale)
        painter.setPen(QPen(colour(shown.theme.focus), 2))
        painter.setBrush(colour(shown.theme.focus, 40))
        painter.drawRect(box.intersected(QRectF(self.rect()).adjusted(1, 1, -1, -1)))
        painter.end()

    def _draw(self, whole: QRectF) -> QPixmap:
        shown = self._view.shown
        assert shown is not None
        ratio = self.devicePixelRatioF()
        made = QPixmap(self.size() * ratio)
        made.setDevicePixelRatio(ratio)
        made.fill(colour(shown.theme.pane))
        painter = QPainter(made)
        painter.setPen(colour(shown.theme.border))
        painter.drawRect(0, 0, _WIDTH - 1, _HEIGHT - 1)
        scale, corner = self._scale(whole)
        picture, rectangles = shown.picture, Rectangles()
        painter.setPen(Qt.PenStyle.NoPen)
        nodes = np.flatnonzero(~picture.opened & shown.visible)
        numbers = shown.colouring.number[picture.items[nodes]]
        for number, swatch in enumerate(shown.colouring.swatches):
            of = nodes[numbers == number]
            pale = swatch.role.fill in (shown.theme.pane, shown.theme.band)
            painter.setBrush(colour(shown.theme.border if pale else swatch.role.fill))
            rectangles.draw_each(
                painter,
                picture.left[of] * scale + corner.x(),
                picture.top[of] * scale + corner.y(),
                np.maximum(picture.width[of] * scale, 1.0),
                np.maximum(picture.height[of] * scale, 1.0),
            )
        painter.end()
        return made

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._look(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._look(event.position())

    def _look(self, at: QPointF) -> None:
        whole = self._whole()
        if whole is not None:
            scale, corner = self._scale(whole)
            self._view.camera.look_at((at - corner) / scale)
