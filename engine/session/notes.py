"""Notes on a module and its variants where there are many: those that say the same of different things are counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_APART = re.compile(r"\d[\d.,]* (?:[mµnp]?s|[KMGT]?i?B|%)(?!\w)|[\w/]+(?:[-._][\w/]+)+\*?|\S*\d\S*")
"""What tells notes of one kind apart: figures with their units, and names of instructions."""
MOST = 3
"""Notes of one kind that are all shown; of more, the first `_FIRST` are."""
_FIRST = 2


@dataclass(frozen=True)
class Kind:
    """Notes that say the same of different things, in their order."""

    shown: tuple[str, ...]
    more: tuple[str, ...] = ()

    @property
    def counted(self) -> str:
        """How many are not shown; empty for none."""
        return f"and {len(self.more):,} more like {'this' if len(self.shown) == 1 else 'these'}" if self.more else ""


def by_kind(notes: Iterable[str]) -> tuple[Kind, ...]:
    """Kinds in the order of their first notes; a note that comes twice counts once."""
    kinds: dict[str, list[str]] = {}
    for note in dict.fromkeys(notes):
        kinds.setdefault(_APART.sub("#", note), []).append(note)
    return tuple(_kind(those) for those in kinds.values())


def _kind(notes: Sequence[str]) -> Kind:
    if len(notes) <= MOST:
        return Kind(tuple(notes))
    return Kind(tuple(notes[:_FIRST]), tuple(notes[_FIRST:]))
