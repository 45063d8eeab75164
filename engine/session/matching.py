"""Which instruction of one variant stands for which of another: passes keep ids, and record origins of new ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from engine.session.lookup import lookup
from engine.session.session import Session
from engine.session.variant import Variant


def shown_in(session: Session, key: str) -> frozenset[int]:
    """Ids of the selected instructions in the module of entry `key`."""
    selection = session.selection
    entry, home = session.entry(key), session.entry(selection.entry)
    if not selection or entry is None or entry.variant is None:
        return frozenset()
    if home is None or home.variant is None:
        return frozenset(selection.instructions)
    if key != selection.entry:
        return counterparts(home.variant, entry.variant, selection.instructions)
    there = lookup(entry.variant)
    gone = tuple(i for i in selection.instructions if i not in there)
    return frozenset(i for i in selection.instructions if i in there) | counterparts(entry.variant, entry.variant, gone)


def counterparts(source: Variant, target: Variant, instructions: Iterable[int]) -> frozenset[int]:
    """Ids in `target`'s module that share an origin with `instructions` of `source`'s."""
    module = source.program.module
    found: set[int] = set()
    made = _made_from(target)
    there = lookup(target)
    for instruction in instructions:
        for origin in module.origins_of(instruction):
            if origin in there and origin not in target.program.module.origins:
                found.add(origin)
            found.update(made.get(origin, ()))
    return frozenset(found)


@lru_cache(maxsize=64)
def _made_from(variant: Variant) -> Mapping[int, tuple[int, ...]]:
    made: dict[int, list[int]] = {}
    for instruction, origins in variant.program.module.origins.items():
        for origin in origins:
            made.setdefault(origin, []).append(instruction)
    return {origin: tuple(ids) for origin, ids in made.items()}
