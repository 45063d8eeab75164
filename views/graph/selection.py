"""The session's selection in the terms of an outline, and what a search finds in one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from engine.errors import UsageError
from engine.ir.graph import Ints
from engine.layout.outline import Outline
from engine.layout.picture import Picture
from engine.session.lookup import lookup
from engine.session.matching import shown_in
from engine.session.session import Session
from views.timeline.search import matcher

_MOST_SELECTED = 2_000
"""Instructions that a click on a group selects."""


def selected_ids(session: Session, outline: Outline | None) -> frozenset[int]:
    """Ids that stand for the selection in the modules of an outline: those selected, their counterparts in the active
    variant and the base, or what was made from them."""
    if not session.selection or outline is None:
        return frozenset()
    chosen = frozenset(session.selection.instructions)
    found = chosen.union(*(shown_in(session, key) for key in {session.active, session.base}))
    if outline.items_of(chosen):
        return found
    return found | {made for made, origins in outline.origins.items() if chosen.intersection(origins)}


def ids_in(outline: Outline, item: int) -> tuple[int, ...]:
    """The instruction that an item is, or those that a group holds, as far as can be selected."""
    instruction = int(outline.instruction[item])
    if instruction >= 0:
        return (instruction,)
    inside = outline.instruction[item : outline.end[item]]
    return tuple(inside[inside >= 0][:_MOST_SELECTED].tolist())


def home_of(session: Session, instruction: int) -> str:
    """Key of the entry whose module has an instruction, the active one first."""
    for entry in (session.active_entry, session.base_entry, *session.entries):
        if entry is not None and entry.variant is not None and instruction in lookup(entry.variant):
            return entry.key
    return session.active


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
