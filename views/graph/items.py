"""The items of a graph's scene: all edges, all nodes, and what lies over them. Each draws only what is exposed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from engine.ir.graph import Bools, Ints
from engine.layout.outline import Outline, Side
from engine.layout.picture import HEADER, Picture
from views.graph.colouring import Colouring
from views.graph.curves import Segments, segments_of
from views.in_place import Floats, first_of
from views.theme import GRID, Theme, axis_font, colour, text_font
from views.timeline.rectangles import Rectangles

NAMED = 0.45
"""Scale from which names are drawn."""
READABLE = 0.28
"""Scale from which short names are."""
_MOST_NAMED = 1_000
_MOST_LINES = 30_000
"""Lines of one frame; beyond that every n-th is drawn, which at that density cannot be seen."""
_MOST_SMOOTH = 6_000
"""Lines of one frame up to which they are smoothed: beyond, they are too dense for it to be seen."""
_DENSE = 20_000
"""Nodes of one frame from which those on the same pixel are drawn once."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What the items draw: one side of a picture."""

    outline: Outline
    picture: Picture
    colouring: Colouring
    theme: Theme
    side: Side

    @property
    def visible(self) -> Bools:
        """Which nodes are in the shown module. Shape [k]."""
        return (self.outline.sides[self.picture.items] & int(self.side)) > 0


def _box(picture: Picture) -> QRectF:
    return QRectF(-2 * GRID, -2 * GRID, float(picture.width[0]) + 4 * GRID, float(picture.height[0]) + 4 * GRID)


class _Item(QGraphicsItem):
    def __init__(self, shown: Shown) -> None:
        super().__init__()
        self.shown = shown
        self._bounds = _box(shown.picture)
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemUsesExtendedStyleOption)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)

    def boundingRect(self) -> QRectF:
        return self._bounds


class EdgesItem(_Item):
    """Every edge as smooth lines."""

    def __init__(self, shown: Shown) -> None:
        super().__init__(shown)
        self._smooth: Segments | None = None
        self._straight = segments_of(shown.picture, shown.side, smooth=False)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        scale = option.levelOfDetailFromTransform(painter.worldTransform())
        if scale > 0.2 and self._smooth is None:
            self._smooth = segments_of(self.shown.picture, self.shown.side, smooth=True)
        segments = self._smooth if scale > 0.2 and self._smooth is not None else self._straight
        rect = option.exposedRect
        chosen = segments.within(rect.left(), rect.top(), rect.right(), rect.bottom())
        if len(chosen) > _MOST_LINES:
            chosen = chosen[:: len(chosen) // _MOST_LINES + 1]
        theme = self.shown.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=scale > 0.2 and len(chosen) < _MOST_SMOOTH)
        turned, strong = segments.turned[chosen], segments.strong[chosen] & ~segments.turned[chosen]
        for mask, fill, width in (
            (~turned & ~strong, theme.elementwise.fill, 1.0),
            (strong, theme.elementwise.fill, 2.0),
            (turned, theme.warning, 1.0),
        ):
            self._draw(painter, segments.lines[chosen[mask]], QPen(colour(fill), width if scale > 0.2 else 0))
        if scale > NAMED:
            self._tips(painter, segments, chosen)

    def _draw(self, painter: QPainter, lines: Floats, pen: QPen) -> None:
        if len(lines):
            pen.setCosmetic(True)
            painter.setPen(pen)
            painter.drawLines(first_of(QLineF, lines), len(lines))

    def _tips(self, painter: QPainter, segments: Segments, chosen: Ints) -> None:
        ends = chosen[segments.last[chosen]]
        if not len(ends) or len(ends) > _MOST_NAMED:
            return
        up = segments.upwards[ends]
        lines = segments.lines[ends]
        x, y = np.where(up, lines[:, 0], lines[:, 2]), np.where(up, lines[:, 1], lines[:, 3])
        back = y + np.where(up, 6.0, -6.0)
        wings = [np.stack([x + side, back, x, y], axis=1) for side in (-3.5, 3.5)]
        self._draw(painter, np.concatenate(wings), QPen(colour(self.shown.theme.elementwise.fill), 1.5))


