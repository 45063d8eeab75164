"""Two timelines, as it is and as another decision would make it, moved so that the place of the decision is in line."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from PySide6.QtCore import QLineF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.passes.fusion import Fusion
from engine.quantities import time_text
from engine.session.lookup import lookup
from engine.session.session import Entry, Session
from engine.session.variant import Variant
from engine.timeline.timeline import Category, Timeline
from views.ports import Host
from views.theme import GRID, axis_font, colour, text_font
from views.timeline.axis import Window
from views.timeline.bands import bands_of
from views.timeline.paint_lanes import elided, paint_lane
from views.timeline.rectangles import Rectangles
from views.timeline.scene import AXIS, Scene, rows_of
from views.timeline.stack import GAP, Row, RowKind, Stack, stack_of

_GUTTER = 22 * GRID
_TITLE = 6 * GRID
_BEFORE = 0.55
"""Part of the width that lies before the place."""


@dataclass(frozen=True, eq=False)
class Strip:
    """One timeline, and where the decision takes effect in it. Picoseconds."""

    title: str
    variant: Variant
    place: int


def place_of(variant: Variant, fusion: Fusion) -> int:
    """When a decision's einsum begins: the run of it that waits longest, else its first. 0 where it never runs."""
    timeline = variant.timeline
    instruction = _standing_for(variant, fusion)
    rows = rows_of(timeline, (instruction,)) if instruction >= 0 else np.empty(0, np.int64)
    rows = rows[timeline.category[rows] != Category.EXPOSED]
    if not len(rows):
        return 0
    starts = timeline.start[rows]
    gaps = np.flatnonzero(timeline.category == Category.EXPOSED)
    ends = timeline.start[gaps] + timeline.duration[gaps]
    waited = np.array([int(timeline.duration[gaps[ends == start]].sum()) for start in starts.tolist()])
    return int(starts[int(np.argmax(waited))])


def span_around(now: Variant, fusion: Fusion) -> int:
    """A stretch of time that shows a decision and what it waits for, in picoseconds."""
    timeline, there = now.timeline, lookup(now)
    ids = {fusion.instruction}
    gaps = np.flatnonzero(timeline.category == Category.EXPOSED)
    for gap in gaps.tolist():
        if there.name(int(timeline.instruction[gap])) in fusion.waits_for:
            ids.update((int(timeline.instruction[gap]), int(timeline.waits_for[gap])))
    rows = rows_of(timeline, frozenset(ids))
    longest = int(timeline.duration[rows].max()) if len(rows) else timeline.makespan // 8
    return max(1_000, min(6 * longest, timeline.makespan))


def _standing_for(variant: Variant, fusion: Fusion) -> int:
    """Id of what holds the decision's einsum in a variant, which may have decided otherwise; -1 where nothing does."""
    key = fusion.einsum or fusion.name
    for other in variant.fusions:
        if key in (other.einsum, other.name):
            return other.instruction
    found = lookup(variant).by_name(key)
    return found if found is not None else -1


def _lanes(stack: Stack, entry: int, timeline: Timeline, start: int, stop: int) -> Stack:
    """The lanes of one entry that have anything in a stretch of time, moved to the top."""
    rows: list[Row] = []
    top = 0
    for row in stack.of(entry):
        if row.kind not in (RowKind.COMPUTE, RowKind.TRANSFER):
            continue
        slices = bands_of(timeline)[row.lane].slices
        if row.kind == RowKind.COMPUTE or np.any((slices.start < stop) & (slices.end > start)):
            rows.append(replace(row, top=top))
            top += row.height + GAP
    return Stack(tuple(rows), top)


