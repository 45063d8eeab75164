"""The whole of time in one strip under the timelines, and which part of it is shown; drag it to go elsewhere."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.session.session import Session
from views.ports import Host, follow
from views.theme import GRID, colour
from views.timeline.axis import TimeRange, Window
from views.timeline.bands import compute_lanes
from views.timeline.moves import ZOOM
from views.timeline.paint_folds import paint_bands
from views.timeline.paint_frame import opacity_of
from views.timeline.paint_shares import paint_shares
from views.timeline.rectangles import Rectangles
from views.timeline.scene import GUTTER

HEIGHT = 6 * GRID


class Overview(QWidget):
    """The active variant's compute lane from its start to its end."""

    def __init__(self, host: Host, time_range: TimeRange, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._range = time_range
        self._strip: QPixmap | None = None
        self._grip: int | None = None
        self._rectangles = Rectangles()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setToolTip("All of time; drag to go elsewhere")
        self.setAccessibleName("overview")
        time_range.changed.connect(self.update)
        follow(self, host.store, self._session_changed)

    def sizeHint(self) -> QSize:
        return QSize(100 * GRID, HEIGHT)

    def whole(self) -> Window:
        """All of time over the strip, aligned with the lanes above."""
        limit = self._range.limit + self._range.limit // 50
        return Window(0, limit, float(GUTTER), float(max(1, self.width() - GUTTER - 2 * GRID)))

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"entries", "active"}:
            self._redraw()

    def _redraw(self) -> None:
        self._strip = None
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._redraw()
        super().resizeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._redraw()
        super().changeEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = self._host.theme
        if self._strip is None:
            self._strip = self._drawn()
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._strip)
        if all(entry.variant is None for entry in self._host.store.state.entries):
            painter.end()  # there is no time yet of which a part could be shown
            return
        window = self.whole()
        left = window.x_of(self._range.start)
        right = min(window.x_of(self._range.start + self._range.span), window.left + window.width)
        for x, width in ((window.left, left - window.left), (right, window.left + window.width - right)):
            painter.fillRect(QRectF(x, 0, max(0.0, width), self.height()), colour(theme.pane, 170))
        painter.setPen(QPen(colour(theme.focus), 1))
        painter.drawRect(QRectF(left, 0.5, max(3.0, right - left), self.height() - 2))
        painter.end()

    def _drawn(self) -> QPixmap:
        ratio = self.devicePixelRatioF()
        strip = QPixmap(self.size() * ratio)
        strip.setDevicePixelRatio(ratio)
        theme = self._host.theme
        strip.fill(colour(theme.pane))
        entry = self._host.store.state.active_entry
        variant = entry.variant if entry is not None else None
        if entry is None or variant is None:
            return strip
        painter = QPainter(strip)
        painter.setOpacity(opacity_of(entry))
        painter.setPen(Qt.PenStyle.NoPen)
        window, timeline = self.whole(), variant.timeline
        for lane in compute_lanes(timeline)[:1]:
            paint_bands(painter, theme, window, timeline, lane, GRID, HEIGHT - 2.0 * GRID)
            tall = HEIGHT - 2.0 * GRID
            paint_shares(painter, theme, self._rectangles, window, timeline, lane, float(GRID), tall)
        painter.end()
        return strip

    def mousePressEvent(self, event: QMouseEvent) -> None:
        time = self.whole().time_at(event.position().x())
        if not self._range.start <= time <= self._range.start + self._range.span:
            self._range.show(time - self._range.span // 2, self._range.span)
        self._grip = time - self._range.start

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is not None:
            self._range.show(self.whole().time_at(event.position().x()) - self._grip, self._range.span)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grip = None

    def wheelEvent(self, event: QWheelEvent) -> None:
        notches = (event.angleDelta().y() or event.angleDelta().x()) / 120.0
        self._range.zoom(ZOOM**notches, self._range.start + self._range.span // 2)
        event.accept()
