"""The session's selection in the terms of an outline, and what a search finds in one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from engine.errors import UsageError
from engine.ir.graph import Ints
from engine.layout.outline import Outline, Side
from engine.layout.picture import Picture
from engine.session.lookup import lookup
from engine.session.matching import origins_in, shown_in
from engine.session.session import Session
from engine.session.variant import Variant
from views.timeline.search import matcher

_MOST_SELECTED = 2_000
"""Instructions that a click on a group selects."""


def selected_ids(session: Session, outline: Outline) -> frozenset[int]:
    """Ids that stand for the selection in the modules of an outline: those selected, and what stands for them on the
    other side; where it has none of them, their counterparts, or what was made from them."""
    if outline.earlier:
        return _across(session, outline)
    picked = picked_ids(session, outline)
    if not picked or picked.isdisjoint(session.selection.instructions):
        return picked
    others = _counterparts(session, outline)
    return picked | {i for i in others if (n := outline.item_of(i)) is not None and outline.sides[n] != Side.BOTH}


def picked_ids(session: Session, outline: Outline) -> frozenset[int]:
    """As `selected_ids`, without what stands for them on the other side."""
    chosen = frozenset(session.selection.instructions)
    if not chosen:
        return chosen
    if outline.earlier:
        own = {session.active: chosen, session.base: frozenset(outline.later.get(i, -1) for i in chosen)}
        there = frozenset(i for i in own.get(session.selection.entry, ()) if outline.item_of(i) is not None)
        return there or _across(session, outline)
    home = session.entry(session.selection.entry)
    variant = home.variant if home is not None else None
    there = frozenset(i for i in chosen if outline.item_of(i) is not None and _is_of(outline, variant, i))
    if there:
        return there
    loaded = frozenset(o for i in chosen for o in (origins_in(variant, i) if variant is not None else (i,)))
    return _counterparts(session, outline) | {
        made for made, origins in outline.origins.items() if loaded.intersection(origins)
    }


def _is_of(outline: Outline, variant: Variant | None, instruction: int) -> bool:
    """Whether an id means the same instruction in an outline and in a variant: both made it of the same, or neither."""
    return variant is None or outline.origins.get(instruction) == variant.program.module.origins.get(instruction)


def _counterparts(session: Session, outline: Outline) -> frozenset[int]:
    found: set[int] = set()
    for key in {session.active, session.base}:
        entry = session.entry(key)
        if entry is not None:
            found.update(i for i in shown_in(session, key) if _is_of(outline, entry.variant, i))
    return frozenset(found)


def _across(session: Session, outline: Outline) -> frozenset[int]:
    """As `selected_ids`, where base and active variant do not share their ids."""
    before = (outline.later.get(i, -1) for i in shown_in(session, session.base))
    return shown_in(session, session.active).union(i for i in before if i >= 0)


def ids_in(outline: Outline, item: int) -> tuple[int, ...]:
    """The instruction that an item is, or those that a group holds, as far as can be selected."""
    instruction = int(outline.instruction[item])
    if instruction >= 0:
        return (instruction,)
    inside = outline.instruction[item : outline.end[item]]
    return tuple(inside[inside >= 0][:_MOST_SELECTED].tolist())


def home_of(session: Session, outline: Outline, instruction: int) -> str:
    """Key of the entry that has an instruction of an outline, of those of the active one's module: itself, the base,
    any."""
    entries = sorted(session.beside(session.active), key=lambda e: (e.key != session.active, e.key != session.base))
    for entry in entries:
        variant = entry.variant
        if variant is not None and _is_of(outline, variant, instruction) and instruction in lookup(variant):
            return entry.key
    return session.active


def homed(session: Session, outline: Outline | None, ids: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Key of the entry that has instructions of an outline, and their ids there; of two modules that of the last."""
    if not ids:
        return "", ()
    if outline is None:
        return session.active, ids
    if not outline.earlier:
        return home_of(session, outline, ids[-1]), ids
    old = frozenset(i for i in ids if (n := outline.item_of(i)) is not None and outline.sides[n] == Side.BEFORE)
    if ids[-1] in old:
        return session.base, tuple(outline.earlier[i] for i in ids if i in old)
    return session.active, tuple(i for i in ids if i not in old)


def found_in(outline: Outline, picture: Picture, text: str) -> tuple[int, Ints]:
    """How many instructions match a search, and the positions of the nodes that are them or hold them."""
    if not text:
        return 0, np.empty(0, np.int64)
    try:
        hits = _hits(outline, text)
    except UsageError:
        return 0, np.empty(0, np.int64)
    positions = np.searchsorted(picture.items, np.unique(outline.standing_for(picture.items, hits)))
    return len(hits), positions[~picture.opened[positions]]


def positions_of(outline: Outline, picture: Picture, items: tuple[int, ...]) -> tuple[Ints, Ints]:
    """Positions of items that are shown, and of closed groups that hold others."""
    if not items:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    wanted = np.array(items, np.int64)
    positions = np.searchsorted(picture.items, np.unique(outline.standing_for(picture.items, wanted)))
    themselves = np.isin(picture.items[positions], wanted)
    return positions[themselves], positions[~themselves & ~picture.opened[positions]]


@lru_cache(maxsize=8)
def _hits(outline: Outline, text: str) -> Ints:
    matches = matcher(text)
    leaves = np.flatnonzero(outline.instruction >= 0).tolist()
    found = [i for i in leaves if matches(outline.names[i]) or matches(outline.details[i]) or matches(outline.paths[i])]
    return np.array(found, np.int64)
