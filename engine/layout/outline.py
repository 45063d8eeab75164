"""A module as a tree of groups that can be opened, with the edges between the children of each group.

Items are numbered in preorder: what lies in item k is the range ``k + 1 … end[k]``. Edges between siblings do not
depend on what is open, so opening a group never changes how the others are ordered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, IntFlag
from functools import cached_property

import numpy as np
import numpy.typing as npt

from engine.ir.graph import Bools, Ints

Bytes = npt.NDArray[np.uint8]
_NOWHERE = -2
"""No instruction's id, and not that of a group."""


class Kind(IntEnum):
    """What an item of the tree is."""

    INSTRUCTION = 0
    PATH = 1
    """Instructions whose op_name begins alike."""
    RUN = 2
    """A stretch of the computation's order, where it has too many instructions for one picture."""
    COMPUTATION = 3


class Side(IntFlag):
    """In which of two modules something is."""

    BEFORE = 1
    AFTER = 2
    BOTH = 3


class Look(IntEnum):
    """What a node does, for its colour; the first values are those of `engine.timeline.timeline.Category`."""

    EINSUM = 0
    ELEMENTWISE = 1
    COPY = 2
    PERMUTE = 3
    COLLECTIVE = 4
    SILENT = 5
    """Costs nothing by definition: parameters, constants, tuples."""
    GROUP = 6


@dataclass(frozen=True, eq=False)
class Outline:
    """n items; item 0 is the entry computation. Read-only."""

    parent: Ints
    """Item that an item lies in, -1 for the first. Shape [n]."""
    end: Ints
    """One past the last item that lies in an item. Shape [n]."""
    kind: Bytes
    instruction: Ints
    """Instruction id, -1 for groups. Shape [n]."""
    names: tuple[str, ...]
    details: tuple[str, ...]
    """Opcode and shape of an instruction; of a group what it stands for."""
    paths: tuple[str, ...]
    """op_name of an instruction; the common part of it for a group."""
    sides: Bytes
    """`Side` of each item: in which of the compared modules it is. Shape [n]."""
    changed: Bools
    """Whether an instruction that both modules have differs between them. Shape [n]."""
    look: Bytes
    source: Ints
    """Operand (or control predecessor) of each wire between two instructions, as items. Shape [w]."""
    target: Ints
    wire_sides: Bytes
    edge_source: Ints
    """Sibling edges, ordered by the item they lie in: each stands for all wires between two children. Shape [e]."""
    edge_target: Ints
    edge_wires: Ints
    """How many wires an edge stands for. Shape [e]."""
    edge_sides: Bytes
    origins: Mapping[int, tuple[int, ...]]
    """Instruction id → ids it came from, for those that passes made."""
    earlier: Mapping[int, int] = field(default_factory=dict)
    """Instruction id → id in the earlier module, where the two were read from different files, or passes gave one id
    out in both: then what both have has the later one's id, and what only the earlier one has an id of its own. Empty
    where both share their ids."""

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def depth(self) -> Ints:
        """How many items an item lies in."""
        depth = np.zeros(len(self), np.int64)
        for item, parent in enumerate(self.parent.tolist()):
            depth[item] = depth[parent] + 1 if parent >= 0 else 0
        return depth

    @cached_property
    def seen_earlier(self) -> Outline:
        """The same with the ids of the earlier module; what that does not have stands under none of its ids."""
        if not self.earlier:
            return self
        ids = [self.earlier.get(i, _NOWHERE) if i >= 0 else i for i in self.instruction.tolist()]
        return replace(self, instruction=np.array(ids, np.int64), earlier={})

    @cached_property
    def later(self) -> Mapping[int, int]:
        """The inverse of `earlier`."""
        return {old: new for new, old in self.earlier.items()}

    @cached_property
    def _by_parent(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.parent, kind="stable")
        return order, np.searchsorted(self.parent[order], np.arange(len(self) + 1))

    @cached_property
    def _edge_starts(self) -> Ints:
        return np.searchsorted(self.parent[self.edge_source], np.arange(len(self) + 1)).astype(np.int64)

    @cached_property
    def _by_instruction(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.instruction, kind="stable")
        return order, self.instruction[order]

    @cached_property
    def _uses(self) -> tuple[Ints, Ints]:
        """Wires by target."""
        order = np.argsort(self.target, kind="stable")
        return order, np.searchsorted(self.target[order], np.arange(len(self) + 1))

    @cached_property
    def _users(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.source, kind="stable")
        return order, np.searchsorted(self.source[order], np.arange(len(self) + 1))

    def children(self, item: int) -> Ints:
        order, starts = self._by_parent
        return order[starts[item] : starts[item + 1]]

    def edges_in(self, item: int) -> slice:
        """Which sibling edges lie in an item."""
        return slice(int(self._edge_starts[item]), int(self._edge_starts[item + 1]))

    def operand_wires(self, first: int, stop: int) -> Ints:
        """Wires that end at items of a range."""
        order, starts = self._uses
        return order[starts[first] : starts[stop]]

    def user_wires(self, first: int, stop: int) -> Ints:
        """Wires that begin at items of a range."""
        order, starts = self._users
        return order[starts[first] : starts[stop]]

    def is_group(self, item: int) -> bool:
        """Whether it can be opened."""
        return int(self.end[item]) > item + 1

    def item_of(self, instruction: int) -> int | None:
        """The item of an instruction, None where the outline does not have it."""
        order, ids = self._by_instruction
        at = int(np.searchsorted(ids, instruction))
        return int(order[at]) if at < len(ids) and ids[at] == instruction else None

    def items_of(self, instructions: Iterable[int]) -> tuple[int, ...]:
        found = (self.item_of(i) for i in instructions)
        return tuple(sorted(i for i in found if i is not None))

    def ancestors(self, item: int) -> tuple[int, ...]:
        """What an item lies in, innermost first."""
        found = []
        at = int(self.parent[item])
        while at >= 0:
            found.append(at)
            at = int(self.parent[at])
        return tuple(found)

    def shown(self, opened: frozenset[int]) -> Ints:
        """Items that are seen when these are open, frames of open groups included; the first item is always open."""
        found = [0]
        stack = [0]
        while stack:
            children = self.children(stack.pop()).tolist()
            found.extend(children)
            stack.extend(child for child in children if child in opened and self.is_group(child))
        return np.array(sorted(found), np.int64)

    def count_shown(self, opened: frozenset[int]) -> int:
        """How many nodes that is, without the frames."""
        shown = self.shown(opened)
        return len(shown) - sum(1 for item in shown.tolist() if item == 0 or (item in opened and self.is_group(item)))

    def standing_for(self, shown: Ints, items: Ints) -> Ints:
        """For each of `items` the innermost of the (ascending) `shown` that it lies in or is."""
        at = np.searchsorted(shown, items, side="right") - 1
        found = shown[np.maximum(at, 0)]
        outside = self.end[found] <= items
        while outside.any():
            found = np.where(outside, self.parent[found], found)
            outside = (self.end[found] <= items) & (found > 0)
        return found