class NodesItem(_Item):
    """Every node as a rectangle in its colour, with its name where there is room; frames around open groups."""

    def __init__(self, shown: Shown) -> None:
        super().__init__(shown)
        self._rectangles = Rectangles()
        picture = shown.picture
        self._visible = shown.visible
        self._right, self._bottom = picture.left + picture.width, picture.top + picture.height
        self._colour = shown.colouring.number[picture.items]
        self._groups = shown.outline.end[picture.items] > picture.items + 1
        sides = shown.outline.sides[picture.items]
        self._marked = (sides != Side.BOTH) & (sides > 0)
        self._changed = shown.outline.changed[picture.items]
        self._composition = _Composition(shown.outline)
        self._elided: dict[tuple[int, bool], str] = {}

    def exposed(self, rect: QRectF) -> Ints:
        """Positions of the nodes and frames that touch a rectangle."""
        picture = self.shown.picture
        inside = (picture.left < rect.right()) & (self._right > rect.left())
        inside &= (picture.top < rect.bottom()) & (self._bottom > rect.top()) & self._visible
        return np.flatnonzero(inside)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        scale = option.levelOfDetailFromTransform(painter.worldTransform())
        found = self.exposed(option.exposedRect)
        frames = self.shown.picture.opened[found]
        nodes = found[~frames]
        if len(nodes) > _DENSE:
            nodes = self._thinned(nodes, scale)
        self._paint_fills(painter, nodes, scale)
        if scale > NAMED and len(nodes) <= _MOST_NAMED:
            self._paint_names(painter, nodes)
        elif scale > READABLE and len(nodes) <= _MOST_NAMED:
            self._paint_short_names(painter, nodes, scale)
        self._paint_marks(painter, nodes, scale)

    def _thinned(self, nodes: Ints, scale: float) -> Ints:
        """One node for each pixel."""
        picture = self.shown.picture
        x = np.round(picture.left[nodes] * scale).astype(np.int64)
        y = np.round(picture.top[nodes] * scale).astype(np.int64)
        _, first = np.unique(y * (1 << 32) + x, return_index=True)
        return nodes[first]

    def _paint_fills(self, painter: QPainter, nodes: Ints, scale: float) -> None:
        picture, theme = self.shown.picture, self.shown.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        border = QPen(colour(theme.muted), 1)
        border.setCosmetic(True)
        least = 1.0 / scale
        numbers = self._colour[nodes]
        for number, swatch in enumerate(self.shown.colouring.swatches):
            of = nodes[numbers == number]
            if not len(of):
                continue
            pale = swatch.role.fill in (theme.pane, theme.band)
            painter.setPen(border if pale and scale > 0.1 else QPen(Qt.PenStyle.NoPen))
            painter.setBrush(colour(swatch.role.fill))
            width, height = np.maximum(picture.width[of], least), np.maximum(picture.height[of], least)
            self._rectangles.draw_each(painter, picture.left[of], picture.top[of], width, height)
        if scale > NAMED:
            groups = nodes[self._groups[nodes]]
            self._paint_stacks(painter, groups)

    def _paint_stacks(self, painter: QPainter, groups: Ints) -> None:
        """What a closed group is made of, as a strip along its bottom."""
        picture, theme = self.shown.picture, self.shown.theme
        painter.setPen(Qt.PenStyle.NoPen)
        roles = (theme.einsum, theme.elementwise, theme.copy, theme.permute, theme.collective)
        shares = self._composition.shares(picture.items[groups], self.shown.outline.end[picture.items[groups]])
        left = picture.left[groups].copy()
        for number, role in enumerate(roles):
            width = shares[:, number] * picture.width[groups]
            painter.setBrush(colour(role.fill))
            self._rectangles.draw_each(painter, left, self._bottom[groups] - 5, width, np.full(len(groups), 5.0))
            left = left + width

    def _paint_names(self, painter: QPainter, nodes: Ints) -> None:
        picture, outline = self.shown.picture, self.shown.outline
        name_font, small = text_font(), axis_font()
        for font, second in ((name_font, False), (small, True)):
            painter.setFont(font)
            metrics = QFontMetrics(font)
            for node in nodes.tolist():
                self._paint_line(painter, metrics, node, second=second)
        self._paint_openers(painter, nodes[self._groups[nodes]], picture, outline)

    def _paint_short_names(self, painter: QPainter, nodes: Ints, scale: float) -> None:
        """From further away: the name alone, as large as the node allows."""
        picture, outline = self.shown.picture, self.shown.outline
        font = QFont(axis_font())
        font.setPixelSize(round(min(28.0, 8.5 / scale)))
        painter.setFont(font)
        metrics = QFontMetrics(font)
        for node in nodes.tolist():
            item, room = int(picture.items[node]), float(picture.width[node]) - 2 * GRID
            painter.setPen(colour(self.shown.colouring.swatches[int(self._colour[node])].role.label))
            box = QRectF(float(picture.left[node]) + GRID, float(picture.top[node]), room, float(picture.height[node]))
            text = metrics.elidedText(outline.names[item].removesuffix(" …"), Qt.TextElideMode.ElideMiddle, int(room))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)

    def _paint_line(self, painter: QPainter, metrics: QFontMetrics, node: int, *, second: bool) -> None:
        picture, outline = self.shown.picture, self.shown.outline
        item = int(picture.items[node])
        role = self.shown.colouring.swatches[int(self._colour[node])].role
        indent = 5 * GRID if self._groups[node] else 2 * GRID
        room = float(picture.width[node]) - indent - 2 * GRID
        text = self._elided.get((node, second))
        if text is None:
            mode = Qt.TextElideMode.ElideRight if second else Qt.TextElideMode.ElideMiddle
            text = metrics.elidedText((outline.details if second else outline.names)[item], mode, int(room))
            self._elided[node, second] = text
        top = float(picture.top[node]) + (19 if second else 3)
        painter.setPen(colour(role.label))
        box = QRectF(float(picture.left[node]) + indent, top, room, 17)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_openers(self, painter: QPainter, groups: Ints, picture: Picture, outline: Outline) -> None:
        """A plus where a node can be opened."""
        pen = QPen(colour(self.shown.theme.text), 1.5)
        for node in groups.tolist():
            role = self.shown.colouring.swatches[int(self._colour[node])].role
            pen.setColor(colour(role.label))
            painter.setPen(pen)
            x, y = float(picture.left[node]) + 10, float(picture.top[node]) + 12
            painter.drawLine(QLineF(x - 4, y, x + 4, y))
            painter.drawLine(QLineF(x, y - 4, x, y + 4))

    def _paint_marks(self, painter: QPainter, nodes: Ints, scale: float) -> None:
        """Frames in the colour of added, removed and changed, with a sign, so that it is not colour alone."""
        theme, picture = self.shown.theme, self.shown.picture
        painter.setBrush(Qt.BrushStyle.NoBrush)
        gone = self.shown.side == Side.BEFORE
        for which, hue, sign in (
            (nodes[self._marked[nodes]], theme.removed if gone else theme.added, "−" if gone else "+"),
            (nodes[self._changed[nodes]], theme.changed, "≠"),
            (nodes[self._holds_marks(nodes)], theme.changed, "≠"),
        ):
            if not len(which):
                continue
            pen = QPen(colour(hue), 3 if scale > 0.2 else 1)
            pen.setCosmetic(True)
            painter.setPen(pen)
            inset = 1.0
            self._rectangles.draw_each(
                painter,
                picture.left[which] - inset,
                picture.top[which] - inset,
                picture.width[which] + 2 * inset,
                picture.height[which] + 2 * inset,
            )
            if scale > NAMED and len(which) <= _MOST_NAMED:
                self._paint_signs(painter, which, hue, sign)

    def _paint_signs(self, painter: QPainter, nodes: Ints, hue: str, sign: str) -> None:
        picture, theme = self.shown.picture, self.shown.theme
        painter.setFont(text_font())
        for node in nodes.tolist():
            box = QRectF(
                float(picture.left[node]) + float(picture.width[node]) - 9, float(picture.top[node]) - 9, 18, 18
            )
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colour(hue))
            painter.drawRect(box)
            painter.setPen(colour(theme.base))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, sign)
            painter.setBrush(Qt.BrushStyle.NoBrush)

    def _holds_marks(self, nodes: Ints) -> Bools:
        """Closed groups in both modules with something in them that is not alike."""
        outline, items = self.shown.outline, self.shown.picture.items[nodes]
        differs = self._composition.differs(items, outline.end[items])
        found: Bools = self._groups[nodes] & ~self._marked[nodes] & differs
        return found


