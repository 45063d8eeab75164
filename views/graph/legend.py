"""What the colours of the nodes mean."""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from views.graph.colouring import Swatch
from views.ports import Host
from views.theme import GRID, axis_font, colour

_BOX = 3 * GRID
_LINE = 5 * GRID
_ENDLESS = 1 << 20


class Legend(QWidget):
    """Swatches with what they stand for, in as many lines as they need."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._swatches: tuple[Swatch, ...] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)  # Qt's signature
        self.setSizePolicy(policy)

    def set_swatches(self, swatches: tuple[Swatch, ...]) -> None:
        self._swatches = swatches
        self.setAccessibleName("colours: " + ", ".join(swatch.text for swatch in swatches))
        self.updateGeometry()
        self.update()

    def places(self, width: int) -> list[QRect]:
        """Where each swatch with its text lies in a legend of that width."""
        metrics = QFontMetrics(axis_font())
        found: list[QRect] = []
        x, y = 2 * GRID, 0
        for swatch in self._swatches:
            wide = _BOX + GRID + metrics.horizontalAdvance(swatch.text)
            if x + wide > width and x > 2 * GRID:
                x, y = 2 * GRID, y + _LINE
            found.append(QRect(x, y, wide, _LINE))
            x += wide + 4 * GRID
        return found

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return max((place.bottom() + 1 for place in self.places(width)), default=_LINE)

    def sizeHint(self) -> QSize:
        return QSize(max((place.right() + 1 for place in self.places(_ENDLESS)), default=0), _LINE)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, _LINE)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(axis_font())
        muted = colour(self._host.theme.muted)
        for swatch, place in zip(self._swatches, self.places(self.width()), strict=True):
            painter.setPen(QPen(muted, 1))
            painter.setBrush(colour(swatch.role.fill))
            painter.drawRect(QRectF(place.x() + 0.5, place.y() + GRID + 0.5, _BOX - 1, _BOX - 1))
            painter.setPen(muted)
            text = place.adjusted(_BOX + GRID, 0, GRID, 0)
            painter.drawText(text, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, swatch.text)
        painter.end()
