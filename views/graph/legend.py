"""What the colours of the nodes mean."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from views.graph.colouring import Swatch
from views.ports import Host
from views.theme import GRID, axis_font, colour

_BOX = 3 * GRID


class Legend(QWidget):
    """Swatches in one line, those that fit."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._swatches: tuple[Swatch, ...] = ()
        self.setFixedHeight(5 * GRID)

    def set_swatches(self, swatches: tuple[Swatch, ...]) -> None:
        self._swatches = swatches
        self.setAccessibleName("colours: " + ", ".join(swatch.text for swatch in swatches))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        metrics = QFontMetrics(axis_font())
        return QSize(sum(_BOX + 5 * GRID + metrics.horizontalAdvance(s.text) for s in self._swatches), 5 * GRID)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, 5 * GRID)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(axis_font())
        metrics = QFontMetrics(axis_font())
        x = 2 * GRID
        for swatch in self._swatches:
            width = metrics.horizontalAdvance(swatch.text)
            if x + _BOX + GRID + width > self.width():
                break
            painter.setPen(QPen(colour(self._host.theme.muted), 1))
            painter.setBrush(colour(swatch.role.fill))
            painter.drawRect(QRectF(x + 0.5, GRID + 0.5, _BOX - 1, _BOX - 1))
            painter.setPen(colour(self._host.theme.muted))
            painter.drawText(x + _BOX + GRID, GRID + _BOX - 2, swatch.text)
            x += _BOX + GRID + width + 4 * GRID
        painter.end()
