"""A pane that keeps within the height that it is given: what has no room in it is scrolled to.

Panes that are tabs of one area share its height. Without this the area, and the window, would grow to what the largest
of them needs, and keep that.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QStyle, QWidget

from views.theme import GRID

_LEAST = QSize(16 * GRID, 12 * GRID)


class Within(QScrollArea):
    """As large as its area where the pane can be that small; else the pane is as small as it can be, and scrolls."""

    def __init__(self, pane: QWidget) -> None:
        super().__init__()
        self._pane = pane
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidget(pane)
        self.setFocusProxy(pane)
        pane.installEventFilter(self)
        self._fit()

    def minimumSizeHint(self) -> QSize:
        return _LEAST

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        passed = super().eventFilter(watched, event)
        if watched is self._pane and event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return passed

    def _fit(self) -> None:
        """Give the pane the area's size, or the least it can have. A scroll bar takes room from the other direction."""
        room, bar = self.maximumViewportSize(), self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        least = _least(self._pane, room.width())
        if least.height() > room.height():
            room.setWidth(room.width() - bar)
            least = _least(self._pane, room.width())
        if least.width() > room.width():
            room.setHeight(room.height() - bar)
        self._pane.resize(least.expandedTo(room))


def _least(pane: QWidget, width: int) -> QSize:
    """How small a pane can be where it gets that width or its least one."""
    layout = pane.layout()
    if layout is None:
        return pane.minimumSizeHint().expandedTo(pane.minimumSize())
    least = layout.totalMinimumSize().expandedTo(pane.minimumSize())
    if layout.hasHeightForWidth():
        least.setHeight(layout.totalMinimumHeightForWidth(max(width, least.width())))
    return least