class _Composition:
    """What lies in a range of items, by sums over all before."""

    def __init__(self, outline: Outline) -> None:
        looks = outline.look[:, None] == np.arange(5)[None, :]
        leaf = (outline.instruction >= 0)[:, None]
        self._looks = np.concatenate([np.zeros((1, 5), np.int64), np.cumsum(looks & leaf, axis=0)])
        different = outline.changed | ((outline.sides != Side.BOTH) & (outline.instruction >= 0))
        self._different = np.concatenate([[0], np.cumsum(different)])

    def shares(self, first: Ints, stop: Ints) -> Floats:
        """Part of each look among the instructions that do something. Shape [len(first), 5]."""
        counts = (self._looks[stop] - self._looks[first]).astype(np.float64)
        shares: Floats = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        return shares

    def differs(self, first: Ints, stop: Ints) -> Bools:
        found: Bools = self._different[stop] > self._different[np.minimum(first + 1, stop)]
        return found


class FramesItem(_Item):
    """Behind everything: open groups with their titles."""

    def __init__(self, shown: Shown) -> None:
        super().__init__(shown)
        self._frames = np.flatnonzero(shown.picture.opened & shown.visible)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        scale = option.levelOfDetailFromTransform(painter.worldTransform())
        picture, outline, theme = self.shown.picture, self.shown.outline, self.shown.theme
        rect = option.exposedRect
        font = QFont(text_font())
        font.setBold(True)
        painter.setFont(font)
        metrics = QFontMetrics(font)
        pen = QPen(colour(theme.border), 1)
        pen.setCosmetic(True)
        for frame in self._frames.tolist():
            box = QRectF(*(float(c[frame]) for c in (picture.left, picture.top, picture.width, picture.height)))
            if not box.intersects(rect):
                continue
            item = int(picture.items[frame])
            painter.setPen(pen)
            painter.setBrush(colour(theme.pane if int(outline.depth[item]) % 2 else theme.base))
            painter.drawRect(box)
            if scale <= NAMED or item == 0:
                continue
            painter.setPen(QPen(colour(theme.muted), 1.5))
            painter.drawLine(QLineF(box.left() + 8, box.top() + 14, box.left() + 16, box.top() + 14))
            painter.setPen(colour(theme.text))
            title = outline.paths[item] if outline.kind[item] == 1 else outline.names[item]
            room = QRectF(box.left() + 6 * GRID, box.top(), box.width() - 8 * GRID, HEADER)
            text = metrics.elidedText(f"{title}", Qt.TextElideMode.ElideMiddle, int(room.width()))
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, text)
