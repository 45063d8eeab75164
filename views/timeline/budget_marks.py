"""Where the budget binds: the moments at which a transfer starts that had to wait for room, and what held it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPolygonF

from engine.ir.graph import Ints
from engine.quantities import time_text
from engine.schedule.binding import ALL_KINDS, Held
from engine.session.lookup import lookup
from engine.session.session import Session
from engine.session.variant import Variant
from engine.timeline.timeline import Category, LaneKind
from views.theme import GRID, colour
from views.timeline.axis import Window
from views.timeline.hits import row_at
from views.timeline.overlay import Hit
from views.timeline.scene import GUTTER, Scene, rows_of
from views.timeline.stack import Row, RowKind, Stack

_NAMED = 4
"""Holders that a sentence names."""
_NEAR = 6.0
"""Pixels around a mark that still count as on it."""


@dataclass(frozen=True, eq=False)
class BudgetMarks:
    """Moments of one variant, ascending; arrays have shape [m]."""

    time: Ints
    """Picoseconds at which the transfer starts."""
    since: Ints
    """Picoseconds since when it could have, but for the budget."""
    row: Ints
    """The transfer's row in the timeline."""
    held: tuple[Held, ...]

    def __len__(self) -> int:
        return len(self.time)


@lru_cache(maxsize=64)
def budget_marks(variant: Variant) -> BudgetMarks:
    """The moments of a variant: one for each time that a transfer which waited is shown."""
    timeline = variant.timeline
    by_id = {held.instruction: held for held in variant.held}
    rows = rows_of(timeline, tuple(by_id))
    moving = np.array([lane.kind == LaneKind.TRANSFER for lane in timeline.lanes], np.bool_)
    rows = rows[moving[timeline.lane[rows]] & (timeline.category[rows] != Category.EXPOSED)]
    # A transfer over several links has a row on each lane.
    _, first = np.unique(np.stack([timeline.instruction[rows], timeline.start[rows]]), axis=1, return_index=True)
    rows = rows[np.sort(first)] if len(rows) else rows
    rows = rows[np.argsort(timeline.start[rows], kind="stable")]
    held = tuple(by_id[int(timeline.instruction[row])] for row in rows.tolist())
    time = timeline.start[rows]
    wait = np.array([h.wait for h in held], np.int64)
    return BudgetMarks(time, np.maximum(time - wait, 0), rows, held)


def sentence(variant: Variant, held: Held) -> tuple[str, str]:
    """What had to wait and for how long; what held it."""
    names = lookup(variant)
    holders = [name for holder in held.holders[:_NAMED] if (name := names.name(holder))]
    more = f" and {len(held.holders) - _NAMED} more" if len(held.holders) > _NAMED else ""
    inside = f" ({', '.join(holders)}{more})" if holders else ""
    return (
        f"{names.name(held.instruction)} could have started {time_text(held.wait)} earlier",
        f"{held.limit} of {held.limit} {held.counted} in flight{inside}",
    )


def paint_budget_marks(painter: QPainter, scene: Scene, row: Row, taken: Sequence[QRectF] = ()) -> None:
    """Over the in-flight curve: a bar for as long as the transfer waited, and a point where it starts.

    `taken`: places of texts that are drawn over the marks.
    """
    variant = scene.entry(row.entry).variant
    if variant is None or not variant.held:
        return
    marks, window = budget_marks(variant), scene.window
    shown = np.flatnonzero((marks.time >= window.start) & (marks.since <= window.stop))
    if not len(shown):
        return
    edges = (window.left - 8.0, window.left + window.width + 8.0)
    left, right = (np.clip(window.x(times[shown]), *edges) for times in (marks.since, marks.time))
    top = scene.y(row.top) + 1
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour(scene.theme.budget))
    wide = right - left >= 1.0
    scene.rectangles.draw_each(
        painter, left[wide], np.full(int(wide.sum()), top), (right - left)[wide], np.full(int(wide.sum()), 2.0)
    )
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=True)
    for x in np.unique(np.round(right)).tolist():
        tip = [QPointF(x - GRID, top), QPointF(x + GRID, top), QPointF(x, top + 1.5 * GRID)]
        painter.drawPolygon(QPolygonF(tip))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
    tips = [(float(x), marks.held[n]) for x, n in zip(right, shown.tolist(), strict=True)]
    _paint_limits(painter, scene, top, tips, taken)


