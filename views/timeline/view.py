"""The widget that shows the stack of timelines and answers mouse, wheel and keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QSize, Qt, QVariantAnimation, Signal
from PySide6.QtGui import (
    QAccessible,
    QFontMetrics,
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
from engine.session.matching import shown_in
from engine.session.session import Session
from engine.timeline.timeline import Category
from views.ports import Host, follow, running
from views.theme import GRID, axis_font, motion_allowed, text_font
from views.timeline.accessible import description_of
from views.timeline.arrows import neighbours
from views.timeline.axis import TimeRange, Window
from views.timeline.bands import bands_of
from views.timeline.cards import card_of
from views.timeline.critical import critical_rows
from views.timeline.glide import MILLISECONDS, Glide, worthwhile
from views.timeline.overlay import Hit, Overlay, paint_overlay
from views.timeline.paint_frame import paint_frame
from views.timeline.paint_header import FOLD, PIN
from views.timeline.rectangles import Rectangles
from views.timeline.scene import AXIS, GUTTER, Positions, Scene, rows_of
from views.timeline.search import Found
from views.timeline.stack import FRAME, HEADER, Row, RowKind, Stack, stack_of

_DRAG = 4
"""Pixels a press may move and still be a click."""
_ZOOM = 1.25
_PAN = 0.15


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
        self._stack: Stack = Stack((), 0)
        self._frame: QPixmap | None = None
        self._rectangles = Rectangles()
        self._over = Overlay()
        self._anchor: Hit | None = None
        self._arrows = True
        self._critical = False
        self._hidden: frozenset[str] = frozenset()
        self._press: QPointF | None = None
        self._panning: int | None = None
        self._gliding: dict[str, Glide] = {}
        self._seen: dict[str, object] = {}
        self._glide_part = 1.0
        self._animation = QVariantAnimation(self)
        self._animation.setStartValue(0.0)
        self._animation.setEndValue(1.0)
        self._animation.setDuration(MILLISECONDS)
        self._animation.valueChanged.connect(self._glided)
        self._animation.finished.connect(self._landed)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalScrollBar().valueChanged.connect(self.redraw)
        self.setAccessibleName("Timelines")
        time_range.changed.connect(self.redraw)
        follow(self, host.store, self._session_changed)
        stop = host.watch_jobs(self.redraw)
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

    def sizeHint(self) -> QSize:  # noqa: N802
        return QSize(960, 480)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
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
            stack=self._stack,
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
            gliding=self._positions(),
            running=running(self._host.jobs()),
        )

    def redraw(self) -> None:
        """Throw the frame away; the next paint event makes a new one."""
        self._frame = None
        self.viewport().update()

    def _positions(self) -> dict[str, Positions]:
        return {key: glide.at(self._glide_part) for key, glide in self._gliding.items()}

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"entries", "active", "base"}:
            self._restack(session)
        if changed & {"selection"}:
            self._anchor_selection(session)
        if QAccessible.isActive():
            self.setAccessibleDescription(description_of(session))
        self.redraw()

    def _restack(self, session: Session) -> None:
        delta = f"Δ {session.active}−{session.base}" if self._has_delta(session) else ""
        self._stack = stack_of(session.entries, delta=delta, hidden=self._hidden)
        ends = [e.variant.timeline.makespan for e in session.entries if e.variant is not None]
        self.range.set_limit(max(ends, default=1_000_000))
        self._start_glide(session)
        self._update_scroll()
        self._over = replace(self._over, hover=None, card=())
        if not session.entries:
            self.set_measure(None)

    @staticmethod
    def _has_delta(session: Session) -> bool:
        base, active = session.base_entry, session.active_entry
        if base is None or active is None or base is active:
            return False
        return base.variant is not None and active.variant is not None

    def _start_glide(self, session: Session) -> None:
        moved = False
        for entry in session.entries:
            old, new = self._seen.get(entry.key), entry.variant
            if new is None or old is new:
                continue
            self._seen[entry.key] = new
            before = getattr(old, "timeline", None)
            if before is not None and motion_allowed() and self.isVisible() and worthwhile(before, new.timeline):
                self._gliding[entry.key] = Glide(before, new.timeline)
                moved = True
        keys = {e.key for e in session.entries}
        self._seen = {key: value for key, value in self._seen.items() if key in keys}
        if moved:
            self._animation.stop()
            self._animation.start()

    def _glided(self, value: float) -> None:
        self._glide_part = value
        self.redraw()

    def _landed(self) -> None:
        self._gliding.clear()
        self._glide_part = 1.0
        self.redraw()

    def _update_scroll(self) -> None:
        bar = self.verticalScrollBar()
        page = max(1, self.viewport().height() - AXIS)
        bar.setPageStep(page)
        bar.setSingleStep(HEADER)
        bar.setRange(0, max(0, self._stack.height - page))

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        scene = self.scene()
        if self._frame is None:
            ratio = self.devicePixelRatioF()
            frame = QPixmap(self.viewport().size() * ratio)
            frame.setDevicePixelRatio(ratio)
            painter = QPainter(frame)
            paint_frame(painter, scene)
            painter.end()
            self._frame = frame
        painter = QPainter(self.viewport())
        painter.drawPixmap(0, 0, self._frame)
        paint_overlay(painter, scene, self._full_overlay())
        painter.end()

    def paint_all(self, painter: QPainter) -> None:
        """Draw everything as shapes, for pictures that can be scaled."""
        scene = self.scene()
        paint_frame(painter, scene)
        paint_overlay(painter, scene, self._full_overlay())

    def _full_overlay(self) -> Overlay:
        return replace(
            self._over,
            measured=self.measure,
            anchor=self._anchor,
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

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        self._update_scroll()
        self.redraw()
        super().resizeEvent(event)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.redraw()
        super().changeEvent(event)

    # Mouse

    def _row_at(self, y: float) -> tuple[Row, bool] | None:
        """The row at a height of the widget, and whether it is a header (which may stick)."""
        if y < AXIS:
            return None
        scroll = self.verticalScrollBar().value()
        row = self._stack.at(y - AXIS + scroll)
        number = row.entry if row is not None else -1
        if number >= 0 and y < AXIS + HEADER:
            top, bottom = self._stack.span_of(number)
            if top < scroll and bottom - scroll >= HEADER:
                return self._stack.of(number)[0], True
        return None if row is None else (row, row.kind == RowKind.HEADER)

    def hit_at(self, position: QPointF) -> Hit | None:
        """The slice, gap or frame under a point of the widget."""
        found = self._row_at(position.y())
        if found is None or found[1] or position.x() < GUTTER or found[0].lane < 0:
            return None
        row = found[0]
        variant = self.session.entries[row.entry].variant
        if variant is None:
            return None
        window = self.window_of()
        time, slack = window.time_at(position.x()), window.per_pixel
        bands = bands_of(variant.timeline)[row.lane]
        depth = self._frame_depth(row, position.y())
        if depth is not None:
            at = bands.frames[min(depth, len(bands.frames) - 1)].at(time, slack)
            return None if at is None else Hit(row.entry, at)
        for band in (bands.gaps, bands.slices):
            exact = band.at(time)
            if exact is not None:
                return Hit(row.entry, exact)
        for band in (bands.slices, bands.gaps):
            near = band.at(time, slack)
            if near is not None:
                return Hit(row.entry, near)
        return None

    def _frame_depth(self, row: Row, y: float) -> int | None:
        inside = y - AXIS + self.verticalScrollBar().value() - row.top
        return int(inside // FRAME) if inside < row.frames * FRAME else None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        position = event.position()
        if self._panning is not None:
            self.range.show(
                self._panning - (self.window_of().time_at(position.x()) - self.range.start), self.range.span
            )
            return
        if self._press is not None and abs(position.x() - self._press.x()) > _DRAG:
            window = self.window_of()
            ends = sorted(max(0, window.time_at(x)) for x in (self._press.x(), position.x()))
            self.set_measure((ends[0], ends[1]))
        self._hover(position)

    def _hover(self, position: QPointF) -> None:
        hit = self.hit_at(position) if self._press is None else None
        inside = position.x() >= GUTTER and position.y() >= 0
        card = card_of(self.session, hit, self.window_of().time_at(position.x())) if hit is not None else ()
        self._over = replace(
            self._over, hover=hit, cursor=position.x() if inside else None, mouse=position, card=tuple(card)
        )
        self.hovered.emit(card[0] if card else "")
        found = self._row_at(position.y())
        header = found is not None and found[1]
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if header else Qt.CursorShape.ArrowCursor)
        self.viewport().update()

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802
        self._over = replace(self._over, hover=None, cursor=None, mouse=None, card=())
        self.hovered.emit("")
        self.viewport().update()
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        position = event.position()
        middle = event.button() == Qt.MouseButton.MiddleButton
        shifted = event.button() == Qt.MouseButton.LeftButton and event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if middle or shifted:
            self._panning = self.window_of().time_at(position.x())
            self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
            return
        if event.button() != Qt.MouseButton.LeftButton:
            return
        found = self._row_at(position.y())
        if found is not None and found[1]:
            self._press_header(found[0].entry, position)
        elif position.x() >= GUTTER:
            self._press = position

    def _press_header(self, number: int, position: QPointF) -> None:
        store, key = self._host.store, self.session.entries[number].key
        if position.x() < FOLD:
            store.become(f"Fold or open {key}", edits.folded(self.session, key))
        elif position.x() > self.viewport().width() - PIN:
            store.become(f"Compare with {key}", edits.based(self.session, key))
        else:
            store.become(f"Activate {key}", edits.activated(self.session, key))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        if self._panning is not None:
            self._panning = None
            self.viewport().setCursor(Qt.CursorShape.ArrowCursor)
            return
        press, self._press = self._press, None
        if press is None or event.button() != Qt.MouseButton.LeftButton:
            return
        if abs(event.position().x() - press.x()) <= _DRAG:
            self.set_measure(None)
            add = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
            self.select(self.hit_at(event.position()), add=add)
        self._hover(event.position())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        found = self._row_at(event.position().y())
        if found is not None and found[1]:
            self._press_header(found[0].entry, event.position())
            return
        hit = self.hit_at(event.position())
        if hit is not None:
            self.select(hit)
            self.zoom_to(hit)

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        delta = event.angleDelta()
        modifiers = event.modifiers()
        if modifiers & Qt.KeyboardModifier.ControlModifier:
            notches = (delta.y() or delta.x()) / 120.0
            self.range.zoom(_ZOOM**notches, self.window_of().time_at(event.position().x()))
        elif modifiers & Qt.KeyboardModifier.ShiftModifier or abs(delta.x()) > abs(delta.y()):
            self.range.pan(-(delta.x() or delta.y()) / 120.0 * _PAN)
        else:
            bar = self.verticalScrollBar()
            bar.setValue(bar.value() - round(delta.y() / 120.0 * 2 * HEADER))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
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
            self._anchor = None
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
        self._anchor = hit
        self._host.store.become(f"Activate {entry.key}", state)
        self._anchor = hit if self.session.selection else None
        self.viewport().update()

    def _anchor_selection(self, session: Session) -> None:
        """Arrows start at the slice that was clicked; after a selection made elsewhere, at its first slice."""
        if self._anchor is not None and self._anchor.entry < len(session.entries):
            variant = session.entries[self._anchor.entry].variant
            if variant is not None and self._anchor.row < len(variant.timeline):
                timeline = variant.timeline
                ids = {int(timeline.instruction[self._anchor.row]), int(timeline.waits_for[self._anchor.row])}
                if ids & set(session.selection.instructions):
                    return
        self._anchor = self._first_slice(session)

    def _first_slice(self, session: Session) -> Hit | None:
        number = next((n for n, e in enumerate(session.entries) if e.key == session.active), None)
        if number is None or not session.selection:
            return None
        variant = session.entries[number].variant
        if variant is None:
            return None
        rows = rows_of(variant.timeline, shown_in(session, session.active))
        rows = rows[variant.timeline.category[rows] != Category.EXPOSED]
        return Hit(number, int(rows[np.argmin(variant.timeline.start[rows])])) if len(rows) else None

    def zoom_in(self) -> None:
        self.range.zoom(_ZOOM**2, self._zoom_centre())

    def zoom_out(self) -> None:
        self.range.zoom(_ZOOM**-2, self._zoom_centre())

    def _zoom_centre(self) -> int:
        if self._over.cursor is not None:
            return self.window_of().time_at(self._over.cursor)
        return self.range.start + self.range.span // 2

    def pan_left(self) -> None:
        self.range.pan(-_PAN)

    def pan_right(self) -> None:
        self.range.pan(_PAN)

    def show_all(self) -> None:
        self.range.fit()

    def zoom_to(self, hit: Hit) -> None:
        """Fit a slice into the middle fifth of the view."""
        variant = self.session.entries[hit.entry].variant
        if variant is None:
            return
        start, duration = int(variant.timeline.start[hit.row]), int(variant.timeline.duration[hit.row])
        self.range.show(start - 2 * max(duration, 200), 5 * max(duration, 200))

    def focus_selection(self) -> None:
        """Centre the selection; when it is in the centre already, fit it."""
        hit = self._anchor
        variant = self.session.entries[hit.entry].variant if hit is not None else None
        if hit is None or variant is None:
            return
        start, duration = int(variant.timeline.start[hit.row]), int(variant.timeline.duration[hit.row])
        middle = max(0, start + duration // 2 - self.range.span // 2)
        centred = abs(middle - self.range.start) <= self.range.span // 100
        self.reveal(hit)
        if centred:
            self.zoom_to(hit)
        else:
            self.range.show(middle, self.range.span)

    def reveal(self, hit: Hit) -> None:
        """Scroll so that a slice is in view, sideways and up or down."""
        variant = self.session.entries[hit.entry].variant
        if variant is None:
            return
        start = int(variant.timeline.start[hit.row])
        self.range.reveal(start, start + int(variant.timeline.duration[hit.row]))
        lane = int(variant.timeline.lane[hit.row])
        row = next((r for r in self._stack.of(hit.entry) if r.lane == lane), None)
        bar = self.verticalScrollBar()
        if row is not None and not bar.value() + HEADER <= row.top <= bar.value() + bar.pageStep() - row.height:
            bar.setValue(row.top - HEADER - bar.pageStep() // 3)

    def step_slice(self, step: int) -> None:
        """Select the next or previous slice of the lane."""
        hit = self._anchor
        variant = self.session.entries[hit.entry].variant if hit is not None else None
        if hit is None or variant is None:
            self._select_first()
            return
        timeline = variant.timeline
        bands = bands_of(timeline)[int(timeline.lane[hit.row])]
        band = bands.gaps if timeline.category[hit.row] == Category.EXPOSED else bands.slices
        row = band.next_to(hit.row, step)
        if row is not None:
            self._go(Hit(hit.entry, row))

    def _select_first(self) -> None:
        for number, entry in enumerate(self.session.entries):
            if entry.key == self.session.active and entry.variant is not None and len(entry.variant.timeline):
                bands = bands_of(entry.variant.timeline)
                first = next((b.slices for b in bands if len(b.slices)), None)
                if first is not None:
                    self._go(Hit(number, int(first.slices[0])))

    def _go(self, hit: Hit) -> None:
        self.select(hit)
        self.reveal(hit)

    def follow_edges(self, *, forward: bool) -> None:
        """Select the first user (or operand) of the selected instruction."""
        hit = self._anchor
        variant = self.session.entries[hit.entry].variant if hit is not None else None
        if hit is None or variant is None:
            return
        timeline = variant.timeline
        ids = neighbours(variant, int(timeline.instruction[hit.row]), forward=forward)
        here = int(timeline.start[hit.row])
        for instruction in ids:
            rows = rows_of(timeline, (instruction,))
            rows = rows[timeline.category[rows] != Category.EXPOSED]
            if len(rows):
                distance = np.abs(timeline.start[rows] - here)
                self._go(Hit(hit.entry, int(rows[np.argmin(distance)])))
                return

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

    def measure_selection(self) -> None:
        """Measure from the first start to the last end of what is selected."""
        session = self.session
        entry = session.active_entry
        if entry is None or entry.variant is None:
            return
        timeline = entry.variant.timeline
        rows = rows_of(timeline, shown_in(session, entry.key))
        if len(rows):
            start = timeline.start[rows]
            self.set_measure((int(start.min()), int((start + timeline.duration[rows]).max())))

    def mark_time(self) -> int:
        """Where a new mark goes: the mouse, else the start of the selection, else the middle of the view."""
        if self._over.cursor is not None:
            return self.window_of().time_at(self._over.cursor)
        if self._anchor is not None:
            variant = self.session.entries[self._anchor.entry].variant
            if variant is not None:
                return int(variant.timeline.start[self._anchor.row])
        return self.range.start + self.range.span // 2

    def show_found(self, found: Found | None) -> None:
        """Tick search hits on the axis."""
        self._over = replace(self._over, found=found.times if found is not None and len(found.rows) else None)
        self.viewport().update()

    def go_to(self, entry_key: str, row: int) -> None:
        """Select a slice and bring it into view."""
        number = next((n for n, e in enumerate(self.session.entries) if e.key == entry_key), None)
        if number is not None:
            self._go(Hit(number, row))

    def hide_lane_under_mouse(self) -> None:
        """Fold the lane under the mouse into the idle line, in every variant."""
        found = self._row_at(self._over.mouse.y()) if self._over.mouse is not None else None
        if found is not None and found[0].lane >= 0:
            self._hidden = self._hidden | {found[0].label}
            self._restack(self.session)
            self.redraw()

    def show_all_lanes(self) -> None:
        self._hidden = frozenset()
        self._restack(self.session)
        self.redraw()
