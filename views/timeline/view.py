"""The widget that shows the stack of timelines. What the mouse does lies in `mouse`, what keys do in `moves`."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QEvent, QObject, QPointF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QContextMenuEvent,
    QFontMetrics,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from engine.ir.graph import Ints
from engine.session import edits
from engine.session.session import Session
from engine.timeline.timeline import Category
from views import accessible
from views.accessible import Thing
from views.ports import Host, follow, running
from views.theme import GRID, axis_font, text_font
from views.timeline.accessible import description_of
from views.timeline.arranging import Arranging
from views.timeline.axis import TimeRange, Window
from views.timeline.budget_marks import Marked, mark_at
from views.timeline.critical import critical_rows
from views.timeline.gliding import Gliding
from views.timeline.hits import anchor_of, hit_at, row_at
from views.timeline.mouse import Mouse
from views.timeline.moves import Moves
from views.timeline.overlay import Hit, Overlay, paint_overlay
from views.timeline.paint_frame import paint_frame, paint_headings
from views.timeline.rectangles import Rectangles
from views.timeline.scene import AXIS, GUTTER, Scene
from views.timeline.search import Found
from views.timeline.stack import HEADER, Row, Stack, stack_of
from views.timeline.things import things_of


class TimelineView(QAbstractScrollArea):
    """All variants of the session over one time axis."""

    hovered = Signal(str)
    """What is under the mouse, in one line; empty when nothing is."""
    measured = Signal()
    """The measured range changed."""

    def __init__(self, host: Host, time_range: TimeRange, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self.range = time_range
        self.measure: tuple[int, int] | None = None
        """Measured range in picoseconds, earlier end first."""
        self.stack: Stack = Stack((), 0)
        self._stacked: tuple[str, ...] = ()
        """Keys of the entries of `stack`."""
        self._frame: QPixmap | None = None
        self._rectangles = Rectangles()
        self._over = Overlay()
        self.anchor: Hit | None = None
        """The selected slice at which arrows and steps begin."""
        self.moves = Moves(self)
        self._arrows = True
        self._critical = False
        self.lanes = Arranging(self, host.store)
        self._things: tuple[Thing, ...] | None = None
        self._mouse = Mouse(self, host.store)
        self._gliding = Gliding(self)
        self._gliding.moved.connect(self.redraw)
        self._to_reveal = ""
        self._doing = running(host.jobs())
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.viewport().installEventFilter(self)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalScrollBar().valueChanged.connect(self.redraw)
        self.setAccessibleName("Timelines")
        accessible.install()
        time_range.changed.connect(self.redraw)
        follow(self, host.store, self._session_changed)
        stop = host.watch_jobs(self._jobs_changed)
        self.destroyed.connect(lambda *_: stop())
        self._session_changed(host.store.state, frozenset({"entries"}))

    # What is shown

    @property
    def session(self) -> Session:
        return self._host.store.state

    @property
    def overlay(self) -> Overlay:
        """What lies over the frame right now."""
        return self._over

    def set_overlay(self, over: Overlay) -> None:
        self._over = over
        self.viewport().update()

    def sizeHint(self) -> QSize:
        return QSize(960, 480)

    def minimumSizeHint(self) -> QSize:
        return QSize(90 * GRID, 40 * GRID)

    def window_of(self) -> Window:
        """The shown time over the pixels of the lanes."""
        width = max(1, self.viewport().width() - GUTTER - 2 * GRID)
        return Window(self.range.start, max(1, self.range.span), float(GUTTER), float(width))

    def scene(self) -> Scene:
        """The inputs of the next frame."""
        font, small = text_font(), axis_font()
        return Scene(
            session=self.session,
            stack=self.stack,
            window=self.window_of(),
            theme=self._host.theme,
            width=self.viewport().width(),
            height=self.viewport().height(),
            scroll=self.verticalScrollBar().value(),
            font=font,
            small=small,
            metrics=QFontMetrics(font),
            small_metrics=QFontMetrics(small),
            rectangles=self._rectangles,
            gliding=self._gliding.positions(self.session),
            running=running(self._host.jobs()),
        )

    def redraw(self) -> None:
        """Throw the frame away; the next paint event makes a new one."""
        self._frame = None
        if self._things is not None:
            self._things = None
            accessible.tell_changed(self)
        self.viewport().update()

    def _jobs_changed(self) -> None:
        """Say what jobs are doing, where that stands in a heading; the frame stays."""
        doing = running(self._host.jobs())
        if doing != self._doing:
            self._doing = doing
            self.viewport().update()

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"entries", "active", "base", "lanes"}:
            self._restack(session)
        if "active" in changed:  # but not when a file was opened: that begins at the top
            self._to_reveal = "" if "reading" in changed else session.active
        if self._to_reveal == session.active and changed & {"active", "entries"}:
            self._reveal_active(session)
        if changed & {"selection", "entries", "active", "matches"}:
            self.anchor = anchor_of(session, self.anchor)
        if QAccessible.isActive():
            self.setAccessibleDescription(description_of(session))
        self.redraw()

    def _restack(self, session: Session) -> None:
        delta = f"Δ {session.active}−{session.base}" if self._has_delta(session) else ""
        before, keys = self.stack, tuple(entry.key for entry in session.entries)
        self.stack = stack_of(session.entries, delta=delta, lanes=session.lanes)
        scroll = self.verticalScrollBar().value()
        if keys == self._stacked and scroll:  # at the top one stays at the top
            scroll = self.stack.kept(before, scroll, self.verticalScrollBar().pageStep())
        self._stacked = keys
        ends = [e.variant.timeline.makespan for e in session.entries if e.variant is not None]
        self.range.set_limit(max(ends, default=1_000_000))
        self._gliding.follow(session, visible=self.isVisible())
        self._update_scroll()
        self.verticalScrollBar().setValue(scroll)
        self._over = replace(self._over, hover=None, card=(), lit=())
        self.hovered.emit("")
        if not session.entries:
            self.set_measure(None)

    def reveal(self, key: str) -> None:
        """Scroll as little as shows the header of an entry, and as much of its lanes as there is room for."""
        number = next((n for n, entry in enumerate(self.session.entries) if entry.key == key), None)
        if number is not None:
            top, bottom = self.stack.span_of(number)
            bar = self.verticalScrollBar()
            bar.setValue(min(top, max(bar.value(), bottom - bar.pageStep())))

    @staticmethod
    def _has_delta(session: Session) -> bool:
        base, active = session.base_entry, session.active_entry
        if base is None or active is None or base is active:
            return False
        return base.variant is not None and active.variant is not None and active.variant.compares_with(base.variant)

    def _update_scroll(self) -> None:
        bar = self.verticalScrollBar()
        page = max(1, self.viewport().height() - AXIS)
        bar.setPageStep(page)
        bar.setSingleStep(HEADER)
        bar.setRange(0, max(0, self.stack.height - page))

    def reveal_active(self) -> None:
        """Bring the active entry into sight, and keep it there while results come above it."""
        self._to_reveal = self.session.active
        self._reveal_active(self.session)

    def _reveal_active(self, session: Session) -> None:
        """Scroll to the active entry where next to nothing of it is seen: it may have been added at the end."""
        number = next((n for n, e in enumerate(session.entries) if e.key == session.active), None)
        if number is None:
            return
        bar = self.verticalScrollBar()
        top, bottom = self.stack.span_of(number)
        if top > bar.value() + bar.pageStep() - 2 * HEADER or bottom < bar.value() + 2 * HEADER:
            bar.setValue(min(top, max(0, bottom - bar.pageStep())) if top > bar.value() else top)
        # What is above it grows as results come.
        self._to_reveal = session.active if any(e.pending for e in session.entries[: number + 1]) else ""

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        scene = self.scene()
        if self._frame is None:
            ratio = self.devicePixelRatioF()
            frame = QPixmap(self.viewport().size() * ratio)
            frame.setDevicePixelRatio(ratio)
            painter = QPainter(frame)
            try:
                paint_frame(painter, scene)
            finally:
                painter.end()  # Qt aborts over a painter that an error left active
            self._frame = frame
        painter = QPainter(self.viewport())
        try:
            painter.drawPixmap(0, 0, self._frame)
            paint_headings(painter, scene)
            paint_overlay(painter, scene, self._full_overlay())
        finally:
            painter.end()

    def paint_all(self, painter: QPainter) -> None:
        """Draw everything as shapes, for pictures that can be scaled."""
        scene = self.scene()
        paint_frame(painter, scene)
        paint_headings(painter, scene)
        paint_overlay(painter, scene, self._full_overlay())

    def _full_overlay(self) -> Overlay:
        return replace(
            self._over,
            measured=self.measure,
            anchor=self.anchor,
            operands=self._arrows,
            users=self._arrows,
            critical=self._critical_rows(),
        )

    def _critical_rows(self) -> tuple[tuple[int, Ints], ...]:
        if not self._critical:
            return ()
        return tuple(
            (number, critical_rows(entry.variant))
            for number, entry in enumerate(self.session.entries)
            if entry.variant is not None and not entry.collapsed
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._update_scroll()
        self.redraw()
        super().resizeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.redraw()
        super().changeEvent(event)

    # Mouse

    def row_at(self, y: float) -> tuple[Row, bool] | None:
        return row_at(self.stack, self.verticalScrollBar().value(), y)

    def mark_at(self, position: QPointF) -> Marked | None:
        """The mark of a reached budget under a point of the widget."""
        return mark_at(self.session, self.stack, self.verticalScrollBar().value(), self.window_of(), position)

    def hit_at(self, position: QPointF) -> Hit | None:
        """The slice, gap or frame under a point of the widget."""
        return hit_at(self.session, self.stack, self.verticalScrollBar().value(), self.window_of(), position)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._mouse.press(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._mouse.move(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._mouse.release(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self._mouse.double_click(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        self._mouse.wheel(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The mouse leaves the viewport or rests on it, which Qt does not pass on to the scroll area."""
        if watched is self.viewport() and event.type() == QEvent.Type.Leave:
            self._mouse.leave()
        if watched is self.viewport() and event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            self._mouse.rest(event)
            return True
        return super().eventFilter(watched, event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.lanes.open_menu(self.viewport().mapFrom(self, event.pos()))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Keys are actions of the table; only Escape is ours: it ends what the mouse began."""
        if event.key() == Qt.Key.Key_Escape and (self.measure is not None or self.session.selection):
            self.set_measure(None)
            self.select(None)
            return
        event.ignore()

    # What actions do

    def select(self, hit: Hit | None, *, add: bool = False) -> None:
        """Select the instruction of a slice (of a gap: the transfer it waits for), or nothing."""
        session = self.session
        if hit is None:
            self.anchor = None
            self._host.store.become("Select", edits.selected(session, "", ()))
            return
        entry = session.entries[hit.entry]
        if entry.variant is None:
            return
        timeline = entry.variant.timeline
        gap = timeline.category[hit.row] == Category.EXPOSED
        instruction = int(timeline.waits_for[hit.row] if gap else timeline.instruction[hit.row])
        if instruction < 0:
            return
        state = edits.selected(session, entry.key, (instruction,), add=add)
        if entry.key != session.active:
            state = edits.activated(state, entry.key)
        self.anchor = hit
        self._host.store.become(f"Activate {entry.key}", state)
        self.anchor = hit if self.session.selection else None
        self.viewport().update()
        accessible.tell_focus(self)

    def go_to(self, hit: Hit) -> None:
        """Select a slice and zoom to it."""
        self.select(hit)
        self.moves.zoom_to(hit)

    def activate(self, key: str) -> None:
        """Make an entry the active one."""
        self._host.store.become(f"Activate {key}", edits.activated(self.session, key))

    def toggle_arrows(self) -> None:
        self._arrows = not self._arrows
        self.viewport().update()

    def toggle_critical(self) -> None:
        """Show or hide the critical path of every variant."""
        self._critical = not self._critical
        self.viewport().update()

    def set_measure(self, measured: tuple[int, int] | None) -> None:
        """Measure a range of time, or stop measuring."""
        if measured != self.measure:
            self.measure = measured
            self.measured.emit()
            self.viewport().update()

    def show_found(self, found: Found | None) -> None:
        """Tick search hits on the axis."""
        self._over = replace(self._over, found=found.times if found is not None and len(found.rows) else None)
        self.viewport().update()

    # For the platform's accessibility interface: see views.accessible

    def things(self) -> tuple[Thing, ...]:
        if self._things is None:
            self._things = things_of(self.scene(), self.select, self.go_to, self.activate)
        return self._things

    def surface(self) -> QWidget:
        return self.viewport()
