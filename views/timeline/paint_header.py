"""An entry's header: its letter, its name and its figures, in columns that line up over all entries."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFont, QPainter

from engine.cost.costs import Origin
from engine.quantities import bytes_text, gain_text, time_text
from engine.session.session import Entry, Session
from engine.session.variant import UNLIKE, Variant
from views.icons import pixmap
from views.theme import GRID, colour
from views.timeline.scene import Scene
from views.timeline.stack import HEADER

FOLD = 6 * GRID
"""Width, at the left, of the arrow that collapses an entry."""
PIN = 8 * GRID
"""Width, at the right, of the pin that makes an entry the base."""

ACROSS = " ⇄"
"""After a gain over a base of another module: both run, but not the same program."""
_GAIN, _MARK = 19 * GRID, 5 * GRID
"""Widths of the gain, and of each mark that may follow it."""
_MODULE = 0.4
"""Part of the room for words that the module's name may take where there are several modules."""

SOURCES = {
    Origin.NONE: "",
    Origin.MODEL: "model",
    Origin.COMPILER: "compiler",
    Origin.MEASURED: "measured",
    Origin.TABLE: "your costs",
}


SCALED = "scaled by the model"
"""After the name of costs: what passes made of an einsum takes its part of them, as the model has the parts."""
_PRICED = {Origin.COMPILER: "compiler's costs", Origin.MEASURED: "measured costs", Origin.TABLE: "your costs"}


def origin_text(variant: Variant) -> str:
    """Where a variant's times come from: what made its timeline, and whose costs it was simulated with."""
    if variant.source != Origin.MODEL:
        return SOURCES[variant.source]
    found: dict[str, str] = {}
    for used in variant.program.imported:
        if used.used and used.origin in _PRICED:
            name = _PRICED[used.origin]
            found[name] = f"{name}, {SCALED}" if used.scaled else found.get(name, name)
    return " + ".join((SOURCES[Origin.MODEL], *found.values()))


def unlike(session: Session, entry: Entry) -> tuple[str, ...]:
    """Instructions whose given time prices an entry or the base of its module, but not both."""
    base = session.base_entry
    if entry.variant is None or base is None or base.variant is None or base is entry:
        return ()
    return entry.variant.priced_unlike(base.variant) if entry.compares_with(base) else ()


OVER = "▲"
"""Before a peak of memory that the chip's HBM does not hold."""


def peak_text(variant: Variant) -> str:
    """The simulated peak of memory, marked where the chip does not have it; empty where nothing tells it."""
    if variant.is_measured:
        return ""
    return (
        f"{OVER} {bytes_text(variant.metrics.peak_memory)}"
        if variant.over_memory
        else bytes_text(variant.metrics.peak_memory)
    )


@dataclass(frozen=True, slots=True)
class Figure:
    """One column of a header."""

    caption: str
    text: str
    width: int
    role: str = "text"


def figures_of(session: Session, entry: Entry) -> tuple[Figure, ...]:
    """What a header says about its variant, most important last (it stands at the right)."""
    variant = entry.variant
    if variant is None:
        return ()
    metrics = variant.metrics
    exposed = "exposed" if metrics.exposed else "muted"
    figures = [
        Figure("peak", peak_text(variant), 33 * GRID, "loss" if variant.over_memory else "text"),
        Figure("exposed", time_text(metrics.exposed), 36 * GRID, exposed),
        Figure("", time_text(metrics.makespan), 20 * GRID, "strong"),
    ]
    base = session.base_entry
    if entry.key == session.base:
        figures.append(Figure("", "base", _gain_width(session), "muted"))
    elif base is not None and base.variant is not None and entry.compares_with(base):
        before, after = base.variant.metrics.makespan, metrics.makespan
        text = gain_text(before, after)
        role = "muted" if text.startswith("±") else "gain" if after < before else "loss"
        text += ACROSS if base.module != entry.module else ""
        if unlike(session, entry):
            text, role = f"{text} {UNLIKE}", "muted"
        figures.append(Figure("", text, _gain_width(session), role))
    else:
        earlier = base is not None and base.variant is not None and entry.of_this_machine and not base.of_this_machine
        figures.append(Figure("", f"{session.base} stale" if earlier else "", _gain_width(session), "muted"))
    return tuple(figures)


def _gain_width(session: Session) -> int:
    """The same for all entries: with room for the marks that some of them may have."""
    priced = any(entry.variant is not None and entry.variant.program.imported for entry in session.entries)
    return _GAIN + _MARK * ((len(session.modules) > 1) + priced)


def paint_header(painter: QPainter, scene: Scene, number: int, top: float) -> None:
    """The header of entry `number` at height `top` of the widget."""
    entry, theme = scene.entry(number), scene.theme
    active = entry.key == scene.session.active
    area = QRectF(0, top, scene.width, HEADER)
    painter.fillRect(area, colour(theme.band))
    painter.fillRect(QRectF(0, top, scene.width, 1), colour(theme.border))
    if active:
        painter.fillRect(QRectF(0, top, GRID, HEADER), colour(theme.focus))
    ratio = painter.device().devicePixelRatio()
    arrow = "chevron-right" if entry.collapsed else "chevron-down"
    painter.drawPixmap(int(2 * GRID), int(top + (HEADER - 16) / 2), pixmap(arrow, theme.muted, 16, ratio))
    pinned = entry.key == scene.session.base
    pin = pixmap("pin", theme.text if pinned else theme.muted, 16, ratio)
    painter.drawPixmap(int(scene.width - PIN + 2 * GRID), int(top + (HEADER - 16) / 2), pin)
    right = _paint_figures(painter, scene, entry, top)
    _paint_title(painter, scene, entry, top, right, active)


