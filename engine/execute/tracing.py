"""Which parameters of the entry a value comes from: to draw inputs that stay in range where the program uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto, PrimitiveType
from engine.ir import shapes

_MOVEMENTS = """
all-gather all-to-all bitcast broadcast collective-broadcast collective-permute concatenate convert copy dynamic-slice
dynamic-update-slice gather opt-barrier pad reduce-precision reshape reverse select slice transpose
"""
MOVEMENTS = frozenset(_MOVEMENTS.split())
"""Opcodes that put elements elsewhere and leave their values as they are (up to rounding)."""

_INTEGRAL = "add and clamp divide maximum minimum multiply or remainder subtract"
_ARITHMETIC = frozenset(_INTEGRAL.split())
"""What index computations are made of."""


class Leaf(NamedTuple):
    """One array of the entry's parameters."""

    number: int
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Uses:
    """How the program uses its parameters; a leaf that is missing is not used in that way."""

    index_limits: Mapping[Leaf, int]
    """The smallest dimension that an integer leaf is an index into (as whole, where it was partitioned)."""
    fan_in: Mapping[Leaf, int]
    """The largest contraction that a leaf takes part in."""


def uses_of(proto: HloModuleProto, partitions: int) -> Uses:
    """Trace indices and einsum operands back to the entry's parameters. `proto` is one that `legalize` gave."""
    program = _Program(proto)
    limits: dict[Leaf, int] = {}
    fan_in: dict[Leaf, int] = {}
    for computation, instruction in program.instructions():
        for operand, limit in _indices(instruction, program):
            for leaf, shifted in program.sources(computation, operand, arithmetic=True):
                whole = limit * partitions if shifted else limit
                limits[leaf] = min(limits.get(leaf, whole), whole)
        for operand, size in _contractions(instruction, program):
            for leaf, _ in program.sources(computation, operand, arithmetic=False):
                fan_in[leaf] = max(fan_in.get(leaf, size), size)
    return Uses(limits, fan_in)


class _Program:
    def __init__(self, proto: HloModuleProto) -> None:
        self._computations = {c.id: c for c in proto.computations}
        self._by_id = {i.id: i for c in proto.computations for i in c.instructions}
        self._entry = proto.entry_computation_id
        self._callers: dict[int, list[tuple[int, HloInstructionProto]]] = {}
        for computation, instruction in self.instructions():
            for callee in instruction.called_computation_ids:
                self._callers.setdefault(callee, []).append((computation, instruction))

    def instructions(self) -> Iterator[tuple[int, HloInstructionProto]]:
        for computation in self._computations.values():
            for instruction in computation.instructions:
                yield computation.id, instruction

    def get(self, id_: int) -> HloInstructionProto:
        return self._by_id[id_]

    def sources(self, computation: int, value: int, *, arithmetic: bool) -> Iterator[tuple[Leaf, bool]]:
        """Entry leaves that the value moves from, and whether an offset was subtracted on the way."""
        stack: list[tuple[int, int, tuple[int, ...], bool]] = [(computation, value, (), False)]
        seen: set[tuple[int, tuple[int, ...], bool]] = set()
        while stack:
            where, id_, path, shifted = stack.pop()
            if (id_, path, shifted) in seen:
                continue
            seen.add((id_, path, shifted))
            instruction = self._by_id[id_]
            if instruction.opcode == "parameter" and where == self._entry:
                yield Leaf(instruction.parameter_number, path), shifted
                continue
            for next_where, next_id, next_path in self._before(where, instruction, path, arithmetic):
                stack.append((next_where, next_id, next_path, shifted or instruction.opcode == "subtract"))

    def _before(
        self, where: int, instruction: HloInstructionProto, path: tuple[int, ...], arithmetic: bool
    ) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        opcode, operands = instruction.opcode, instruction.operand_ids
        if opcode == "get-tuple-element":
            yield where, operands[0], (instruction.tuple_index, *path)
        elif opcode == "tuple" and path:
            yield where, operands[path[0]], path[1:]
        elif opcode == "parameter":
            yield from self._arguments(where, instruction, path)
        elif opcode == "call":
            callee = self._computations[instruction.called_computation_ids[0]]
            yield callee.id, callee.root_id, path
        elif opcode == "while":
            yield where, operands[0], path
        elif opcode in MOVEMENTS or (arithmetic and opcode in _ARITHMETIC):
            kept = operands[1:] if opcode == "select" else operands
            moved = kept[:1] if opcode in ("dynamic-slice", "gather", "pad") else kept
            for operand in moved:
                yield where, operand, path

    def _arguments(
        self, where: int, parameter: HloInstructionProto, path: tuple[int, ...]
    ) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        for caller, instruction in self._callers.get(where, ()):
            if instruction.opcode in ("call", "while"):
                yield caller, instruction.operand_ids[parameter.parameter_number], path
            elif instruction.opcode == "conditional":
                branches = zip(instruction.called_computation_ids, instruction.operand_ids[1:], strict=True)
                yield from ((caller, operand, path) for branch, operand in branches if branch == where)


