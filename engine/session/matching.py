"""Which instruction of one variant stands for which of another.

Within a module passes keep ids, and record the origins of what they make; across modules a `Correspondence` of the
modules as loaded comes between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np

from engine.ir.graph import Ints
from engine.session.correspondence import WRAPPERS, Correspondence, Side, work_of
from engine.session.lookup import lookup
from engine.session.session import Entry, Session
from engine.session.variant import Variant
from engine.timeline.difference import Keys

_BASE, _OTHER = 2, 3
"""Which of two modules an instruction without a counterpart is of."""


def shown_in(session: Session, key: str) -> frozenset[int]:
    """Ids of the selected instructions in the module of entry `key`."""
    return standing_for(session, key, session.selection.instructions)


def standing_for(session: Session, key: str, instructions: tuple[int, ...]) -> frozenset[int]:
    """Ids, in the module of entry `key`, of what stands for some of the selected instructions there."""
    entry, home = session.entry(key), session.entry(session.selection.entry)
    if not instructions or entry is None or entry.variant is None:
        return frozenset()
    if home is None or home.variant is None:
        return made_of(entry.variant, instructions)
    if entry is home:
        there = lookup(entry.variant)
        gone = tuple(i for i in instructions if i not in there)
        return frozenset(i for i in instructions if i in there) | made_of(entry.variant, gone)
    match = match_of(session, home, entry)
    return match.counterparts(instructions) if match is not None else frozenset()


def loaded_in(session: Session, key: str) -> frozenset[int]:
    """Ids of what the selected instructions came from, or of its counterparts, in the module as loaded of `key`."""
    entry, home = session.entry(key), session.entry(session.selection.entry)
    if entry is None or home is None or home.variant is None:
        return frozenset(session.selection.instructions)
    if entry.module == home.module:
        return frozenset(o for i in session.selection.instructions for o in origins_in(home.variant, i))
    match = match_of(session, home, entry)
    keys = (k for i in session.selection.instructions for k in match.base_keys(i)) if match is not None else ()
    return frozenset(id_ for k in keys if match is not None for id_ in match.in_other(k))


@dataclass(frozen=True)
class Match:
    """How instructions of one variant are found in another. Keys are ids of the module that both came from, or rows of
    the correspondence of their two modules."""

    base: Variant
    other: Variant
    across: Correspondence | None = None
    """None where both came from one module."""

    @property
    def base_keys(self) -> Keys:
        """Keys of an instruction of the base."""
        return _keys(self.base, self.across.one if self.across is not None else None, _BASE)

    @property
    def other_keys(self) -> Keys:
        """Keys of an instruction of the other variant."""
        return _keys(self.other, self.across.two if self.across is not None else None, _OTHER)

    @property
    def base_times(self) -> Keys:
        """Keys that the time of an instruction of the base counts for: of a fusion, those of what it is for."""
        return _Timed(self.base, self.base_keys)

    @property
    def other_times(self) -> Keys:
        """Keys that the time of an instruction of the other variant counts for."""
        return _Timed(self.other, self.other_keys)

    def in_base(self, key: int) -> tuple[int, ...]:
        """Ids of a key in the base's module as loaded; empty where only the other has it."""
        return _members(self.across.one if self.across is not None else None, key, _BASE)

    def in_other(self, key: int) -> tuple[int, ...]:
        """Ids of a key in the other's module as loaded; empty where only the base has it."""
        return _members(self.across.two if self.across is not None else None, key, _OTHER)

    def counterparts(self, instructions: Iterable[int]) -> frozenset[int]:
        """Ids in the other variant's module of what stands for `instructions` of the base."""
        keys_of = self.base_keys
        keys = {key for i in instructions for key in keys_of(i)}
        return made_of(self.other, [id_ for key in keys for id_ in self.in_other(key)])


def match_of(session: Session, base: Entry, other: Entry) -> Match | None:
    """How the variants of two entries match; None while either variant, or how their modules match, is not known."""
    if base.variant is None or other.variant is None:
        return None
    one, two = session.module(base.module), session.module(other.module)
    if one is two or one is None or two is None or (one.sha256 and one.sha256 == two.sha256):
        return Match(base.variant, other.variant)
    across = correspondence_of(session, base.module, other.module)
    return Match(base.variant, other.variant, across) if across is not None else None