def _paint_title(painter: QPainter, scene: Scene, entry: Entry, top: float, right: float, active: bool) -> None:
    theme = scene.theme
    badge = QRectF(FOLD + GRID, top + GRID, HEADER - 2 * GRID, HEADER - 2 * GRID)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=True)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour(theme.text if active else theme.muted))
    painter.drawRoundedRect(badge, 3, 3)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
    bold = _bold(scene)
    painter.setFont(bold)
    painter.setPen(colour(theme.base))
    painter.drawText(badge, Qt.AlignmentFlag.AlignCenter, entry.key)
    left = badge.right() + 2 * GRID
    room = right - left - 2 * GRID
    state = state_text(scene, entry)
    state_width = scene.small_metrics.horizontalAdvance(state) + 3 * GRID if state else 0
    painter.setFont(bold if active else scene.font)
    painter.setPen(colour(theme.text))
    metrics = painter.fontMetrics()
    if len(scene.session.modules) > 1:
        module = scene.session.label(entry.module)
        module = scene.small_metrics.elidedText(module, Qt.TextElideMode.ElideMiddle, int(room * _MODULE))
        painter.setFont(scene.small)
        painter.setPen(colour(theme.muted))
        painter.drawText(QRectF(left, top, room, HEADER), Qt.AlignmentFlag.AlignVCenter, module)
        taken = scene.small_metrics.horizontalAdvance(module) + 2 * GRID
        left, room = left + taken, room - taken
        painter.setFont(bold if active else scene.font)
        painter.setPen(colour(theme.text))
    title = metrics.elidedText(entry.title, Qt.TextElideMode.ElideRight, int(max(room - state_width, room / 2)))
    painter.drawText(QRectF(left, top, room, HEADER), Qt.AlignmentFlag.AlignVCenter, title)
    if state:
        left += metrics.horizontalAdvance(title) + 3 * GRID
        painter.setFont(scene.small)
        wrong = entry.ending == "failed" or (
            entry.check is not None and not entry.check.equal and not entry.check.failed
        )
        painter.setPen(colour(theme.error if wrong else theme.muted))
        text = scene.small_metrics.elidedText(state, Qt.TextElideMode.ElideRight, int(max(0.0, right - left - GRID)))
        painter.drawText(QRectF(left, top, max(0.0, right - left), HEADER), Qt.AlignmentFlag.AlignVCenter, text)


def state_text(scene: Scene, entry: Entry) -> str:
    """What is going on with an entry, empty when its picture is up to date; then where its times come from."""
    if entry.ending:
        return entry.ending
    if entry.key in scene.running:
        return f"⟳ {scene.running[entry.key]}"
    if entry.pending:
        return "⟳ waiting" if entry.variant is None else "⟳ out of date"
    if entry.variant is None:
        return ""
    names = unlike(scene.session, entry)
    warning = f"{UNLIKE} not priced as {scene.session.base}: {', '.join(names)}" if names else ""
    remark = "" if entry.stale else entry.remark
    source = " · ".join(filter(None, (warning, origin_text(entry.variant), remark, entry.variant.proof)))
    if entry.check is None:
        return source
    if entry.check.failed:
        return f"{source} · not run"
    return f"{source} · {'✓ equal' if entry.check.equal else '✗ NOT EQUAL'}"


def _paint_figures(painter: QPainter, scene: Scene, entry: Entry, top: float) -> float:
    """Columns from the right; the less important ones go where there is no room. Returns where they begin."""
    figures = figures_of(scene.session, entry)
    right = float(scene.width - PIN)
    bold = _bold(scene)
    if entry.stale or entry.error:
        painter.setOpacity(0.5)
    for figure in reversed(figures):
        strong = figure.role in ("strong", "gain", "loss")
        painter.setFont(bold if strong else scene.font)
        # Wider than its column only where it would lose its first letters, and with them a sign.
        taken = max(figure.width, painter.fontMetrics().horizontalAdvance(figure.text) + 3 * GRID)
        left = right - taken
        if left < 84 * GRID:
            break
        place = QRectF(left, top, taken - 2 * GRID, HEADER)
        painter.setPen(colour(_figure_colour(scene, figure.role)))
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, figure.text)
        if figure.caption and figure.text:
            width = painter.fontMetrics().horizontalAdvance(figure.text)
            painter.setFont(scene.small)
            painter.setPen(colour(scene.theme.muted))
            caption = QRectF(left, top, taken - 3.5 * GRID - width, HEADER)
            painter.drawText(caption, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, figure.caption)
        right = left
    painter.setOpacity(1.0)
    return right


def _figure_colour(scene: Scene, role: str) -> str:
    theme = scene.theme
    return {
        "exposed": theme.waiting,
        "muted": theme.muted,
        "gain": theme.gain,
        "loss": theme.loss,
    }.get(role, theme.text)


def _bold(scene: Scene) -> QFont:
    font = QFont(scene.font)
    font.setBold(True)
    return font
