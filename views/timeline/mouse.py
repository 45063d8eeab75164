"""What mouse and wheel do to the timelines: point, select, measure, pan, zoom, and work headers and lanes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QHelpEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QToolTip

from engine.session import edits
from engine.session.session import Session
from engine.session.store import Store
from views.timeline.budget_marks import budget_marks, card_of_mark, lit_by_mark
from views.timeline.cards import card_of, shares_at
from views.timeline.moves import PAN, ZOOM
from views.timeline.overlay import Hit
from views.timeline.paint_delta import card_of_lead
from views.timeline.paint_header import FOLD, PIN
from views.timeline.scene import GUTTER
from views.timeline.stack import HEADER, RowKind
from views.timeline.tips import tip_at

if TYPE_CHECKING:
    from views.timeline.view import TimelineView

_DRAG = 4
"""Pixels a press may move and still be a click."""


class Mouse:
    """What a button that is down has begun, and what the pointer is over."""

    def __init__(self, view: TimelineView, store: Store[Session]) -> None:
        self._view = view
        self._store = store
        self._press: QPointF | None = None
        """Where a click or a measurement began."""
        self._panning: int | None = None
        """The time that stays under the pointer."""

    # Buttons

    def press(self, event: QMouseEvent) -> None:
        view, position = self._view, event.position()
        middle = event.button() == Qt.MouseButton.MiddleButton
        shifted = event.button() == Qt.MouseButton.LeftButton and event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if middle or shifted:
            self._panning = view.window_of().time_at(position.x())
            view.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
            return
        if event.button() != Qt.MouseButton.LeftButton:
            return
        found = view.row_at(position.y())
        if found is not None and found[1]:
            self._press_header(found[0].entry, position)
        elif view.lanes.press(position):
            view.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
        elif position.x() >= GUTTER:
            self._press = position

    def _press_header(self, number: int, position: QPointF) -> None:
        session = self._view.session
        key = session.entries[number].key
        if position.x() < FOLD:
            self._store.become(f"Fold or open {key}", edits.folded(session, key))
        elif position.x() > self._view.viewport().width() - PIN:
            self._store.become(f"Compare with {key}", edits.based(session, key))
        else:
            self._view.activate(key)

    def move(self, event: QMouseEvent) -> None:
        view, position = self._view, event.position()
        if self._panning is not None:
            view.range.show(
                self._panning - (view.window_of().time_at(position.x()) - view.range.start), view.range.span
            )
            return
        if view.lanes.carries:
            view.set_overlay(replace(view.overlay, drop=view.lanes.drop_line(position)))
            return
        if self._press is not None and abs(position.x() - self._press.x()) > _DRAG:
            window = view.window_of()
            ends = sorted(max(0, window.time_at(x)) for x in (self._press.x(), position.x()))
            view.set_measure((ends[0], ends[1]))
        self._hover(position)

    def release(self, event: QMouseEvent) -> None:
        view, position = self._view, event.position()
        if self._panning is not None:
            self._panning = None
            view.viewport().setCursor(Qt.CursorShape.ArrowCursor)
            return
        if view.lanes.carries:
            view.lanes.release(position)
            view.set_overlay(replace(view.overlay, drop=None))
            self._hover(position)
            return
        press, self._press = self._press, None
        if press is None or event.button() != Qt.MouseButton.LeftButton:
            return
        if abs(position.x() - press.x()) <= _DRAG:
            view.set_measure(None)
            add = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
            view.select(self._what_is_meant(position), add=add)
        self._hover(position)

    def _what_is_meant(self, position: QPointF) -> Hit | None:
        """The slice under a point, or the transfer that the mark under it is about."""
        marked = self._view.mark_at(position)
        variant = self._view.session.entries[marked.entry].variant if marked is not None else None
        if marked is None or variant is None:
            return self._view.hit_at(position)
        return Hit(marked.entry, int(budget_marks(variant).row[marked.number]))

    def double_click(self, event: QMouseEvent) -> None:
        found = self._view.row_at(event.position().y())
        if found is not None and found[1]:
            self._press_header(found[0].entry, event.position())
            return
        hit = self._view.hit_at(event.position())
        if hit is not None:
            self._view.go_to(hit)

    # Wheel

    def wheel(self, event: QWheelEvent) -> None:
        view, delta, modifiers = self._view, event.angleDelta(), event.modifiers()
        if modifiers & Qt.KeyboardModifier.ControlModifier:
            notches = (delta.y() or delta.x()) / 120.0
            view.range.zoom(ZOOM**notches, view.window_of().time_at(event.position().x()))
        elif modifiers & Qt.KeyboardModifier.ShiftModifier or abs(delta.x()) > abs(delta.y()):
            view.range.pan(-(delta.x() or delta.y()) / 120.0 * PAN)
        else:
            bar = view.verticalScrollBar()
            bar.setValue(bar.value() - round(delta.y() / 120.0 * 2 * HEADER))
        event.accept()

    # Pointer

    def _hover(self, position: QPointF) -> None:
        view = self._view
        hit = view.hit_at(position) if self._press is None else None
        inside = position.x() >= GUTTER and position.y() >= 0
        window = view.window_of()
        card: tuple[str, ...] = ()
        if hit is not None:
            card = (*card_of(view.session, hit, window.time_at(position.x())),)
            card += shares_at(view.session, hit, window, position.x())
        marked = view.mark_at(position) if self._press is None else None
        if marked is not None:
            card = card_of_mark(view.session, marked)
        found = view.row_at(position.y())
        if found is not None and found[0].kind == RowKind.DELTA and inside and self._press is None:
            card = card_of_lead(view.session, view.window_of().time_at(position.x()))
        lit = tuple(lit_by_mark(view.session, marked)) if marked is not None else ()
        cursor = position.x() if inside else None
        over = replace(view.overlay, hover=hit, cursor=cursor, mouse=position, card=card, lit=lit)
        view.hovered.emit(card[0] if card else "")
        header = found is not None and found[1]
        view.viewport().setCursor(self._cursor_over(position, header=header or marked is not None))
        view.set_overlay(over)

    def _cursor_over(self, position: QPointF, *, header: bool) -> Qt.CursorShape:
        if header:
            return Qt.CursorShape.PointingHandCursor
        named = position.x() < GUTTER and self._view.lanes.lane_at(position) is not None
        return Qt.CursorShape.OpenHandCursor if named else Qt.CursorShape.ArrowCursor

    def leave(self) -> None:
        """The pointer is elsewhere."""
        view = self._view
        view.set_overlay(replace(view.overlay, hover=None, cursor=None, mouse=None, card=(), lit=()))
        view.hovered.emit("")

    def rest(self, event: QHelpEvent) -> None:
        """The pointer has not moved for a while."""
        QToolTip.showText(event.globalPos(), tip_at(self._view.scene(), QPointF(event.pos())), self._view)
