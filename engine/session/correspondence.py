"""Which instructions of one module as loaded stand for which of another that is not made from it.

Nothing that compilers number survives from one module to another, but what the program calls an operation does: its
op_name. Instructions of the same op_name that do the same are set against each other. Where neither module has any
op_name, as in what was written by hand, the instructions' own names take their place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from engine.control import QUIET, Control
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.graphs import graphs_of
from engine.ir.module import Module
from engine.ir.opcodes import COLLECTIVES, MATMULS

WRAPPERS = frozenset({"fusion", "async-start"})
"""Opcodes whose called computation is what they do: its instructions are matched instead of them."""

_FREE = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "partition-id", "replica-id"})
"""What takes no time, and is not counted."""
_LIGHT = _FREE | {"broadcast", "iota", "copy", "reshape", "transpose", "convert", "slice"}
"""What a fusion does by the way."""
_HEAVY = COLLECTIVES | MATMULS | {"custom-call", "fft", "sort", "scatter", "triangular-solve"}
"""What a fusion is for, where it holds one of these; else its reductions."""
_REDUCTIONS = frozenset({"reduce", "reduce-window", "select-and-scatter"})

_EINSUM_NAMES = ("dot_general", "conv_general_dilated")
"""How the op_name of a multiplication ends that a compiler left to a library."""

_TAG = re.compile(r"\s*lapstrake=[\w.\-]+")
_JIT = re.compile(r"(?:^|(?<=/))p?jit\([^/()]*\)/")
_JVP = re.compile(r"jvp\(([^()]*)\)")


@dataclass(frozen=True, slots=True)
class Count:
    """Of the instructions of one module that take time: how many have a counterpart in the other."""

    matched: int
    all: int

    def __str__(self) -> str:
        return f"{self.matched:,} of {self.all:,}"


@dataclass(frozen=True, eq=False)
class Side:
    """One of two modules: where its instructions are among the rows, each a set that stands for one in the other."""

    rows: Mapping[int, int]
    """Id of an instruction of the module as loaded → its row; those without a counterpart are missing."""
    members: Mapping[int, tuple[int, ...]]
    """Row → ids, in the module's order."""
    holder: Mapping[int, int]
    """Id of an instruction in a fusion or an asynchronous wrapper → id of that, where it runs as part of a sequence."""
    work: Mapping[int, tuple[int, ...]]
    """Id of a fusion or wrapper → ids of what it is for: the einsums, collectives or reductions in it, else its root.
    Id of a done → that of its start."""
    count: Count

    def rows_of(self, instruction: int) -> tuple[int, ...]:
        """Rows of an instruction, or of what a fusion is for; empty where it has no counterpart."""
        parts = self.work.get(instruction, (instruction,))
        return tuple(dict.fromkeys(self.rows[part] for part in parts if part in self.rows))


@dataclass(frozen=True, eq=False)
class Correspondence:
    """Two modules, instruction against instruction."""

    one: Side
    two: Side
    by: str = "op_name"
    """``op_name``, or ``name`` where neither module has any."""

    def turned(self) -> Correspondence:
        """The same, seen from the other module."""
        return Correspondence(self.two, self.one, self.by)


@dataclass(frozen=True, slots=True)
class _Record:
    id: int
    op_name: str
    does: str
    """Opcode in its blocking form."""
    kind: str
    """As `does`, with all that multiplies alike and all that exchanges between devices alike: compilers put one in the
    place of another."""
    shape: str
    name: str


@dataclass
class _Listing:
    """What of a module can be matched."""

    records: list[_Record] = field(default_factory=list)
    holder: dict[int, int] = field(default_factory=dict)
    work: dict[int, tuple[int, ...]] = field(default_factory=dict)
    counted: list[int] = field(default_factory=list)
    """Ids of what runs as part of a sequence and takes time."""