def _paint_limits(
    painter: QPainter, scene: Scene, top: float, tips: Sequence[tuple[float, Held]], taken: Sequence[QRectF]
) -> None:
    """Beside each point the limit that binds, where it is that of one kind and there is room for it."""
    painter.setFont(scene.small)
    height = scene.small_metrics.height()
    lines = [(place.left(), place.right()) for place in taken if place.top() < top + height and place.bottom() > top]
    texts = [limit_text(held) for _, held in tips]
    widths = [scene.small_metrics.horizontalAdvance(text) + GRID if text else 0 for text in texts]
    lefts = limit_places(scene.window, [x for x, _ in tips], widths, lines)
    for text, left, width in zip(texts, lefts, widths, strict=True):
        if left is None:
            continue
        place = QRectF(left, top, width, height)
        painter.fillRect(place, colour(scene.theme.base, 200))
        painter.setPen(colour(scene.theme.budget))
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, text)


def limit_places(
    window: Window, tips: Sequence[float], widths: Sequence[int], taken: Sequence[tuple[float, float]]
) -> list[float | None]:
    """Left edge of the text beside each point: right of it, else left of it, else None.

    Texts, in pixels as all here, come over no other point, over none that was placed before and over nothing that is
    `taken`; a width of 0 is no text.
    """
    used, points = list(taken), sorted({window.left - GRID, *tips, window.left + window.width + GRID})
    places: list[float | None] = []
    for x, width in zip(tips, widths, strict=True):
        places.append(None)
        if not width or not window.left <= x <= window.left + window.width:
            continue
        # Points less than a pixel apart are drawn as one.
        least = points[max(0, bisect_left(points, x - 1) - 1)] + GRID
        most = points[min(len(points) - 1, bisect_right(points, x + 1))] - GRID
        for left in (x + 1.5 * GRID, x - 1.5 * GRID - width):
            span = (left, left + width)
            if least <= span[0] and span[1] <= most and not any(a < span[1] and span[0] < b for a, b in used):
                places[-1] = left
                used.append(span)
                break
    return places


def limit_text(held: Held) -> str:
    """``2 of 2 all-gathers``; empty where the limit is that of the line, for all kinds together."""
    return "" if held.counted == ALL_KINDS else f"{held.limit} of {held.limit} {held.counted}"


@dataclass(frozen=True, slots=True)
class Marked:
    """A mark under the mouse."""

    entry: int
    number: int
    """In the entry's `BudgetMarks`."""


def mark_at(session: Session, stack: Stack, scroll: int, window: Window, position: QPointF) -> Marked | None:
    """The mark under a point of the widget: the nearest start, else the shortest wait that covers it."""
    found = row_at(stack, scroll, position.y())
    if found is None or found[1] or position.x() < GUTTER or found[0].kind != RowKind.IN_FLIGHT:
        return None
    variant = session.entries[found[0].entry].variant
    if variant is None or not variant.held:
        return None
    marks, time = budget_marks(variant), window.time_at(position.x())
    if not len(marks):
        return None
    distance = np.abs(marks.time - time)
    nearest = int(np.argmin(distance))
    if distance[nearest] <= _NEAR * window.per_pixel:
        return Marked(found[0].entry, nearest)
    covering = np.flatnonzero((marks.since <= time) & (time <= marks.time))
    if not len(covering):
        return None
    return Marked(found[0].entry, int(covering[np.argmin((marks.time - marks.since)[covering])]))


def card_of_mark(session: Session, marked: Marked) -> tuple[str, ...]:
    """Lines beside the mouse."""
    variant = session.entries[marked.entry].variant
    return sentence(variant, budget_marks(variant).held[marked.number]) if variant is not None else ()


def lit_by_mark(session: Session, marked: Marked) -> Iterable[Hit]:
    """The transfer that had to wait, and the slices that held it at the moment it did."""
    variant = session.entries[marked.entry].variant
    if variant is None:
        return
    marks, timeline = budget_marks(variant), variant.timeline
    yield Hit(marked.entry, int(marks.row[marked.number]))
    rows = rows_of(timeline, marks.held[marked.number].holders)
    ends = timeline.start[rows] + timeline.duration[rows]
    moment = int(marks.since[marked.number] + marks.time[marked.number]) // 2
    rows = rows[(timeline.start[rows] <= moment) & (ends >= moment)]
    under_way = rows[timeline.category[rows] != Category.EXPOSED]
    yield from (Hit(marked.entry, int(row)) for row in under_way.tolist())


def rect_of_mark(window: Window, top: float, marks: BudgetMarks, number: int) -> QRectF:
    """Where a mark is drawn, as something to point at."""
    x = window.x_of(int(marks.time[number]))
    return QRectF(x - _NEAR, top, 2 * _NEAR, 3.0 * GRID)
