"""Arranging lanes: dragging a lane's name, its menu, and what keys do. Every change is a step that can be undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QPointF
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from engine.session.lanes import Lanes
from engine.session.session import Session
from engine.session.store import Store
from views.timeline.scene import AXIS, GUTTER
from views.timeline.stack import Row, RowKind

if TYPE_CHECKING:
    from views.timeline.view import TimelineView

_LANES = frozenset({RowKind.COMPUTE, RowKind.TRANSFER, RowKind.IN_FLIGHT, RowKind.MEMORY})
_DRAG = 4
"""Pixels a press may move and still be a click."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A lane that the mouse carries by its name."""

    row: Row
    pressed: float
    """Height of the widget at which it was taken."""


class Arranging:
    """Moves, pins and hides lanes of one view."""

    def __init__(self, view: TimelineView, store: Store[Session]) -> None:
        self._view = view
        self._store = store
        self.of_slice: Sequence[QAction] = ()
        self.of_header: Sequence[QAction] = ()
        """What is offered for the selection, and for the active entry."""
        self._carried: Carried | None = None

    # Mouse

    def press(self, at: QPointF) -> bool:
        """Take the lane whose name is under the mouse. Returns whether there is one."""
        row = self.lane_at(at) if at.x() < GUTTER else None
        self._carried = Carried(row, at.y()) if row is not None else None
        return row is not None

    @property
    def carries(self) -> bool:
        return self._carried is not None

    def drop_line(self, at: QPointF) -> float | None:
        """Height of the widget at which what is carried would come to lie; None for where it is."""
        if self._carried is None or abs(at.y() - self._carried.pressed) <= _DRAG:
            return None
        rows, before = self._target(at)
        scroll = self._view.verticalScrollBar().value()
        edge = before.top if before is not None else rows[-1].bottom
        return edge - scroll + AXIS

    def release(self, at: QPointF) -> None:
        """Put the lane down."""
        carried, line = self._carried, self.drop_line(at)
        if carried is not None and line is not None:
            rows, before = self._target(at)
            names = [row.label for row in rows]
            self._become(
                f"Move lane {carried.row.label}",
                self._lanes.moved(carried.row.label, before.label if before is not None else None, names),
            )
        self._carried = None

    def _target(self, at: QPointF) -> tuple[list[Row], Row | None]:
        """The lanes of the carried lane's entry from the top, and the one that it would lie before."""
        assert self._carried is not None
        rows = self._rows(self._carried.row.entry)
        y = at.y() - AXIS + self._view.verticalScrollBar().value()
        return rows, next((row for row in rows if y < row.top + row.height / 2), None)

    def _rows(self, entry: int) -> list[Row]:
        rows = self._view.stack.placed(entry, self._view.verticalScrollBar().value())
        return [row for row in rows if row.kind in _LANES]

    def lane_at(self, at: QPointF) -> Row | None:
        """The lane or counter at a point of the widget."""
        found = self._view.row_at(at.y())
        return found[0] if found is not None and found[0].kind in _LANES else None

    def menu(self, at: QPointF) -> QMenu | None:
        """What can be done with the slice and the lane, or the header, at a point; None where there is none."""
        found = self._view.row_at(at.y())
        if found is not None and found[1] and self.of_header:
            headed = QMenu(self._view)
            headed.addActions(self.of_header)
            return headed
        row = self.lane_at(at)
        if row is None:
            return None
        made = QMenu(self._view)
        hit = self._view.hit_at(at)
        if hit is not None:
            made.addAction("Zoom to it").triggered.connect(lambda: self._view.go_to(hit))
            made.addActions(self.of_slice)
            made.addSeparator()
        pinned = row.label in self._lanes.pinned
        made.addAction("Unpin" if pinned else "Pin under the header").triggered.connect(lambda: self._pin(row))
        made.addAction("Move up").triggered.connect(lambda: self._step(row, -1))
        made.addAction("Move down").triggered.connect(lambda: self._step(row, 1))
        made.addAction("Hide").triggered.connect(lambda: self._hide(row))
        made.addSeparator()
        made.addAction("Show all lanes").triggered.connect(self.show_all)
        made.addAction("Lanes as they come").triggered.connect(lambda: self._become("Lanes as they come", Lanes()))
        return made

    def mean(self, at: QPointF) -> None:
        """Select the slice, or make the entry active, that a menu at a point is about."""
        view = self._view
        found, hit = view.row_at(at.y()), view.hit_at(at)
        if found is not None and found[1]:
            key = view.session.entries[found[0].entry].key
            if key != view.session.active:
                view.activate(key)
        elif hit is not None and hit != view.anchor:
            view.select(hit)

    def open_menu(self, at: QPoint) -> None:
        self.mean(QPointF(at))
        made = self.menu(QPointF(at))
        if made is not None:
            made.aboutToHide.connect(made.deleteLater)
            made.popup(self._view.viewport().mapToGlobal(at))

    # What actions do

    def pin(self) -> None:
        """Pin the lane that is meant, or let it go."""
        self._with_meant(self._pin)

    def move(self, by: int) -> None:
        self._with_meant(lambda row: self._step(row, by))

    def hide(self) -> None:
        self._with_meant(self._hide)

    def show_all(self) -> None:
        self._become("Show all lanes", self._lanes.all_shown())

    def _with_meant(self, act: Callable[[Row], None]) -> None:
        """Act on the lane under the mouse, else on that of the selected slice."""
        row = self.lane_at(self._view.overlay.mouse) if self._view.overlay.mouse is not None else None
        anchor = self._view.anchor
        if row is None and anchor is not None:
            variant = self._view.session.entries[anchor.entry].variant
            lane = int(variant.timeline.lane[anchor.row]) if variant is not None else -1
            row = next((r for r in self._rows(anchor.entry) if r.lane == lane), None)
        if row is not None:
            act(row)

    def _pin(self, row: Row) -> None:
        word = "Unpin" if row.label in self._lanes.pinned else "Pin"
        self._become(f"{word} lane {row.label}", self._lanes.toggled_pin(row.label))

    def _hide(self, row: Row) -> None:
        self._become(f"Hide lane {row.label}", self._lanes.without(row.label))

    def _step(self, row: Row, by: int) -> None:
        names = [r.label for r in self._rows(row.entry)]
        at = names.index(row.label) + by
        if 0 <= at < len(names):
            rest = [name for name in names if name != row.label]
            before = rest[at] if at < len(rest) else None
            self._become(f"Move lane {row.label}", self._lanes.moved(row.label, before, names))

    @property
    def _lanes(self) -> Lanes:
        return self._view.session.lanes

    def _become(self, label: str, lanes: Lanes) -> None:
        self._store.update(label, lanes=lanes)
