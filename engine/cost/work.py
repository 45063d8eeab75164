"""What one instruction does, whatever the machine: matmuls, element-wise operations, bytes to and from each memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from engine.cost.matmul import Matmul, matmul_of
from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, ShapeProto
from engine.ir import shapes
from engine.ir.module import Module

FREE = frozenset(
    {
        "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "partition-id", "replica-id", "after-all",
        "opt-barrier", "optimization-barrier", "add-dependency", "get-dimension-size", "domain",
    }
)  # fmt: skip
"""Opcodes that cost nothing."""
_SLICING = frozenset({"slice", "dynamic-slice", "gather"})
_TRANSCENDENTAL = frozenset(
    {
        "exponential", "exponential-minus-one", "log", "log-plus-one", "tanh", "logistic", "sine", "cosine", "tan",
        "power", "erf", "cbrt", "atan2", "rsqrt", "sqrt", "divide", "remainder",
    }
)  # fmt: skip
_MOVES = frozenset({"copy", "transpose", "reshape", "broadcast", "concatenate", "pad", "reverse", "slice", "iota"})


@dataclass(slots=True)
class Work:
    """Added up over one instruction, its fused computation included."""

    matmuls: list[Matmul] = field(default_factory=list)
    vector: float = 0.0
    """Element-wise operations."""
    transcendental: float = 0.0
    hbm: float = 0.0
    """Bytes read from and written to HBM."""
    onchip: float = 0.0
    """Bytes read from and written to other memory spaces."""

    @property
    def flops(self) -> float:
        return sum(m.flops for m in self.matmuls) + self.vector + self.transcendental


@dataclass(frozen=True, slots=True)
class _Body:
    """A fused computation, seen from outside."""

    matmuls: tuple[Matmul, ...]
    vector: float
    transcendental: float
    reads: tuple[float | None, ...]
    """Bytes of each parameter that are read; None is all of it."""
    writes: tuple[float | None, ...]
    """Bytes of each leaf of the result that are written; None is all of it."""


class Reader:
    """Reads the work of a module's instructions; fused computations are read once."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._bodies: dict[int, _Body] = {}

    @cached_property
    def _instructions(self) -> Mapping[int, HloInstructionProto]:
        return self._module.instructions

    def work(self, instruction: HloInstructionProto) -> Work:
        """Work of one execution; zero for instructions that cost nothing or whose callees are priced by themselves."""
        found = Work()
        if instruction.opcode in FREE:
            return found
        operands = [self._instructions[o].shape for o in instruction.operand_ids]
        if instruction.opcode == "fusion":
            body = self._body(instruction.called_computation_ids[0])
            found.matmuls.extend(body.matmuls)
            found.vector, found.transcendental = body.vector, body.transcendental
            reads, writes = body.reads, body.writes
        else:
            _compute(found, instruction, operands)
            reads, writes = _touched(instruction, operands)
        for shape, read in zip(operands, reads, strict=False):
            _move(found, shape, read)
        for (_, shape), written in zip(shapes.leaves(instruction.shape), writes, strict=False):
            _move(found, shape, written)
        return found

    def _body(self, computation: int) -> _Body:
        found = self._bodies.get(computation)
        if found is None:
            found = self._bodies[computation] = self._read(self._module.computations[computation])
        return found

    def _read(self, computation: HloComputationProto) -> _Body:
        local = {i.id: i for i in computation.instructions}
        work = Work()
        parameters = sorted((i for i in local.values() if i.opcode == "parameter"), key=lambda i: i.parameter_number)
        reads: dict[int, float | None] = {p.id: 0.0 for p in parameters}
        source: dict[int, int] = {p.id: p.id for p in parameters}
        in_place = {i.operand_ids[0]: i for i in local.values() if i.opcode == "dynamic-update-slice"}
        for instruction in local.values():
            operands = [local[o].shape for o in instruction.operand_ids]
            if instruction.opcode == "bitcast" and instruction.operand_ids[0] in source:
                source[instruction.id] = source[instruction.operand_ids[0]]
                continue
            if instruction.opcode in FREE:
                continue
            if instruction.opcode == "fusion":
                inner = self._body(instruction.called_computation_ids[0])
                work.matmuls.extend(inner.matmuls)
                work.vector += inner.vector
                work.transcendental += inner.transcendental
                touched = inner.reads
            else:
                _compute(work, instruction, operands)
                touched, _ = _touched(instruction, operands)
            for operand, read in zip(instruction.operand_ids, touched, strict=False):
                if operand in source:
                    parameter = source[operand]
                    total = reads[parameter]
                    reads[parameter] = None if read is None or total is None else total + read
        full = {p.id: _bytes(p.shape) for p in parameters}
        limited = tuple(None if (read := reads[p.id]) is None or read >= full[p.id] else read for p in parameters)
        del in_place
        return _Body(
            tuple(work.matmuls), work.vector, work.transcendental, limited, tuple(self._writes(computation, local))
        )

    def _writes(
        self, computation: HloComputationProto, local: Mapping[int, HloInstructionProto]
    ) -> Iterator[float | None]:
        root = local[computation.root_id]
        outputs = [local[o] for o in root.operand_ids] if root.opcode == "tuple" else [root]
        for output in outputs:
            while output.opcode == "bitcast":
                output = local[output.operand_ids[0]]
            if output.opcode == "dynamic-update-slice":
                yield _bytes(local[output.operand_ids[1]].shape)
            elif output.opcode == "fusion":
                yield from self._body(output.called_computation_ids[0]).writes
            else:
                yield None


def _bytes(shape: ShapeProto) -> float:
    return float(shapes.byte_count(shape))


def _move(work: Work, shape: ShapeProto, part: float | None) -> None:
    size = _bytes(shape) if part is None else part
    if shapes.memory_space(shape):
        work.onchip += size
    else:
        work.hbm += size


def _touched(
    instruction: HloInstructionProto, operands: list[ShapeProto]
) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
    """Bytes read of each operand and written of each result leaf; None is all."""
    opcode = instruction.opcode
    if opcode in _SLICING:
        return (_bytes(instruction.shape), *(None for _ in operands[1:])), (None,)
    if opcode == "dynamic-update-slice":
        return (0.0, *(None for _ in operands[1:])), (_bytes(operands[1]),)
    if opcode == "scatter":
        update = _bytes(operands[-1])
        return (update, *(None for _ in operands[1:])), (update,)
    return tuple(None for _ in operands), tuple(None for _ in shapes.leaves(instruction.shape))


def _compute(work: Work, instruction: HloInstructionProto, operands: list[ShapeProto]) -> None:
    opcode = instruction.opcode
    if opcode in ("dot", "convolution"):
        work.matmuls.append(matmul_of(instruction, operands[0], operands[1]))
    elif opcode in ("reduce", "reduce-window", "sort", "select-and-scatter"):
        work.vector += sum(prod(o.dimensions) for o in operands)
    elif opcode in _TRANSCENDENTAL:
        work.transcendental += prod(instruction.shape.dimensions)
    elif opcode not in _MOVES and opcode != "dynamic-update-slice":
        work.vector += shapes.element_count(instruction.shape)