class Strips(QWidget):
    """Painted with the timelines' own lanes. Hidden while there is nothing to compare."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self.strips: tuple[Strip, ...] = ()
        self._stacks: tuple[Stack, ...] = ()
        self._span = 0
        self._rectangles = Rectangles()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("timelines with and without the other decision")
        self.hide()

    def compare(self, fusion: Fusion, now: Variant, then: Variant, title: str) -> None:
        """Show `now` over `then`, in line where `fusion` begins."""
        self.strips = (Strip("now", now, place_of(now, fusion)), Strip(title, then, place_of(then, fusion)))
        self._span = span_around(now, fusion)
        entries = self._session().entries
        stack, starts = stack_of(entries), [self._start(strip) for strip in self.strips]
        self._stacks = tuple(
            _lanes(stack, n, self.strips[n].variant.timeline, start, start + self._span)
            for n, start in enumerate(starts)
        )
        self.setFixedHeight(self.sizeHint().height())
        self.setAccessibleDescription(f"{time_text(self._span)} around the decision, now and {title}")
        self.show()
        self.update()

    def clear(self) -> None:
        self.strips = ()
        self.hide()

    def sizeHint(self) -> QSize:
        return QSize(80 * GRID, sum(stack.height + _TITLE for stack in self._stacks))

    def window_of(self, strip: Strip) -> Window:
        """The part of a timeline that its strip shows: the place is at the same pixel in both."""
        width = float(max(1, self.width() - _GUTTER))
        return Window(self._start(strip), self._span, float(_GUTTER), width)

    def _start(self, strip: Strip) -> int:
        return strip.place - round(self._span * _BEFORE)

    def _session(self) -> Session:
        entries = (
            Entry(str(n), s.variant.plan, s.variant.machine, variant=s.variant) for n, s in enumerate(self.strips)
        )
        return Session(entries=tuple(entries))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        theme = self._host.theme
        painter.fillRect(self.rect(), colour(theme.base))
        session, top = self._session(), 0
        for strip, stack in zip(self.strips, self._stacks, strict=True):
            scene = self._scene(session, strip, stack)
            self._paint_title(painter, strip, top, scene)
            top += _TITLE
            painter.save()
            painter.translate(0, top)
            self._paint_lanes(painter, scene)
            painter.restore()
            top += stack.height
        self._paint_place(painter)
        painter.end()

    def _scene(self, session: Session, strip: Strip, stack: Stack) -> Scene:
        font, small = text_font(), axis_font()
        return Scene(
            session=session,
            stack=stack,
            window=self.window_of(strip),
            theme=self._host.theme,
            width=self.width(),
            height=stack.height,
            scroll=AXIS,
            font=font,
            small=small,
            metrics=QFontMetrics(font),
            small_metrics=QFontMetrics(small),
            rectangles=self._rectangles,
        )

    def _paint_title(self, painter: QPainter, strip: Strip, top: int, scene: Scene) -> None:
        painter.setFont(scene.small)
        painter.setPen(colour(scene.theme.text))
        timeline = strip.variant.timeline
        figures = f"{strip.title}:  {time_text(timeline.makespan)}, {time_text(strip.variant.metrics.exposed)} exposed"
        text = scene.small_metrics.elidedText(figures, Qt.TextElideMode.ElideMiddle, self.width())
        painter.drawText(QRectF(0, top, self.width(), _TITLE), Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_lanes(self, painter: QPainter, scene: Scene) -> None:
        painter.setFont(scene.small)
        painter.setPen(colour(scene.theme.muted))
        for row in scene.stack.rows:
            name = elided(row.label, _GUTTER - 2 * GRID, scene.small_metrics)
            painter.drawText(QRectF(0, row.top, _GUTTER, row.height), Qt.AlignmentFlag.AlignVCenter, name)
        painter.setClipRect(QRectF(_GUTTER, 0, self.width() - _GUTTER, scene.stack.height))
        for row in scene.stack.rows:
            paint_lane(painter, scene, row)

    def _paint_place(self, painter: QPainter) -> None:
        if self.strips:
            x = round(self.window_of(self.strips[0]).x_of(self.strips[0].place)) + 0.5
            painter.setPen(QPen(colour(self._host.theme.text), 1, Qt.PenStyle.DashLine))
            painter.drawLine(QLineF(x, _TITLE, x, self.height()))
