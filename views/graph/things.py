"""The graph's visible nodes for the platform's accessibility interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from PySide6.QtCore import QRect

from engine.ir.graph import Ints
from engine.layout.outline import Outline, Side
from views.accessible import MOST, PRESS, Thing
from views.graph.items import Shown

TOGGLE = "toggle"
"""Name of the action that opens or closes a group."""

Act = Callable[[int], object]


def things_of(
    shown: Shown, positions: Ints, selected: Ints, place: Callable[[int], QRect], pick: Act, toggle: Act
) -> tuple[Thing, ...]:
    """Nodes and open groups at `positions` of a picture, from the top; `place` says where one is drawn.

    Where more is visible than can be told, what is selected comes first, then what is nearest to the top.
    """
    positions = positions[positions > 0]  # the frame around everything is the widget itself
    picture = shown.picture
    if len(positions) > MOST:
        order = np.lexsort((picture.top[positions], ~np.isin(positions, selected)))
        positions = positions[order[:MOST]]
    positions = positions[np.lexsort((picture.left[positions], picture.top[positions]))]
    chosen = set(selected.tolist())
    return tuple(
        _thing(shown, position, position in chosen, place(position), pick, toggle) for position in positions.tolist()
    )


def _thing(shown: Shown, position: int, selected: bool, place: QRect, pick: Act, toggle: Act) -> Thing:
    outline, item = shown.outline, int(shown.picture.items[position])
    size = int(outline.end[item]) - item - 1
    name = outline.names[item] if outline.instruction[item] >= 0 else outline.paths[item] or outline.names[item]
    state = ""
    actions: Mapping[str, Callable[[], object]] = {PRESS: lambda: pick(item)}
    if size:
        opened = bool(shown.picture.opened[position])
        state = f"{'open' if opened else 'closed'} group of {size:,}"
        actions = {**actions, TOGGLE: lambda: toggle(item)}
    words = (state, outline.details[item], _edges(outline, item), _side(outline, item))
    return Thing(name, place, ", ".join(filter(None, words)), selected=selected, actions=actions)


def _edges(outline: Outline, item: int) -> str:
    """How many others it reads and is read by."""
    stop = int(outline.end[item])
    operands, users = outline.operand_wires(item, stop), outline.user_wires(item, stop)
    inside = (outline.source[operands] >= item) & (outline.source[operands] < stop)
    leaving = (outline.target[users] < item) | (outline.target[users] >= stop)
    return f"reads {int((~inside).sum()):,}, read by {int(leaving.sum()):,}"


def _side(outline: Outline, item: int) -> str:
    """What a comparison says about it."""
    sides = int(outline.sides[item])
    if sides == int(Side.BEFORE):
        return "removed"
    if sides == int(Side.AFTER) and (outline.sides == int(Side.BEFORE)).any():
        return "added"
    return "changed" if outline.changed[item] else ""