def correspond(one: Module, two: Module, control: Control = QUIET) -> Correspondence:
    """Match two modules as loaded."""
    control.step(0.0, f"matching {one.name} and {two.name}")
    left = _listing(one)
    control.step(0.4, f"matching {one.name} and {two.name}")
    right = _listing(two)
    control.step(0.8, f"matching {one.name} and {two.name}")
    rows: tuple[dict[int, int], dict[int, int]] = ({}, {})
    named = any(record.op_name for record in (*left.records, *right.records))
    for key in _BY_OP_NAME if named else _BY_NAME:
        _pair(left, right, rows, key)
    return Correspondence(_side(left, rows[0]), _side(right, rows[1]), "op_name" if named else "name")


def stem(op_name: str) -> str:
    """An op_name without what changes as a program is wrapped: names of jitted functions, forward differentiation.

    ``jit(train)/jvp(layer)/jit(relu)/max`` and ``jit(forward)/layer/jit(relu)/max`` have the same one.
    """
    bare = _JVP.sub(r"\1", _JIT.sub("", op_name))
    return "/".join(part for part in bare.split("/") if part)


def work_of(module: Module, wrapper: HloInstructionProto) -> tuple[int, ...]:
    """Ids of what a fusion or wrapper is for: the einsums, collectives or reductions in it, else its root."""
    return tuple(_work(module, wrapper, _inside(module, wrapper)))


def _listing(module: Module) -> _Listing:
    found = _Listing()
    for computation in graphs_of(module):
        for instruction in module.computations[computation].instructions:
            if instruction.opcode.endswith(("-done", "-update")):
                begun = instruction.operand_ids[0]
                found.work[instruction.id] = found.work.get(begun, (begun,))
                continue
            if instruction.opcode not in _FREE:
                found.counted.append(instruction.id)
            inside = _inside(module, instruction) if instruction.opcode in WRAPPERS else []
            if not any(part.metadata.op_name for part in inside):
                found.records.append(_record(instruction))
                continue
            found.records.extend(map(_record, inside))
            found.holder.update((part.id, instruction.id) for part in inside)
            found.work[instruction.id] = tuple(_work(module, instruction, inside))
    return found


def _inside(module: Module, wrapper: HloInstructionProto) -> list[HloInstructionProto]:
    """All that a fusion or wrapper runs, that of nested ones included, without the parameters."""
    found: list[HloInstructionProto] = []
    waiting = list(wrapper.called_computation_ids)
    while waiting:
        for part in module.computations[waiting.pop()].instructions:
            if part.opcode in WRAPPERS:
                waiting.extend(part.called_computation_ids)
            elif part.opcode != "parameter":
                found.append(part)
    return found


def _work(module: Module, wrapper: HloInstructionProto, inside: Iterable[HloInstructionProto]) -> Iterable[int]:
    for kind in (_HEAVY, _REDUCTIONS):
        found = [part.id for part in inside if _blocking(part.opcode) in kind]
        if found:
            return found
    return _roots(module, wrapper)


def _roots(module: Module, wrapper: HloInstructionProto) -> list[int]:
    """What a fusion puts out: its root, or what goes into a root that only moves data about."""
    found: list[int] = []
    computation = module.computations[wrapper.called_computation_ids[0]]
    parts = {part.id: part for part in computation.instructions}
    waiting = [computation.root_id]
    while waiting:
        part = parts[waiting.pop()]
        if part.opcode == "tuple" or (part.opcode in _LIGHT and _feeds(part, parts)):
            waiting.extend(_feeds(part, parts))
        elif part.opcode in WRAPPERS:
            found.extend(_roots(module, part))
        elif part.opcode != "parameter":
            found.append(part.id)
    return list(dict.fromkeys(found))


def _feeds(part: HloInstructionProto, parts: Mapping[int, HloInstructionProto]) -> list[int]:
    """Operands of `part` that are not what the fusion is given."""
    return [operand for operand in part.operand_ids if parts[operand].opcode != "parameter"]


def _record(instruction: HloInstructionProto) -> _Record:
    shape = instruction.shape
    text = f"{shape.element_type}{list(shape.dimensions)}" if not shape.tuple_shapes else ""
    op_name = _TAG.sub("", instruction.metadata.op_name)
    does = _blocking(instruction.opcode)
    kind = "transfer" if does in COLLECTIVES else does
    if does in MATMULS or (does == "custom-call" and op_name.endswith(_EINSUM_NAMES)):
        kind = "einsum"
    return _Record(instruction.id, op_name, does, kind, text, instruction.name)


