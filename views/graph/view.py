"""One picture of a graph that answers mouse and wheel. What is open and selected is its pane's business."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QResizeEvent, QTransform, QWheelEvent
from PySide6.QtWidgets import QFrame, QGraphicsScene, QGraphicsView, QWidget

from views import accessible
from views.accessible import Thing
from views.graph.camera import Camera
from views.graph.items import EdgesItem, FramesItem, NodesItem, Shown
from views.graph.over import Over, OverItem
from views.graph.things import things_of
from views.ports import Host
from views.theme import GRID, colour

ZOOM = 1.25
"""Factor of one notch of the wheel."""
PAN = 60
"""Pixels of one notch."""
_DRAG = 4
"""Pixels a press may move and still be a click."""
_FAR = 1e6


class GraphView(QGraphicsView):
    """One side of a picture. Positions that its signals carry are items of the outline, -1 for none."""

    picked = Signal(int, bool)
    """An item was clicked; whether it adds to what is selected."""
    toggled = Signal(int, bool)
    """A group is to be opened or closed; whether with all that lies in it."""
    hovered = Signal(int)

    def __init__(self, host: Host, camera: Camera, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self.camera = camera
        self.shown: Shown | None = None
        self.nodes: NodesItem | None = None
        self._over: OverItem | None = None
        self._press: QPoint | None = None
        self._last: QPoint | None = None
        self._rubber: QPointF | None = None
        self._things: tuple[Thing, ...] | None = None
        accessible.install()
        self.setScene(QGraphicsScene(self))
        self.scene().setItemIndexMethod(QGraphicsScene.ItemIndexMethod.NoIndex)
        self.setSceneRect(QRectF(-_FAR, -_FAR, 2 * _FAR, 2 * _FAR))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTransformationAnchor(QGraphicsView.ViewportAnchor.NoAnchor)
        self.setResizeAnchor(QGraphicsView.ViewportAnchor.NoAnchor)
        self.setViewportUpdateMode(QGraphicsView.ViewportUpdateMode.FullViewportUpdate)
        self.setOptimizationFlag(QGraphicsView.OptimizationFlag.DontSavePainterState)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        camera.changed.connect(self.follow_camera)
        self.follow_camera()

    def sizeHint(self) -> QSize:
        return QSize(640, 400)

    def minimumSizeHint(self) -> QSize:
        return QSize(60 * GRID, 30 * GRID)

    # What is shown

    def set_shown(self, shown: Shown | None) -> None:
        """Draw another picture, side or colouring."""
        over = self.over
        self._forget_things()
        self.scene().clear()
        self.shown, self.nodes, self._over = shown, None, None
        if shown is None:
            return
        self.nodes, self._over = NodesItem(shown), OverItem(shown)
        for item in (FramesItem(shown), EdgesItem(shown), self.nodes, self._over):
            self.scene().addItem(item)
        self._over.set_over(replace(over, hover=-1))
        self.setBackgroundBrush(colour(shown.theme.base))

    @property
    def over(self) -> Over:
        return self._over.over if self._over is not None else Over()

    def set_over(self, over: Over) -> None:
        if self._over is not None:
            moved = not np.array_equal(over.selected, self._over.over.selected)
            self._over.set_over(over)
            if moved:
                self._forget_things()
                accessible.tell_focus(self)

    def follow_camera(self) -> None:
        """Show what the camera looks at."""
        self._forget_things()
        scale = self.camera.scale
        self.setTransform(QTransform.fromScale(scale, scale))
        self.centerOn(self.camera.centre)

    def fit(self) -> None:
        """The whole picture."""
        if self.shown is not None:
            self.show_box(0)

    def show_box(self, position: int, margin: float = 0.0) -> None:
        """Fit one node or frame with some room around."""
        box = self.box(position)
        if box is not None:
            area = self.viewport().size()
            box.adjust(-margin, -margin, margin, margin)
            self.camera.fit(box, area.width(), area.height())

    def box(self, position: int) -> QRectF | None:
        return self._over.box(position) if self._over is not None else None

    def reveal(self, position: int) -> None:
        """Bring a node into the view if it is outside or too small to read."""
        box = self.box(position)
        if box is None:
            return
        inside = self.visible_area().contains(box.center())
        if not inside or self.camera.scale < 0.5:
            self.camera.look_at(box.center(), max(self.camera.scale, 0.8))

    def visible_area(self) -> QRectF:
        """What is seen, in the picture's coordinates."""
        size = self.viewport().size()
        width, height = size.width() / self.camera.scale, size.height() / self.camera.scale
        return QRectF(self.camera.centre.x() - width / 2, self.camera.centre.y() - height / 2, width, height)

    def position_at(self, at: QPoint) -> int:
        """The innermost node or frame under a point of the widget, -1 for none."""
        if self.shown is None:
            return -1
        picture, point = self.shown.picture, self.mapToScene(at)
        x, y = point.x(), point.y()
        under = (picture.left <= x) & (x <= picture.left + picture.width)
        under &= (picture.top <= y) & (y <= picture.top + picture.height) & self.shown.visible
        found = np.flatnonzero(under)
        return int(found[-1]) if len(found) else -1

    def item_at(self, at: QPoint) -> int:
        """As `position_at`, as an item of the outline; nothing for the frame that holds everything."""
        position = self.position_at(at)
        return int(self.shown.picture.items[position]) if self.shown is not None and position > 0 else -1

    # For the platform's accessibility interface: see views.accessible

    def things(self) -> tuple[Thing, ...]:
        if self._things is None:
            self._things = self._seen_things()
        return self._things

    def surface(self) -> QWidget:
        return self.viewport()

    def _seen_things(self) -> tuple[Thing, ...]:
        if self.shown is None or self.nodes is None:
            return ()
        return things_of(
            self.shown,
            self.nodes.exposed(self.visible_area()),
            np.concatenate([self.over.selected, self.over.standing]),
            self._place,
            lambda item: self.picked.emit(item, False),
            lambda item: self.toggled.emit(item, False),
        )

    def _place(self, position: int) -> QRect:
        box = self.box(position)
        return self.mapFromScene(box).boundingRect() if box is not None else QRect()

    def _forget_things(self) -> None:
        if self._things is not None:
            self._things = None
            accessible.tell_changed(self)

    # Mouse

    def wheelEvent(self, event: QWheelEvent) -> None:
        delta, pixels = event.angleDelta(), event.pixelDelta()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.camera.zoom(ZOOM ** (delta.y() / 120.0), self.mapToScene(event.position().toPoint()))
        elif not pixels.isNull():
            self.camera.pan(-pixels.x(), -pixels.y())
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.camera.pan(-(delta.y() or delta.x()) / 120.0 * PAN, 0)
        else:
            self.camera.pan(-delta.x() / 120.0 * PAN, -delta.y() / 120.0 * PAN)
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = event.position().toPoint()
        left = event.button() == Qt.MouseButton.LeftButton
        if not left and event.button() != Qt.MouseButton.MiddleButton:
            return
        self._press = self._last = at
        if left and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._rubber = self.mapToScene(at)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = event.position().toPoint()
        if self._press is None or self._last is None:
            self._hover(at)
            return
        if self._rubber is not None:
            self.set_over(replace(self.over, rubber=QRectF(self._rubber, self.mapToScene(at)).normalized()))
            return
        if (at - self._press).manhattanLength() > _DRAG or self._last != self._press:
            moved = self._last - at
            self._last = at
            self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
            self.camera.pan(moved.x(), moved.y())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        press, last, rubber = self._press, self._last, self._rubber
        self._press = self._last = self._rubber = None
        self.viewport().setCursor(Qt.CursorShape.ArrowCursor)
        if press is None:
            return
        at = event.position().toPoint()
        area = self.over.rubber
        self.set_over(replace(self.over, rubber=None))
        if rubber is not None and area is not None and (at - press).manhattanLength() > _DRAG:
            size = self.viewport().size()
            self.camera.fit(area, size.width(), size.height(), 4.0)
        elif last == press and event.button() == Qt.MouseButton.LeftButton:
            add = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
            self.picked.emit(self.item_at(at), add)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        item = self.item_at(event.position().toPoint())
        if item > 0:
            self.toggled.emit(item, bool(event.modifiers() & Qt.KeyboardModifier.AltModifier))

    def _hover(self, at: QPoint) -> None:
        position = self.position_at(at)
        frame = position >= 0 and self.shown is not None and bool(self.shown.picture.opened[position])
        position = -1 if frame else position
        if position != self.over.hover:
            self.set_over(replace(self.over, hover=position))
            item = int(self.shown.picture.items[position]) if self.shown is not None and position >= 0 else -1
            self.hovered.emit(item)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave and self.over.hover >= 0:
            self.set_over(replace(self.over, hover=-1))
            self.hovered.emit(-1)
        return super().viewportEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.follow_camera()

    def paint_all(self, painter: QPainter) -> None:
        """The whole picture as shapes, one unit a pixel."""
        if self.shown is None:
            return
        picture = self.shown.picture
        area = QRectF(0, 0, float(picture.width[0]), float(picture.height[0]))
        self.scene().render(painter, area, area)
