"""How often a `while` runs its body: from XLA's annotation, else from its condition."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, LiteralProto
from engine.ir.module import Module


@dataclass(frozen=True, slots=True)
class Trips:
    """A trip count and what it rests on."""

    count: int
    note: str | None = None
    """Set when the count is an assumption: one sentence for the user."""


@dataclass(frozen=True, slots=True)
class _Affine:
    """start + step·k, where k counts iterations; step 0 is a constant."""

    start: int
    step: int


def trips_of(module: Module) -> tuple[Mapping[int, int], tuple[str, ...]]:
    """Trip counts of every `while` of the module by instruction id, and a note for each that had to be assumed."""
    counts, notes = {}, []
    for computation in module.proto.computations:
        for instruction in computation.instructions:
            if instruction.opcode != "while":
                continue
            trips = trip_count(module, instruction)
            counts[instruction.id] = trips.count
            if trips.note is not None:
                notes.append(trips.note)
    return counts, tuple(notes)


def trip_count(module: Module, loop: HloInstructionProto) -> Trips:
    """How often the body of the while `loop` runs; 1 with a note when it cannot be told."""
    annotated = _annotated(loop)
    if annotated is not None:
        return Trips(annotated)
    counted = _from_condition(module, loop)
    if counted is not None:
        return Trips(counted)
    return Trips(1, f"The trip count of {loop.name} is not known (neither annotated nor a counted loop): 1 is assumed.")


def _annotated(loop: HloInstructionProto) -> int | None:
    """``{"known_trip_count":{"n":"5"}}`` of the backend config."""
    if not loop.backend_config:
        return None
    try:
        config = json.loads(loop.backend_config)
        count = int(config["known_trip_count"]["n"])
    except (ValueError, KeyError, TypeError):
        return None
    return max(count, 0)


def _from_condition(module: Module, loop: HloInstructionProto) -> int | None:
    """The loop is ``for (i = start; i < limit; i += step)`` with constants; None when it is anything else."""
    if len(loop.called_computation_ids) != 2 or len(loop.operand_ids) != 1:
        return None
    body, condition = (module.computations.get(id_) for id_ in loop.called_computation_ids)
    if body is None or condition is None:
        return None
    comparison = _Local(condition).resolve(condition.root_id)
    if comparison.opcode != "compare" or len(comparison.operand_ids) != 2:
        return None
    local = _Local(condition, module, _Loop(module, loop, body))
    left, right = (local.affine(operand) for operand in comparison.operand_ids)
    if left is None or right is None:
        return None
    return _count(left, right, comparison.comparison_direction)


def _count(left: _Affine, right: _Affine, direction: str) -> int | None:
    """Iterations k = 0, 1, … until ``left(k) direction right(k)`` is false; None when it never is."""
    gap, step = left.start - right.start, left.step - right.step
    match direction:
        case "LT":
            return _steps_while_negative(gap, step)
        case "LE":
            return _steps_while_negative(gap - 1, step)
        case "GT":
            return _steps_while_negative(-gap, -step)
        case "GE":
            return _steps_while_negative(-gap - 1, -step)
        case "NE":
            if gap == 0:
                return 0
            return -gap // step if step != 0 and gap % step == 0 and -gap // step > 0 else None
        case "EQ":
            return 0 if gap != 0 else (1 if step != 0 else None)
    return None


def _steps_while_negative(gap: int, step: int) -> int | None:
    """The smallest k ≥ 0 with gap + step·k ≥ 0."""
    if gap >= 0:
        return 0
    return -(gap // step) if step > 0 else None


class _Loop:
    """What a while's condition may ask about its carried values."""

    def __init__(self, module: Module, loop: HloInstructionProto, body: HloComputationProto) -> None:
        self._body = _Local(body)
        caller = module.computations[module.computation_of[loop.id]]
        self._caller = _Local(caller)
        self._init = loop.operand_ids[0]
        self._body_proto = body

    def carried(self, index: int | None) -> _Affine | None:
        """Element `index` of the carried tuple (None: the value carried is no tuple) as a function of the iteration."""
        start = self._start(index)
        step = self._step(index)
        return None if start is None or step is None else _Affine(start, step)

    def _start(self, index: int | None) -> int | None:
        return self._caller.constant(self._element(self._caller, self._init, index))

    def _step(self, index: int | None) -> int | None:
        """What one iteration adds to the element."""
        return self._offset(self._element(self._body, self._body_proto.root_id, index), index)

    def _element(self, local: _Local, value: int, index: int | None) -> int | None:
        if index is None:
            return value
        tuple_ = local.resolve(value)
        if tuple_.opcode != "tuple" or index >= len(tuple_.operand_ids):
            return None
        return tuple_.operand_ids[index]

    def _offset(self, value: int | None, index: int | None) -> int | None:
        """The constant c where `value` is element `index` of the body's parameter plus c."""
        if value is None:
            return None
        instruction = self._body.resolve(value)
        if self._body.is_element(instruction, index):
            return 0
        if instruction.opcode not in ("add", "subtract") or len(instruction.operand_ids) != 2:
            return None
        left, right = instruction.operand_ids
        for value_, constant, flips in ((left, right, False), (right, left, True)):
            addend = self._body.constant(constant)
            if addend is None or (flips and instruction.opcode == "subtract"):
                continue
            rest = self._offset(value_, index)
            if rest is not None:
                return rest + (addend if instruction.opcode == "add" else -addend)
        return None


