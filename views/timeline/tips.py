"""What headers and lane names say in full when the mouse rests on them: both are cut where they have no room."""

from __future__ import annotations

from PySide6.QtCore import QPointF

from engine.session.session import Entry
from engine.session.variant import UNLIKE, unlike_in_words
from views.timeline.hits import row_at
from views.timeline.paint_header import FOLD, PIN, state_text, unlike
from views.timeline.scene import GUTTER, Scene
from views.timeline.stack import RowKind

_BUTTONS = ("Fold or open", "Compare the others with this one")


def tip_at(scene: Scene, position: QPointF) -> str:
    """The text for a point of the view, empty where nothing is named."""
    found = row_at(scene.stack, scene.scroll, position.y())
    if found is None:
        return ""
    row, header = found
    if header:
        if position.x() < FOLD:
            return _BUTTONS[0]
        if position.x() > scene.width - PIN:
            return _BUTTONS[1]
        return _about(scene, scene.entry(row.entry))
    if row.kind == RowKind.IDLE:
        return f"idle: {row.label}"
    return row.label if position.x() < GUTTER else ""


def _about(scene: Scene, entry: Entry) -> str:
    plan = entry.plan
    known = f", {entry.budget}" if entry.variant is not None else ""
    budget = f"budget {entry.budget}" if plan.budget is not None else f"the chip's budget{known}"
    names = unlike(scene.session, entry)
    said = (
        scene.session.title_of(entry),
        f"{plan.passes or 'no passes'} · {plan.scheduler} · {budget}",
        state_text(scene, entry),
        f"{UNLIKE} {unlike_in_words(names)}" if names else "",
        entry.error,
    )
    return "\n".join(filter(None, said))
