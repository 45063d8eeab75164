"""The Graph tab: operands and users around the selection, as far as wanted."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QTransform,
    QWheelEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSpinBox, QVBoxLayout, QWidget

from engine.ir.graph import Graph
from engine.quantities import time_text
from engine.session import edits
from engine.session.lookup import lookup
from engine.session.matching import shown_in
from engine.session.session import Session
from engine.session.variant import Variant
from engine.timeline.timeline import Category
from views.graph.neighbourhood import Neighbourhood, neighbourhood
from views.ports import Host, follow, in_view
from views.theme import GRID, axis_font, colour, text_font
from views.timeline.scene import rows_of

NODE = QRectF(0, 0, 50 * GRID, 10 * GRID)
"""Size of a node at the scale 1."""
_ACROSS, _DOWN = 64.0 * GRID, 13.0 * GRID


@lru_cache(maxsize=4096)
def category_of(variant: Variant, instruction: int) -> Category | None:
    """What an instruction is drawn as in the timelines; None where it takes no time."""
    rows = rows_of(variant.timeline, (instruction,))
    found = variant.timeline.category[rows]
    found = found[found != Category.EXPOSED]
    return Category(int(found[0])) if len(found) else None


class GraphView(QWidget):
    """Nodes in layers; wheel moves, Ctrl and the wheel zoom, Space fits."""

    picked = Signal(int)
    """Instruction whose node was clicked."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._variant: Variant | None = None
        self._graph: Graph | None = None
        self._shown: Neighbourhood | None = None
        self._selected: frozenset[int] = frozenset()
        self._scale = 1.0
        self._middle = QPointF()
        self._grip: QPointF | None = None
        self._moved = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("graph around the selection")
        self.setMinimumSize(40 * GRID, 30 * GRID)

    def sizeHint(self) -> QSize:  # noqa: N802
        return QSize(140 * GRID, 56 * GRID)

    def set_shown(
        self, variant: Variant | None, graph: Graph | None, shown: Neighbourhood | None, selected: frozenset[int]
    ) -> None:
        """Another neighbourhood; `selected` are node numbers."""
        self._variant, self._graph, self._shown, self._selected = variant, graph, shown, selected
        names = [graph.names[node] for node in shown.layer] if graph is not None and shown is not None else []
        self.setAccessibleDescription(", ".join(names))
        self.fit()

    def fit(self) -> None:
        """Everything in view, as far as it can be read; else the selection in the middle."""
        area = self._bounds()
        if area is not None:
            scale = min(self.width() / (area.width() + 40), self.height() / (area.height() + 40), 1.0)
            self._scale = max(scale, 0.45)
            chosen = [self._rect(node).center() for node in self._selected if self._shown and node in self._shown.layer]
            self._middle = area.center() if scale >= 0.45 or not chosen else chosen[0]
        self.update()

    def _bounds(self) -> QRectF | None:
        if self._shown is None or not self._shown.layer:
            return None
        area = QRectF()
        for node in self._shown.layer:
            area = area.united(self._rect(node))
        return area

    def _rect(self, node: int) -> QRectF:
        assert self._shown is not None
        return NODE.translated(self._shown.layer[node] * _ACROSS, self._shown.place[node] * _DOWN)

    def _transform(self) -> QTransform:
        made = QTransform()
        made.translate(self.width() / 2, self.height() / 2)
        made.scale(self._scale, self._scale)
        made.translate(-self._middle.x(), -self._middle.y())
        return made

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        theme = self._host.theme
        painter = QPainter(self)
        painter.fillRect(self.rect(), colour(theme.base))
        if self._shown is not None and self._graph is not None and self._variant is not None:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=True)
            painter.setTransform(self._transform())
            self._paint_edges(painter, self._shown)
            for node in self._shown.layer:
                self._paint_node(painter, self._variant, self._graph, node)
        painter.end()

    def _paint_edges(self, painter: QPainter, shown: Neighbourhood) -> None:
        theme = self._host.theme
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for operand, user in shown.edges:
            start, end = self._rect(operand), self._rect(user)
            begin = QPointF(start.right(), start.center().y())
            stop = QPointF(end.left(), end.center().y())
            path = QPainterPath(begin)
            reach = (stop.x() - begin.x()) / 2
            path.cubicTo(begin + QPointF(reach, 0), stop - QPointF(reach, 0), stop)
            chosen = operand in self._selected or user in self._selected
            painter.setPen(QPen(colour(theme.text if chosen else theme.border), 1.6 if chosen else 1.2))
            painter.drawPath(path)

    def _paint_node(self, painter: QPainter, variant: Variant, graph: Graph, node: int) -> None:
        theme, area = self._host.theme, self._rect(node)
        category = category_of(variant, int(graph.ids[node]))
        painter.setPen(QPen(colour(theme.border), 1))
        painter.setBrush(colour(theme.pane))
        painter.drawRoundedRect(area, 3, 3)
        if category is not None:
            painter.fillRect(QRectF(area.left(), area.top(), 2 * GRID, area.height()), colour(theme.of(category).fill))
        inside = area.adjusted(3 * GRID, GRID / 2, -GRID, -GRID / 2)
        painter.setPen(colour(theme.text if category is not None else theme.muted))
        painter.setFont(text_font())
        name = painter.fontMetrics().elidedText(graph.names[node], Qt.TextElideMode.ElideMiddle, int(inside.width()))
        painter.drawText(inside, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft, name)
        painter.setFont(axis_font())
        painter.setPen(colour(theme.muted))
        low = Qt.AlignmentFlag.AlignBottom
        costs = variant.program.costs[graph.computation]
        time = max(int(costs.compute[node]), int(costs.transfer[node]))
        cost = time_text(time) if time else ""
        metrics = painter.fontMetrics()
        room = int(inside.width()) - metrics.horizontalAdvance(cost) - GRID
        opcode = metrics.elidedText(graph.opcodes[node], Qt.TextElideMode.ElideRight, room)
        painter.drawText(inside, low | Qt.AlignmentFlag.AlignLeft, opcode)
        painter.drawText(inside, low | Qt.AlignmentFlag.AlignRight, cost)
        if node in self._selected:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.text), 2))
            painter.drawRoundedRect(area, 3, 3)

    def node_at(self, position: QPointF) -> int | None:
        """The node under a point of the widget."""
        if self._shown is None:
            return None
        inverse, _ = self._transform().inverted()
        at = inverse.map(position)
        return next((node for node in self._shown.layer if self._rect(node).contains(at)), None)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        self._grip, self._moved = event.position(), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        if self._grip is None:
            return
        step = event.position() - self._grip
        if self._moved or step.manhattanLength() > GRID:
            self._moved = True
            self._middle -= step / self._scale
            self._grip = event.position()
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        moved, self._grip = self._moved, None
        node = self.node_at(event.position())
        if not moved and node is not None and self._graph is not None:
            self.picked.emit(int(self._graph.ids[node]))

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        delta = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._scale = min(3.0, max(0.1, self._scale * 1.2 ** (delta.y() / 120)))
        else:
            self._middle -= QPointF(delta.x(), delta.y()) * 0.5 / self._scale
        self.update()
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        if event.key() == Qt.Key.Key_Space:
            self.fit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        self.fit()
        super().resizeEvent(event)


