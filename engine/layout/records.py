"""What an outline needs to know of each instruction, of one module or of two that are compared."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir import shapes
from engine.ir.module import Module
from engine.layout.outline import Look, Side
from engine.simulate.categories import content_of, is_product

OPENED = frozenset({"fusion", "while", "conditional", "call", "async-start", "custom-call"})
"""Opcodes whose called computations can be looked into; reducers and comparators are not worth a group."""
_SILENT = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id"})
_LAYOUT = frozenset({"copy", "transpose", "reshape", "bitcast-convert", "copy-start", "copy-done"})
_COLLECTIVES = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-broadcast")


@dataclass(slots=True)
class Record:
    """One instruction as it goes into the tree."""

    instruction: int
    name: str
    opcode: str
    detail: str
    path: str
    operands: set[int]
    before: frozenset[int]
    """Operands and control predecessors in the earlier module."""
    after: frozenset[int]
    called: list[int]
    side: Side
    look: Look
    changed: bool = False


@dataclass(slots=True)
class Body:
    """Instructions of one computation, operands first."""

    name: str
    records: list[Record] = field(default_factory=list)


def records_of(before: Module | None, after: Module) -> dict[int, Body]:
    """Computation id → its instructions; those of both modules together where two are given.

    Instructions that both have keep the later module's order; those that only the earlier one has stand before their
    first user there.
    """
    found = {c.id: Body(c.name) for c in after.proto.computations}
    known: dict[int, Record] = {}
    for computation in after.proto.computations:
        body = found[computation.id]
        for instruction in computation.instructions:
            record = _record(after, instruction, Side.AFTER)
            known[record.instruction] = record
            body.records.append(record)
    if before is not None:
        _merge(before, found, known)
    else:
        for record in known.values():
            record.side = Side.BOTH
    return found


def _merge(before: Module, found: dict[int, Body], known: dict[int, Record]) -> None:
    for computation in before.proto.computations:
        body = found.setdefault(computation.id, Body(computation.name))
        mine = {record.instruction: record for record in body.records}
        waiting: list[Record] = []
        placed: dict[int, list[Record]] = {}
        for instruction in computation.instructions:
            record = _record(before, instruction, Side.BEFORE)
            there = mine.get(record.instruction)
            if there is None:
                waiting.append(record)
                continue
            placed.setdefault(record.instruction, []).extend(waiting)
            waiting = []
            there.side = Side.BOTH
            there.before = record.before
            there.changed = (record.before, record.opcode, record.detail) != (there.after, there.opcode, there.detail)
            there.called.extend(c for c in record.called if c not in there.called)
        merged = [r for own in body.records for r in (*placed.get(own.instruction, ()), own)]
        body.records = [*merged, *waiting]


def _record(module: Module, instruction: HloInstructionProto, side: Side) -> Record:
    operands = frozenset((*instruction.operand_ids, *instruction.control_predecessor_ids))
    opcode = instruction.opcode
    return Record(
        instruction=instruction.id,
        name=instruction.name,
        opcode=opcode,
        detail=f"{opcode} {shapes.text(instruction.shape)}" if not instruction.shape.tuple_shapes else opcode,
        path=instruction.metadata.op_name,
        operands=set(operands),
        before=operands if side == Side.BEFORE else frozenset(),
        after=operands if side == Side.AFTER else frozenset(),
        called=list(instruction.called_computation_ids) if opcode in OPENED else [],
        side=side,
        look=_look(module, instruction),
    )


def _look(module: Module, instruction: HloInstructionProto) -> Look:
    opcode = instruction.opcode
    if opcode in _SILENT:
        return Look.SILENT
    if opcode == "fusion":
        return Look(int(content_of(module, instruction.called_computation_ids[0]).category))
    if is_product(opcode):
        return Look.EINSUM
    if opcode.startswith("collective-permute"):
        return Look.PERMUTE
    if opcode.startswith(_COLLECTIVES):
        return Look.COLLECTIVE
    if opcode in _LAYOUT:
        return Look.COPY
    return Look.GROUP if opcode in ("while", "conditional", "call") else Look.ELEMENTWISE