def correspondence_of(session: Session, one: str, two: str) -> Correspondence | None:
    """How the modules of two keys match, None while that is not known."""
    first, second = session.module(one), session.module(two)
    return session.matches.get((first.sha256, second.sha256)) if first is not None and second is not None else None


def origins_in(variant: Variant, instruction: int) -> tuple[int, ...]:
    """Ids, in the module as loaded, of what an instruction of that variant came from.

    Only the variant that has an instruction can tell: what passes make gets the next free id, so that one id may stand
    for unrelated instructions of two variants.
    """
    return variant.program.module.origins_of(instruction)


def carried(old: Variant, new: Variant, instructions: Iterable[int]) -> tuple[int, ...]:
    """Ids that select in `new`, which takes the place of `old`, what they select there.

    What passes made alike in both keeps its id; for the rest stand the ids of the module as loaded.
    """
    before, after = old.program.module.origins, new.program.module.origins
    here, there = lookup(old), lookup(new)

    def stays(instruction: int) -> bool:
        if instruction not in before:
            return True  # no pass gives an id again that the module as loaded had
        return before[instruction] == after.get(instruction) and here.name(instruction) == there.name(instruction)

    kept = ((i,) if stays(i) else before[i] for i in instructions)
    return tuple(dict.fromkeys(chain.from_iterable(kept)))


def is_loaded(variant: Variant, instruction: int) -> bool:
    """Whether a variant still has an instruction of the module as loaded, as it was; what passes made is none, whatever
    its id."""
    return instruction in lookup(variant) and instruction not in variant.program.module.origins


def made_of(variant: Variant, loaded: Iterable[int]) -> frozenset[int]:
    """Ids in a variant's module of what became of instructions of its module as loaded; a fused one is the fusion."""
    found: set[int] = set()
    origins, made = _made_from(variant)
    for origin in loaded:
        if is_loaded(variant, origin):
            found.add(origin)
        first, last = np.searchsorted(origins, (origin, origin + 1))
        found.update(made[first:last].tolist())
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Keys of a variant's instructions in a correspondence."""

    variant: Variant
    side: Side
    number: int

    def __call__(self, instruction: int) -> tuple[int, ...]:
        origins = self.variant.program.module.origins_of(instruction)
        return tuple(key for origin in origins for key in self.side.rows_of(origin) or (_alone(origin, self.number),))


@dataclass(frozen=True, slots=True)
class _Timed:
    """Keys that the time of a variant's instructions counts for.

    What rides along in a fusion takes next to nothing of its time. A fusion that the module was loaded with counts for
    what it is for as well (`Side.rows_of`), so that one and the same fusion is one and the same on both sides.
    """

    variant: Variant
    keys: Keys

    def __call__(self, instruction: int) -> tuple[int, ...]:
        module = self.variant.program.module
        origins = module.origins.get(instruction, ())
        made = module.instructions.get(instruction) if len(origins) > 1 else None
        if made is None or made.opcode not in WRAPPERS:
            return tuple(self.keys(instruction))
        # A compiler's module has parts that nothing is known of.
        work = [part for part in work_of(module, made) if part in module.origins]
        return tuple(dict.fromkeys(key for part in work for key in self.keys(part))) or tuple(self.keys(instruction))


def _keys(variant: Variant, side: Side | None, number: int) -> Keys:
    """Alike for all matches with the same module, so that what is found by them can be kept."""
    return variant.program.module.origins_of if side is None else _Rows(variant, side, number)


def _alone(instruction: int, number: int) -> int:
    """A key of its own for an instruction that has no counterpart, apart from those of the other module."""
    return -(4 * instruction + number)


def _members(side: Side | None, key: int, number: int) -> tuple[int, ...]:
    if side is None:
        return (key,)
    if key < 0:
        instruction, of = divmod(-key, 4)
        return (instruction,) if of == number else ()
    return tuple(dict.fromkeys(side.holder.get(id_, id_) for id_ in side.members.get(key, ())))


@lru_cache(maxsize=64)
def _made_from(variant: Variant) -> tuple[Ints, Ints]:
    """Pairs (origin, what was made from it), ascending by origin: a search takes a moment, a table of them does not."""
    made = variant.program.module.origins
    count = np.fromiter(map(len, made.values()), np.int64, len(made))
    origins = np.fromiter(chain.from_iterable(made.values()), np.int64, int(count.sum()))
    ids = np.repeat(np.fromiter(made.keys(), np.int64, len(made)), count)
    order = np.argsort(origins, kind="stable")
    return origins[order], ids[order]