class GraphPane(QWidget):
    """Follows the selection; the active variant's graph is shown."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self.view = GraphView(host)
        self.view.picked.connect(self._picked)
        self.text = QLabel()
        self.hops = QSpinBox()
        self.hops.setRange(1, 8)
        self.hops.setValue(2)
        self.hops.setSuffix(" hops")
        self.hops.setToolTip("How far operands and users are followed")
        self.hops.setAccessibleName("hops")
        self.hops.valueChanged.connect(lambda _: self.refresh())
        line = QHBoxLayout()
        line.setContentsMargins(2 * GRID, GRID, 2 * GRID, 0)
        line.addWidget(self.text, 1)
        line.addWidget(self.hops)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(line)
        layout.addWidget(self.view, 1)
        follow(self, host.store, self._session_changed)
        self.refresh()

    def came_into_view(self) -> None:
        """Draw what was put off while nobody looked."""
        self.refresh()

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"selection", "entries", "active", "path"} and in_view(self):
            self.refresh()

    def refresh(self) -> None:
        """Show what lies around the selection in the active variant."""
        session = self._host.store.state
        variant = session.active_variant
        places = (
            [p for i in sorted(shown_in(session, session.active)) if (p := lookup(variant).place(i)) is not None]
            if variant is not None
            else []
        )
        if variant is None or not places:
            self.view.set_shown(None, None, None, frozenset())
            self.text.setText(_nothing(session))
            return
        graph = places[0][0]
        chosen = frozenset(node for owner, node in places if owner is graph)
        shown = neighbourhood(graph, sorted(chosen), self.hops.value())
        self.view.set_shown(variant, graph, shown, chosen)
        more = f"; {shown.left_out:,} more are left out" if shown.left_out else ""
        name = graph.names[min(chosen)] if len(chosen) == 1 else f"{len(chosen)} selected instructions"
        self.text.setText(
            f"{session.active}: {name} and {len(shown.layer) - len(chosen):,} around, in {graph.name}{more}"
        )

    def _picked(self, instruction: int) -> None:
        session = self._host.store.state
        self._host.store.become("Select", edits.selected(session, session.active, (instruction,)))


def _nothing(session: Session) -> str:
    if not session.entries:
        return "Open a module to see its data flow."
    if session.active_variant is None:
        return "Waiting for the active variant."
    if session.selection:
        return f"The selection is not part of {session.active}."
    return "Select an instruction in any pane: what it reads and who reads it is drawn here."