def _blocking(opcode: str) -> str:
    """An asynchronous start as what it starts."""
    return opcode.removesuffix("-start")


_Key = Callable[[_Record], tuple[str, str]]
_BY_OP_NAME: tuple[_Key, ...] = (
    lambda r: (r.op_name, r.does),
    lambda r: (r.op_name, r.kind),
    lambda r: (stem(r.op_name), r.does),
    lambda r: (stem(r.op_name), r.kind),
)
_BY_NAME: tuple[_Key, ...] = (lambda r: (r.name, r.does), lambda r: (r.name, r.kind))


def _pair(one: _Listing, two: _Listing, rows: tuple[dict[int, int], dict[int, int]], key: _Key) -> None:
    """Put what is left of both modules into rows, by `key`; what it gives no name is left out."""
    left, right = _grouped(one, rows[0], key), _grouped(two, rows[1], key)
    for name in left.keys() & right.keys():
        for mine, theirs in _paired(left[name], right[name]):
            row = len(rows[0]) + len(rows[1])  # not yet a row: both grow with each
            rows[0].update((record.id, row) for record in mine)
            rows[1].update((record.id, row) for record in theirs)


def _grouped(listing: _Listing, taken: Mapping[int, int], key: _Key) -> dict[tuple[str, str], list[_Record]]:
    found: dict[tuple[str, str], list[_Record]] = {}
    for record in listing.records:
        if record.id not in taken and (known := key(record))[0]:
            found.setdefault(known, []).append(record)
    return found


def _paired(mine: list[_Record], theirs: list[_Record]) -> Iterable[tuple[list[_Record], list[_Record]]]:
    """Records of one name that do the same: one against one where there are as many, else all against all.

    Which is which their own names tell where these tell it of all, else the order. Shapes tell some apart where the
    numbers differ.
    """
    if len(mine) == len(theirs):
        named = _by_own_names(mine, theirs) or [(one, two) for two, one in _by_own_names(theirs, mine)]
        if named:
            return (([one], [two]) for one, two in named)
        return (([one], [two]) for one, two in zip(mine, theirs, strict=True))
    left, right = _by_shape(mine), _by_shape(theirs)
    found: list[tuple[list[_Record], list[_Record]]] = []
    for shape in left.keys() & right.keys():
        if len(left[shape]) == len(right[shape]):
            found += (([one], [two]) for one, two in zip(left.pop(shape), right.pop(shape), strict=True))
    others = [r for part in left.values() for r in part], [r for part in right.values() for r in part]
    if all(others):
        found.append(others)
    return found


def _by_own_names(mine: list[_Record], copies: list[_Record]) -> list[tuple[_Record, _Record]]:
    """Each of `mine` with what has its name or, as a copy of it in a fusion, its name and a number; empty unless that
    tells all of them apart."""
    if len(mine) == 1:
        return []
    named = {record.name: record for record in mine}
    pairs = [(named.get(copy.name) or named.get(copy.name.rpartition(".")[0]), copy) for copy in copies]
    found = [(one, copy) for one, copy in pairs if one is not None]
    return found if len({one.id for one, _ in found}) == len(mine) else []


def _by_shape(records: Iterable[_Record]) -> dict[str, list[_Record]]:
    found: dict[str, list[_Record]] = {}
    for record in records:
        found.setdefault(record.shape, []).append(record)
    return found


def _side(listing: _Listing, rows: Mapping[int, int]) -> Side:
    members: dict[int, list[int]] = {}
    for record in listing.records:
        if record.id in rows:
            members.setdefault(rows[record.id], []).append(record.id)
    there = [any(part in rows for part in listing.work.get(id_, (id_,))) for id_ in listing.counted]
    return Side(
        rows=rows,
        members={row: tuple(ids) for row, ids in members.items()},
        holder=listing.holder,
        work=listing.work,
        count=Count(sum(there), len(there)),
    )
