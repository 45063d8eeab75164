"""Folds a module into an `Outline`: by computation, by op_name path, and by stretches of the order where that is not
enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from math import ceil

import numpy as np

from engine.control import QUIET, Control
from engine.ir.graph import Ints
from engine.ir.module import Module
from engine.layout.outline import Bytes, Kind, Look, Outline, Side
from engine.layout.records import Body, Record, records_of
from engine.session.pairing import are_apart, renumbered, told_apart

FLAT = 40
"""Instructions that are shown side by side without being grouped."""
MOST_CHILDREN = 160
"""Children of one group; more are folded into stretches."""
MOST_INPUTS = 6
"""Parameters and constants of a large computation that stand by themselves."""
_DEEPEST = 60
"""Calls that are followed into each other."""


def outline_of(after: Module, before: Module | None = None, control: Control = QUIET) -> Outline:
    """The outline of a module, or of two together: every item says in which of them it is."""
    control.step(0.0, f"reading {after.name}")
    earlier: Mapping[int, int] = {}
    if before is not None:
        before, earlier = (renumbered if are_apart(before, after) else told_apart)(before, after)
    bodies = records_of(before, after)
    control.step(0.5, "folding")
    tree = _Tree(bodies)
    entry = after.proto.entry_computation_id
    tree.computation(entry, -1, Kind.COMPUTATION)
    control.step(0.8, "joining edges")
    origins = {**(dict(before.origins) if before is not None else {}), **after.origins}
    return tree.outline(origins, earlier)


@dataclass
class _Node:
    """A group before its items are numbered."""

    name: str
    kind: Kind
    path: str
    parts: list[_Node | Record] = field(default_factory=list)


class _Tree:
    """Items in preorder, as they are added."""

    def __init__(self, bodies: Mapping[int, Body]) -> None:
        self._bodies = bodies
        self._parent: list[int] = []
        self._end: list[int] = []
        self._kind: list[int] = []
        self._instruction: list[int] = []
        self._names: list[str] = []
        self._details: list[str] = []
        self._paths: list[str] = []
        self._sides: list[int] = []
        self._changed: list[bool] = []
        self._look: list[int] = []
        self._records: list[tuple[int, Record]] = []
        self._entered: set[int] = set()
        self._nested = 0

    def computation(self, number: int, parent: int, kind: Kind) -> None:
        """A computation as an item of its own."""
        body = self._bodies[number]
        self._group(_Node(body.name, kind, "", self._folded(number)), parent)

    def _folded(self, number: int) -> list[_Node | Record]:
        self._entered.add(number)
        return fold(self._bodies[number].records)

    def _add(self, parent: int, kind: Kind, name: str, path: str) -> int:
        item = len(self._parent)
        self._parent.append(parent)
        self._end.append(item + 1)
        self._kind.append(kind)
        self._names.append(name)
        self._paths.append(path)
        self._instruction.append(-1)
        self._details.append("")
        self._sides.append(0)
        self._changed.append(False)
        self._look.append(Look.GROUP)
        return item

    def _group(self, node: _Node, parent: int) -> None:
        item = self._add(parent, node.kind, node.name, node.path)
        self._fill(item, node.parts)
        inside = [look for look, id_ in zip(self._look[item:], self._instruction[item:], strict=True) if id_ >= 0]
        moved = inside.count(Look.COLLECTIVE) + inside.count(Look.PERMUTE)
        counts = (("instruction", len(inside)), ("einsum", inside.count(Look.EINSUM)), ("collective", moved))
        self._details[item] = ", ".join(f"{n:,} {word}{'s' if n != 1 else ''}" for word, n in counts if n)

    def _fill(self, item: int, parts: Sequence[_Node | Record]) -> None:
        for part in parts:
            if isinstance(part, Record):
                self._leaf(part, item)
            else:
                self._group(part, item)
        self._end[item] = len(self._parent)
        for inner in range(item + 1, self._end[item]):
            if self._parent[inner] == item:
                self._sides[item] |= self._sides[inner]

    def _leaf(self, record: Record, parent: int) -> None:
        item = self._add(parent, Kind.INSTRUCTION, record.name, record.path)
        self._instruction[item] = record.instruction
        self._details[item] = record.detail
        self._changed[item] = record.changed
        self._look[item] = record.look
        self._records.append((item, record))
        called = [c for c in record.called if c in self._bodies and c not in self._entered]
        if called and self._nested < _DEEPEST:
            self._nested += 1
            if len(called) == 1:
                self._fill(item, self._folded(called[0]))
            else:
                for computation in called:
                    if computation not in self._entered:
                        self.computation(computation, item, Kind.COMPUTATION)
                self._end[item] = len(self._parent)
            self._nested -= 1
        self._sides[item] = record.side

    def outline(self, origins: Mapping[int, tuple[int, ...]], earlier: Mapping[int, int]) -> Outline:
        """Everything added so far as columns."""
        parent = np.array(self._parent, np.int64)
        source, target, sides = self._wires()
        edges = _sibling_edges(parent, source, target, sides)
        return Outline(
            parent=parent,
            end=np.array(self._end, np.int64),
            kind=np.array(self._kind, np.uint8),
            instruction=np.array(self._instruction, np.int64),
            names=tuple(self._names),
            details=tuple(self._details),
            paths=tuple(self._paths),
            sides=np.array(self._sides, np.uint8),
            changed=np.array(self._changed, np.bool_),
            look=np.array(self._look, np.uint8),
            source=source,
            target=target,
            wire_sides=sides,
            edge_source=edges[0],
            edge_target=edges[1],
            edge_wires=edges[2],
            edge_sides=edges[3].astype(np.uint8),
            origins=dict(origins),
            earlier=dict(earlier),
        )

    def _wires(self) -> tuple[Ints, Ints, Bytes]:
        item_of = {record.instruction: item for item, record in self._records}
        rows = [
            (item_of[operand], item, Side.BEFORE * (operand in r.before) | Side.AFTER * (operand in r.after))
            for item, r in self._records
            for operand in sorted(r.before | r.after)
            if operand in item_of
        ]
        table = np.array(rows, np.int64).reshape(-1, 3)
        single = all(r.side == Side.BOTH and not r.before for _, r in self._records)
        sides = np.full(len(table), Side.BOTH, np.uint8) if single else table[:, 2].astype(np.uint8)
        return table[:, 0].copy(), table[:, 1].copy(), sides


def fold(records: Sequence[Record]) -> list[_Node | Record]:
    """Instructions of a computation as a tree: by what their op_names have in common, then by stretches."""
    return _stretched(_by_path(_gathered_inputs(records), 0, ""))


def _gathered_inputs(records: Sequence[Record]) -> list[_Node | Record]:
    """Parameters and constants of a computation as one group where they would make a wide row of their own."""
    inputs = [r for r in records if r.opcode in ("parameter", "constant")]
    if len(records) <= FLAT or len(inputs) <= MOST_INPUTS:
        return list(records)
    group = _Node("parameters and constants", Kind.RUN, "", _stretched(list(inputs)))
    gathered = set(map(id, inputs))
    return [group, *(r for r in records if id(r) not in gathered)]


def _by_path(records: Sequence[_Node | Record], depth: int, path: str) -> list[_Node | Record]:
    if len(records) <= FLAT:
        return list(records)
    words = [_segments(record.path) for record in records]
    while _all_share(words, depth):
        shared = next(w for w in words if w)[depth]
        path = f"{path}/{shared}" if path else shared
        depth += 1
    members: dict[str, list[_Node | Record]] = {}
    for record, segments in zip(records, words, strict=True):
        if len(segments) > depth:
            members.setdefault(segments[depth], []).append(record)
    made: list[_Node | Record] = []
    seen: set[str] = set()
    for record, segments in zip(records, words, strict=True):
        word = segments[depth] if len(segments) > depth else ""
        if not word or len(members[word]) == 1:
            made.append(record)
        elif word not in seen:
            seen.add(word)
            inside = f"{path}/{word}" if path else word
            made.append(_Node(word, Kind.PATH, inside, _stretched(_by_path(members[word], depth + 1, inside))))
    return made


def _all_share(words: Sequence[tuple[str, ...]], depth: int) -> bool:
    """Whether a part of the path tells nothing apart: all that have a path have this."""
    named = [w for w in words if w]
    return bool(named) and all(len(w) > depth for w in named) and len({w[depth] for w in named}) == 1


def _segments(path: str) -> tuple[str, ...]:
    """Parts of an op_name without the operation at its end: ``jit(f)/layer_0/dot_general`` → two."""
    if "/" not in path:
        return ()
    found, depth, word = [], 0, ""
    for letter in path:
        depth += (letter in "([") - (letter in ")]")
        if letter == "/" and depth == 0:
            found.append(word)
            word = ""
        else:
            word += letter
    return tuple(found)


def _stretched(parts: list[_Node | Record]) -> list[_Node | Record]:
    """At most `MOST_CHILDREN` children: more are folded into stretches of the order, all levels about alike."""
    if len(parts) <= MOST_CHILDREN:
        return parts
    size = len(parts)
    for levels in count(2):
        size = ceil(len(parts) ** (1 / levels))
        if size <= MOST_CHILDREN // 2:
            break
    while len(parts) > size:
        parts = [_stretch(parts[at : at + size]) for at in range(0, len(parts), size)]
    return parts


def _stretch(parts: list[_Node | Record]) -> _Node | Record:
    if len(parts) == 1:
        return parts[0]
    return _Node(f"{_first_name(parts[0])} …", Kind.RUN, _common(parts), parts)


def _first_name(part: _Node | Record) -> str:
    return part.name.removesuffix(" …")


def _common(parts: Sequence[_Node | Record]) -> str:
    """What the op_names begin with alike."""
    words = [part.path.split("/") for part in parts]
    shared = [column[0] for column in zip(*words, strict=False) if len(list(groupby(column))) == 1]
    return "/".join(shared)


def _sibling_edges(parent: Ints, source: Ints, target: Ints, sides: Bytes) -> tuple[Ints, Ints, Ints, Ints]:
    """Wires lifted to children of the innermost group that holds both ends; alike ones joined, ordered by group."""
    depth = np.zeros(len(parent), np.int64)
    for item, above in enumerate(parent.tolist()):
        depth[item] = depth[above] + 1 if above >= 0 else 0
    one, two = source.copy(), target.copy()
    while True:
        apart = parent[one] != parent[two]
        if not apart.any():
            break
        up_one, up_two = apart & (depth[one] >= depth[two]), apart & (depth[two] >= depth[one])
        one, two = np.where(up_one, parent[one], one), np.where(up_two, parent[two], two)
    real = one != two  # an instruction that a pass moved into a group that it feeds
    one, two, sides = one[real], two[real], sides[real]
    if not len(one):
        return one, two, one, sides.astype(np.int64)
    order = np.lexsort((two, one, parent[one]))
    one, two, bits = one[order], two[order], sides[order].astype(np.int64)
    first = np.flatnonzero(np.r_[True, (one[1:] != one[:-1]) | (two[1:] != two[:-1])])
    wires = np.diff(np.r_[first, len(one)])
    return one[first], two[first], wires, np.bitwise_or.reduceat(bits, first)
