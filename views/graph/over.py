"""What lies over nodes and edges: selection, search hits, and what the node under the mouse is joined to."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from engine.ir.graph import Ints
from engine.layout.outline import Outline, Side
from engine.layout.picture import Picture
from views.graph.items import Shown
from views.theme import colour

_MOST_JOINED = 200


def _none() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Over:
    """Positions in the picture."""

    selected: Ints = field(default_factory=_none)
    standing: Ints = field(default_factory=_none)
    """Closed groups that hold something selected."""
    found: Ints = field(default_factory=_none)
    """Nodes that match the search, or hold one that does."""
    hover: int = -1
    rubber: QRectF | None = None


def joined(outline: Outline, picture: Picture, position: int, side: Side) -> npt.NDArray[np.int64]:
    """Pairs (operand, user) of positions for every wire of a node or of what lies in it. Shape [j, 2], distinct."""
    item = int(picture.items[position])
    stop = int(outline.end[item])
    wires = np.concatenate([outline.operand_wires(item, stop), outline.user_wires(item, stop)])
    wires = wires[(outline.wire_sides[wires] & int(side)) > 0]
    source, target = outline.source[wires], outline.target[wires]
    outside = ((source < item) | (source >= stop)) | ((target < item) | (target >= stop))
    ends = np.stack([source[outside], target[outside]], axis=1)
    if not len(ends):
        return ends
    shown = outline.standing_for(picture.items, ends.reshape(-1))
    pairs = np.unique(np.searchsorted(picture.items, shown).reshape(-1, 2), axis=0)
    return pairs[:_MOST_JOINED]


class OverItem(QGraphicsItem):
    """Drawn anew whenever the mouse moves; nodes and edges are not."""

    def __init__(self, shown: Shown) -> None:
        super().__init__()
        self._shown = shown
        self.over = Over()
        self._pairs: dict[int, npt.NDArray[np.int64]] = {}
        picture = shown.picture
        self._bounds = QRectF(-1e4, -1e4, float(picture.width[0]) + 2e4, float(picture.height[0]) + 2e4)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)

    def boundingRect(self) -> QRectF:
        return self._bounds

    def set_over(self, over: Over) -> None:
        self.over = over
        self.update()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        theme, over = self._shown.theme, self.over
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=True)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for position in {*over.selected.tolist(), over.hover} - {-1}:
            self._paint_joined(painter, position)
        self._outline(painter, over.found, colour(theme.focus), 2)
        self._outline(painter, over.standing, colour(theme.text), 2, Qt.PenStyle.DashLine)
        self._outline(painter, over.selected, colour(theme.text), 3)
        if over.hover >= 0:
            self._outline(painter, np.array([over.hover]), colour(theme.text), 1)
        if over.rubber is not None:
            pen = QPen(colour(theme.focus), 1)
            pen.setCosmetic(True)
            painter.setPen(pen)
            painter.setBrush(colour(theme.focus, 36))
            painter.drawRect(over.rubber)

    def _outline(
        self,
        painter: QPainter,
        positions: Ints,
        hue: QColor,
        width: int,
        style: Qt.PenStyle = Qt.PenStyle.SolidLine,
    ) -> None:
        pen = QPen(hue, width, style)
        pen.setCosmetic(True)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for position in positions.tolist():
            painter.drawRect(self.box(position).adjusted(-3, -3, 3, 3))

    def box(self, position: int) -> QRectF:
        p = self._shown.picture
        return QRectF(*(float(c[position]) for c in (p.left, p.top, p.width, p.height)))

    def _paint_joined(self, painter: QPainter, position: int) -> None:
        """Lines from operands and to users across all frames, dark, above everything."""
        shown = self._shown
        if position not in self._pairs:
            self._pairs[position] = joined(shown.outline, shown.picture, position, shown.side)
        line = QPen(colour(shown.theme.text), 1.5)
        halo = QPen(colour(shown.theme.base, 200), 4)
        line.setCosmetic(True)
        halo.setCosmetic(True)
        for one, two in self._pairs[position].tolist():
            a, b = self.box(one), self.box(two)
            start, end = QPointF(a.center().x(), a.bottom()), QPointF(b.center().x(), b.top())
            reach = QPointF(0, max(12.0, min(80.0, abs(end.y() - start.y()) / 2)))
            path = QPainterPath(start)
            path.cubicTo(start + reach, end - reach, end)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            for pen in (halo, line):
                painter.setPen(pen)
                painter.drawPath(path)
            painter.drawLine(end, end + QPointF(-3.5, -6))
            painter.drawLine(end, end + QPointF(3.5, -6))