class _Local:
    """One computation's instructions by id, seen through what does not change a scalar."""

    def __init__(
        self, computation: HloComputationProto, module: Module | None = None, loop: _Loop | None = None
    ) -> None:
        self._by_id = {i.id: i for i in computation.instructions}
        self._module = module
        self._loop = loop

    def resolve(self, id_: int) -> HloInstructionProto:
        """The instruction behind copies, bitcasts, converts and barriers of one operand."""
        instruction = self._by_id[id_]
        while instruction.opcode in _TRANSPARENT and len(instruction.operand_ids) == 1:
            instruction = self._by_id[instruction.operand_ids[0]]
        return instruction

    def constant(self, id_: int | None) -> int | None:
        """Value of an integer constant, or of constants added and multiplied; None for anything else."""
        if id_ is None:
            return None
        instruction = self.resolve(id_)
        if instruction.opcode == "constant":
            return literal_integer(instruction.literal)
        if instruction.opcode not in _ARITHMETIC or len(instruction.operand_ids) != 2:
            return None
        left, right = (self.constant(operand) for operand in instruction.operand_ids)
        return None if left is None or right is None else _apply(instruction.opcode, left, right)

    def is_element(self, instruction: HloInstructionProto, index: int | None) -> bool:
        """Whether `instruction` is element `index` of the parameter (None: the parameter itself)."""
        if index is None:
            return instruction.opcode == "parameter"
        return (
            instruction.opcode == "get-tuple-element"
            and instruction.tuple_index == index
            and self.resolve(instruction.operand_ids[0]).opcode == "parameter"
        )

    def affine(self, id_: int) -> _Affine | None:
        """The scalar as a function of the iteration: constants, carried elements, and their sums."""
        value = self.constant(id_)
        if value is not None:
            return _Affine(value, 0)
        instruction = self.resolve(id_)
        if self._loop is None:
            return None
        if instruction.opcode == "parameter":
            return self._loop.carried(None)
        if instruction.opcode == "get-tuple-element":
            inside = self.resolve(instruction.operand_ids[0])
            return self._loop.carried(instruction.tuple_index) if inside.opcode == "parameter" else None
        if instruction.opcode not in ("add", "subtract"):
            return None
        left, right = (self.affine(operand) for operand in instruction.operand_ids)
        if left is None or right is None:
            return None
        sign = 1 if instruction.opcode == "add" else -1
        return _Affine(left.start + sign * right.start, left.step + sign * right.step)


_TRANSPARENT = frozenset({"copy", "bitcast", "convert", "reshape", "optimization-barrier"})
_ARITHMETIC = frozenset({"add", "subtract", "multiply"})


def _apply(opcode: str, left: int, right: int) -> int:
    if opcode == "add":
        return left + right
    return left - right if opcode == "subtract" else left * right


def literal_integer(literal: LiteralProto) -> int | None:
    """Value of an integer scalar literal; None when it is not one."""
    shape = literal.shape
    if any(d != 1 for d in shape.dimensions):
        return None
    match shape.element_type:
        case hlo_pb2.S32:
            return literal.s32s[0]
        case hlo_pb2.U32:
            return literal.u32s[0]
        case hlo_pb2.S64:
            return literal.s64s[0]
        case hlo_pb2.U64:
            return literal.u64s[0]
        case hlo_pb2.S16:
            return int.from_bytes(literal.s16s, "little", signed=True)
        case hlo_pb2.U16:
            return int.from_bytes(literal.u16s, "little")
        case hlo_pb2.S8:
            return int.from_bytes(literal.s8s, "little", signed=True)
        case hlo_pb2.U8:
            return int.from_bytes(literal.u8s, "little")
    return None
