"""The row that sets the active variant against the base: up from its middle where it is ahead, down where behind."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from engine.quantities import gain_text, time_text
from engine.session.matching import match_of
from engine.session.session import Session
from views.in_place import Floats
from views.theme import GRID, colour
from views.timeline.delta import Lead, lead_of
from views.timeline.scene import GUTTER, Scene
from views.timeline.stack import Row


def lead_in(session: Session) -> Lead | None:
    """The lead of the active variant over the base; None where they are not compared, or not yet."""
    base, active = session.base_entry, session.active_entry
    if base is None or active is None or not active.compares_with(base):
        return None
    match = match_of(session, base, active)
    return lead_of(match) if match is not None and match.base is not match.other else None


def lead_text(lead: int, base: str) -> str:
    """``1.79 ms ahead of A``: the sign in words."""
    if not lead:
        return f"as far as {base}"
    return f"{time_text(abs(lead))} {'ahead of' if lead > 0 else 'behind'} {base}"


def end_text(session: Session, lead: Lead) -> str:
    """What the row comes to: the difference of the makespans, with the percentage that the header has."""
    change = f" ({gain_text(lead.makespan + lead.end, lead.makespan)})" if lead.end else ""
    return f"{lead_text(lead.end, session.base)} at the end{change}"


def earlier_text(session: Session) -> str:
    """Which of the two are of an earlier machine or other costs, so that no lead is shown; empty where neither is."""
    both = (session.base_entry, session.active_entry)
    keys = [e.key for e in both if e is not None and e.variant is not None and not e.of_this_machine]
    verb = "is" if len(keys) == 1 else "are"
    return f"out of date: {' and '.join(keys)} {verb} of an earlier machine or other costs" if keys else ""


def card_of_lead(session: Session, time: int) -> tuple[str, ...]:
    """Lines beside the mouse for a time of the active variant."""
    lead = lead_in(session)
    if lead is None:
        return ()
    time = min(max(time, 0), lead.makespan)
    now = int(lead.at(np.array([time], np.int64))[0])
    return (
        f"{session.active} is {lead_text(now, session.base)}",
        f"at {time_text(time)} it has done what {session.base} has done at {time_text(time + now)}",
        end_text(session, lead),
    )


def paint_delta(painter: QPainter, scene: Scene, row: Row) -> None:
    """How far ahead of the base the active variant is."""
    lead = lead_in(scene.session)
    if lead is None:
        earlier = earlier_text(scene.session)
        if earlier:
            _paint_words(painter, scene, row, earlier)
        return
    window = scene.window
    middle = scene.y(row.top) + row.height / 2
    half = row.height / 2 - 2
    columns = np.arange(int(window.width), dtype=np.int64)
    times = window.start + (2 * columns + 1) * window.span // (2 * max(1, int(window.width)))
    columns, times = columns[times <= lead.makespan], times[times <= lead.makespan]
    size: Floats = lead.at(times).astype(np.float64) * (half / max(1, lead.largest))
    painter.setPen(Qt.PenStyle.NoPen)
    for ahead, role in ((True, scene.theme.gain), (False, scene.theme.loss)):
        of_sign = size > 0 if ahead else size < 0
        painter.setBrush(colour(role, 150))
        tall: Floats = np.abs(size[of_sign]).astype(np.float64)
        top: Floats = np.full(len(tall), middle) - (tall if ahead else 0.0)
        scene.rectangles.draw_each(
            painter, window.left + columns[of_sign].astype(np.float64), top, np.ones(len(tall)), tall
        )
    painter.setPen(QPen(colour(scene.theme.border), 1))
    painter.drawLine(QPointF(window.left, middle), QPointF(window.left + window.width, middle))
    _paint_words(painter, scene, row, end_text(scene.session, lead))


def _paint_words(painter: QPainter, scene: Scene, row: Row, text: str) -> None:
    """What it comes to, at the right where the curve ends, over a ground that keeps it legible."""
    metrics = scene.small_metrics
    width = metrics.horizontalAdvance(text) + 2 * GRID
    right = scene.window.left + scene.window.width
    place = QRectF(right - width, scene.y(row.top), width, metrics.height())
    painter.fillRect(place, colour(scene.theme.base, 200))
    painter.setFont(scene.small)
    painter.setPen(colour(scene.theme.text))
    painter.drawText(place, Qt.AlignmentFlag.AlignCenter, text)


def paint_scale(painter: QPainter, scene: Scene, row: Row) -> None:
    """Beside the row's name: what its upper and its lower edge stand for."""
    lead = lead_in(scene.session)
    if lead is None or not lead.largest:
        return
    painter.setFont(scene.small)
    painter.setPen(colour(scene.theme.muted))
    height = scene.small_metrics.height()
    most = time_text(lead.largest)
    for top, text in ((scene.y(row.top), f"+{most}"), (scene.y(row.bottom) - height, f"\N{MINUS SIGN}{most}")):
        place = QRectF(0, top, GUTTER - 3 * GRID, height)
        painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
