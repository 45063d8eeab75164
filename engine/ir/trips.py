"""How often a `while` runs its body: from XLA's annotation, else from its condition."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, LiteralProto
from engine.ir.module import Module

_Path = tuple[int, ...]

_DEEPEST = 200
"""Longest chain of operations that is followed: counters are short."""


@dataclass(frozen=True, slots=True)
class Trips:
    """A trip count and what it rests on."""

    count: int
    note: str | None = None
    """Set when the count is an assumption: one sentence for the user."""


@dataclass(frozen=True, slots=True)
class _Linear:
    """A sum of the loop's carried scalars and a constant."""

    terms: tuple[tuple[_Path, int], ...]
    """(element of the carried tuple, coefficient), by element; no coefficient is 0."""
    constant: int


@dataclass(frozen=True, slots=True)
class _Frame:
    """One activation of a computation: where its parameters come from."""

    instructions: Mapping[int, HloInstructionProto]
    arguments: tuple[_Value, ...] | None = None
    """By parameter number; None where the parameter is the carried state itself."""


@dataclass(frozen=True, slots=True)
class _Value:
    """An instruction's value within a frame."""

    frame: _Frame
    id: int


def trips_of(module: Module) -> tuple[Mapping[int, int], tuple[str, ...]]:
    """Trip counts of every `while` of the module by instruction id, and a note for each that had to be assumed."""
    reader = _Reader(module)
    counts, notes = {}, []
    for loop in module.by_opcode.get("while", ()):
        trips = _trip_count(reader, loop)
        counts[loop.id] = trips.count
        if trips.note is not None:
            notes.append(trips.note)
    return counts, tuple(notes)


def _trip_count(reader: _Reader, loop: HloInstructionProto) -> Trips:
    annotated = _annotated(loop)
    if annotated is not None:
        return Trips(annotated)
    counted = _from_condition(reader, loop)
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


def _from_condition(reader: _Reader, loop: HloInstructionProto) -> int | None:
    """The loop is ``for (i = start; i < limit; i += step)`` in constants; None when it is anything else.

    Limit and operands may themselves be sums of carried scalars, and sit inside fusions: TPU compilers leave counters
    that step by 2, GPU compilers fuse the comparison.
    """
    if len(loop.called_computation_ids) != 2 or len(loop.operand_ids) != 1:
        return None
    body, condition = (reader.module.computations.get(id_) for id_ in loop.called_computation_ids)
    if body is None or condition is None:
        return None
    found = reader.behind(reader.root(condition))
    comparison = found.frame.instructions.get(found.id)
    if comparison is None or comparison.opcode != "compare" or len(comparison.operand_ids) != 2:
        return None
    left, right = (reader.linear(_Value(found.frame, operand)) for operand in comparison.operand_ids)
    if left is None or right is None:
        return None
    gap, step = 0, 0
    for side, sign in ((left, 1), (right, -1)):
        gap += sign * side.constant
        for path, coefficient in side.terms:
            start, after = reader.initial(loop, path), reader.linear(reader.root(body), path)
            if start is None or after is None or after.terms != ((path, 1),):
                return None
            gap += sign * coefficient * start
            step += sign * coefficient * after.constant
    return _count(gap, step, comparison.comparison_direction)


def _count(gap: int, step: int, direction: str) -> int | None:
    """Iterations k = 0, 1, … until ``gap + step·k  direction  0`` is false; None when it never is."""
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


