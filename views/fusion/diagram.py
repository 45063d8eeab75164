"""Draws the inside of a fusion with the graph's nodes and edges; the einsum has a frame of its own."""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QGraphicsScene, QGraphicsView, QWidget

from engine.layout.outline import Side
from views.fusion.inside import LATE, Inside
from views.graph.colouring import Colouring, Swatch, by_kind
from views.graph.items import EdgesItem, NodesItem, Shown
from views.ports import Host
from views.theme import GRID, colour

_SMALLEST = 0.7
"""Names can still be read; a larger graph scrolls."""
_MARGIN = 4 * GRID


class Diagram(QGraphicsView):
    """Nothing can be changed in it: it says what is where."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._inside: Inside | None = None
        self.setScene(QGraphicsScene(self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setInteractive(False)
        self.setDragMode(QGraphicsView.DragMode.ScrollHandDrag)
        self.setMinimumHeight(60 * GRID)
        self.setAccessibleName("inside of the fusion")
        self.hide()

    def show_inside(self, inside: Inside | None) -> None:
        """Draw another fusion, or nothing."""
        self._inside = inside
        self.redraw()

    def redraw(self) -> None:
        """Again, in the colours of now."""
        scene = self.scene()
        scene.clear()
        self.setVisible(self._inside is not None)
        if self._inside is None:
            return
        inside, theme = self._inside, self._host.theme
        looks = by_kind(theme, inside.outline.look)
        colouring = Colouring((*looks.swatches, Swatch(theme.exposed, "not needed by the einsum")), inside.number)
        shown = Shown(inside.outline, inside.picture, colouring, theme, Side.BOTH)
        scene.setBackgroundBrush(colour(theme.base))
        nodes = NodesItem(shown)
        scene.addItem(EdgesItem(shown))
        scene.addItem(nodes)
        scene.setSceneRect(nodes.boundingRect())
        self._fit()
        self.setAccessibleDescription(described(inside))

    def drawForeground(self, painter: QPainter, rect: QRectF | QRect) -> None:
        inside = self._inside
        at = inside.picture.position(inside.einsum) if inside is not None and inside.einsum >= 0 else None
        if inside is None or at is None:
            return
        picture = inside.picture
        box = QRectF(*(float(c[at]) for c in (picture.left, picture.top, picture.width, picture.height)))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colour(self._host.theme.text), 2.5))
        painter.drawRect(box.adjusted(-3, -3, 3, 3))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        box, view = self.sceneRect(), self.viewport().size()
        if box.isEmpty() or view.isEmpty():
            return
        scale = min((view.width() - _MARGIN) / box.width(), (view.height() - _MARGIN) / box.height(), 1.0)
        self.resetTransform()
        self.scale(max(scale, _SMALLEST), max(scale, _SMALLEST))
        if scale < _SMALLEST and self._inside is not None and self._inside.einsum >= 0:
            at = self._inside.picture.position(self._inside.einsum)
            if at is not None:
                picture = self._inside.picture
                self.centerOn(float(picture.left[at] + picture.width[at] / 2), float(picture.top[at]))


def described(inside: Inside) -> str:
    """The same in words, for those who do not see it."""
    outline = inside.outline
    held = [n for n, i in enumerate(outline.instruction.tolist()) if i >= 0 and n not in inside.outside]
    late = [outline.names[n] for n in sorted(inside.outside) if inside.number[n] == LATE]
    text = f"{len(held)} instructions, {len(inside.outside)} from outside"
    return f"{text}; not needed by the einsum: {', '.join(late)}" if late else text