def _indices(instruction: HloInstructionProto, program: _Program) -> Iterator[tuple[int, int]]:
    """Operands that are indices, and how many values they may have."""
    opcode, operands = instruction.opcode, instruction.operand_ids
    if opcode in ("dynamic-slice", "dynamic-update-slice"):
        dims = program.get(operands[0]).shape.dimensions
        first = 1 if opcode == "dynamic-slice" else 2
        sizes = (instruction if opcode == "dynamic-slice" else program.get(operands[1])).shape.dimensions
        if len(operands) - first == len(dims):
            for operand, size, part in zip(operands[first:], dims, sizes, strict=True):
                yield operand, size - part + 1
    elif opcode in ("gather", "scatter"):
        numbers = instruction.gather_dimension_numbers if opcode == "gather" else None
        mapped = (
            instruction.scatter_dimension_numbers.scatter_dims_to_operand_dims
            if numbers is None
            else numbers.start_index_map
        )
        dims = program.get(operands[0]).shape.dimensions
        position = 1 if opcode == "gather" else (len(operands) - 1) // 2
        if mapped:
            yield operands[position], min(dims[d] for d in mapped)


def _contractions(instruction: HloInstructionProto, program: _Program) -> Iterator[tuple[int, int]]:
    """Einsum operands, and how many products are added up for one element of the result."""
    opcode, operands = instruction.opcode, instruction.operand_ids
    if opcode not in ("dot", "convolution"):
        return
    left, right = (program.get(o).shape for o in operands[:2])
    result = max(1, shapes.element_count(instruction.shape))
    if opcode == "dot":
        size = 1
        for d in instruction.dot_dimension_numbers.lhs_contracting_dimensions:
            size *= left.dimensions[d]
    else:
        size = max(1, shapes.element_count(left) * shapes.element_count(right) // result)
        size = int(size**0.5)  # exact where it is a matrix product: (m·k)(k·n) / (m·n) = k²
    for operand in operands[:2]:
        yield operand, size


def moves_only(computation: HloComputationProto, value: int) -> bool:
    """Whether a result is made of parameters and constants by moving elements, without any floating-point arithmetic.

    Integers may be computed with: they are exact. Loops and calls are not looked into.
    """
    by_id = {i.id: i for i in computation.instructions}
    stack, seen = [value], {value}
    while stack:
        instruction = by_id[stack.pop()]
        exact = instruction.opcode in MOVEMENTS - {"convert", "reduce-precision"}
        given = instruction.opcode in ("parameter", "constant", "iota", "tuple", "get-tuple-element")
        integral = all(
            not shapes.is_floating(leaf.element_type) and not shapes.is_complex(leaf.element_type)
            for _, leaf in shapes.leaves(instruction.shape)
        )
        if not (exact or given or (integral and not instruction.called_computation_ids)):
            return False
        for operand in instruction.operand_ids:
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return True


def types_behind(module: HloModuleProto, value: int) -> frozenset[PrimitiveType]:
    """Element types of everything that a value of the entry computation is made of, called computations included.

    All of a called computation counts, whichever of its results are used.
    """
    computations = {c.id: c for c in module.computations}
    by_id = {i.id: i for i in computations[module.entry_computation_id].instructions}
    stack, seen = [value], {value}
    called: set[int] = set()
    types: set[PrimitiveType] = set()
    while stack:
        instruction = by_id[stack.pop()]
        types.update(leaf.element_type for _, leaf in shapes.leaves(instruction.shape))
        called.update(instruction.called_computation_ids)
        fresh = set(instruction.operand_ids) - seen
        seen |= fresh
        stack.extend(fresh)
    below = list(called)
    while below:
        for instruction in computations[below.pop()].instructions:
            types.update(leaf.element_type for _, leaf in shapes.leaves(instruction.shape))
            fresh = set(instruction.called_computation_ids) - called
            called |= fresh
            below.extend(fresh)
    return frozenset(types)