class _Reader:
    """Reads integer scalars as linear expressions, through tuples, copies, fusions and calls."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def root(self, computation: HloComputationProto) -> _Value:
        return _Value(_Frame(_by_id(computation)), computation.root_id)

    def initial(self, loop: HloInstructionProto, path: _Path, depth: int = 0) -> int | None:
        """Element `path` of what a while starts with; what an outer loop only hands through is looked up before it."""
        where = self.module.computation_of[loop.id]
        value = _Value(_Frame(_by_id(self.module.computations[where])), loop.operand_ids[0])
        found = self.linear(value, path)
        if found is None or depth > _DEEPEST:
            return None
        total = found.constant
        for outer_path, coefficient in found.terms:
            outer = self._loop_around.get(where)
            if outer is None:
                return None
            body = self.module.computations[outer.called_computation_ids[0]]
            if self.linear(self.root(body), outer_path) != _Linear(((outer_path, 1),), 0):
                return None  # the outer loop changes it
            start = self.initial(outer, outer_path, depth + 1)
            if start is None:
                return None
            total += coefficient * start
        return total

    @cached_property
    def _loop_around(self) -> Mapping[int, HloInstructionProto]:
        """Body of a while → the while, where only one has it."""
        found: dict[int, list[HloInstructionProto]] = {}
        for instruction in self.module.instructions.values():
            if instruction.opcode == "while" and len(instruction.called_computation_ids) == 2:
                found.setdefault(instruction.called_computation_ids[0], []).append(instruction)
        return {body: loops[0] for body, loops in found.items() if len(loops) == 1}

    def behind(self, value: _Value) -> _Value:
        """The value without copies, bitcasts, converts, barriers, fusions and calls around it."""
        for _ in range(_DEEPEST):
            instruction = value.frame.instructions.get(value.id)
            if instruction is None:
                return value
            if instruction.opcode in _TRANSPARENT and len(instruction.operand_ids) == 1:
                value = _Value(value.frame, instruction.operand_ids[0])
            elif instruction.opcode in ("fusion", "call") and len(instruction.called_computation_ids) == 1:
                value = self._inside(value.frame, instruction)
            else:
                return value
        return value

    def linear(self, value: _Value, path: _Path = (), depth: int = 0) -> _Linear | None:
        """Element `path` of a value; None where it is no sum of constants and carried scalars."""
        value = self.behind(value)
        instruction = value.frame.instructions.get(value.id)
        if instruction is None or depth > _DEEPEST:
            return None
        operands = [_Value(value.frame, operand) for operand in instruction.operand_ids]
        match instruction.opcode:
            case "constant":
                number = literal_integer(instruction.literal)
                return None if number is None else _Linear((), number)
            case "parameter":
                return self._parameter(value.frame, instruction.parameter_number, path, depth)
            case "get-tuple-element" if operands:
                return self.linear(operands[0], (instruction.tuple_index, *path), depth + 1)
            case "tuple" if path and path[0] < len(operands):
                return self.linear(operands[path[0]], path[1:], depth + 1)
            case "add" | "subtract" | "multiply" if len(operands) == 2:
                left, right = (self.linear(operand, (), depth + 1) for operand in operands)
                return None if left is None or right is None else _combine(instruction.opcode, left, right)
        return None

    def _parameter(self, frame: _Frame, number: int, path: _Path, depth: int) -> _Linear | None:
        if frame.arguments is None:
            return _Linear(((path, 1),), 0) if number == 0 else None
        return self.linear(frame.arguments[number], path, depth + 1) if number < len(frame.arguments) else None

    def _inside(self, frame: _Frame, call: HloInstructionProto) -> _Value:
        callee = self.module.computations[call.called_computation_ids[0]]
        arguments = tuple(_Value(frame, operand) for operand in call.operand_ids)
        return _Value(_Frame(_by_id(callee), arguments), callee.root_id)


def _by_id(computation: HloComputationProto) -> Mapping[int, HloInstructionProto]:
    return {i.id: i for i in computation.instructions}


def _combine(opcode: str, left: _Linear, right: _Linear) -> _Linear | None:
    if opcode == "multiply":
        if left.terms and right.terms:
            return None
        factor, other = (right.constant, left) if left.terms else (left.constant, right)
        return _sum(other, _Linear((), 0), factor, 0)
    return _sum(left, right, 1, 1 if opcode == "add" else -1)


def _sum(left: _Linear, right: _Linear, by_left: int, by_right: int) -> _Linear:
    terms: dict[_Path, int] = {}
    for side, factor in ((left, by_left), (right, by_right)):
        for path, coefficient in side.terms:
            terms[path] = terms.get(path, 0) + factor * coefficient
    kept = tuple(sorted((path, c) for path, c in terms.items() if c))
    return _Linear(kept, by_left * left.constant + by_right * right.constant)


_TRANSPARENT = frozenset({"copy", "bitcast", "convert", "reshape", "opt-barrier"})


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
