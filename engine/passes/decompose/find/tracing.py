"""How a dimension cut into N equal blocks runs through instructions that only reshape or work element by element.

"Blocked along d" is as in `engine.passes.decompose.site`. `through` follows a block from an operand to the result,
`back` from the result to the operand; both refuse where a block would not stay one contiguous part of one dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from engine.hlo.hlo_pb2 import HloInstructionProto, ShapeProto
from engine.ir.flow import Flow
from engine.ir.opcodes import ELEMENTWISE
from engine.passes.decompose.refusal import Refusal

LONGEST_PATH = 100
"""Instructions that are followed between a collective and an einsum."""

_SHARDING_CALLS = frozenset({"Sharding", "xla.sdy.FuncResultSharding"})


def is_blockwise(instruction: HloInstructionProto) -> bool:
    """Whether blocks may run through it at all."""
    opcode = instruction.opcode
    if opcode == "custom-call":
        return instruction.custom_call_target in _SHARDING_CALLS
    return opcode in ELEMENTWISE or opcode in ("transpose", "reshape", "bitcast", "broadcast", "opt-barrier")


def path_operand(flow: Flow, instruction: HloInstructionProto) -> int:
    """The operand that blocks come through: the only one that is not a scalar, or a scalar repeated.

    Raises Refusal where there are several.
    """
    arrays = [k for k, o in enumerate(instruction.operand_ids) if not is_scalar(flow, o)]
    if len(arrays) != 1:
        taken = "several arrays" if arrays else "scalars alone"
        raise Refusal(f"{instruction.name} ({instruction.opcode}) takes {taken}")
    return arrays[0]


def is_scalar(flow: Flow, id_: int) -> bool:
    """Whether a value is a scalar, or one repeated, so that a block of it is the same scalar repeated less."""
    while flow.opcodes[id_] in ("broadcast", "reshape", "convert", "copy", "bitcast"):
        if prod(flow.instructions[id_].shape.dimensions) == 1:
            return True
        id_ = flow.operands[id_][0]
    return prod(flow.instructions[id_].shape.dimensions) == 1 and flow.opcodes[id_] != "tuple"


def through(instruction: HloInstructionProto, operand: ShapeProto, dim: int, blocks: int) -> int:
    """The dimension of the result that is blocked when `operand`, on the path, is blocked along `dim`.

    Raises Refusal.
    """
    opcode = instruction.opcode
    if opcode == "transpose":
        return list(instruction.dimensions).index(dim)
    if opcode == "broadcast":
        return instruction.dimensions[dim]
    if opcode in ("reshape", "bitcast"):
        return _reshaped(instruction, operand, instruction.shape, dim, blocks)
    return _unchanged(instruction, dim)


def back(instruction: HloInstructionProto, operand: ShapeProto, dim: int, blocks: int) -> int:
    """The dimension of `operand`, on the path, that is blocked when the result is blocked along `dim`.

    Raises Refusal.
    """
    opcode = instruction.opcode
    if opcode == "transpose":
        return instruction.dimensions[dim]
    if opcode == "broadcast":
        if dim not in instruction.dimensions:
            raise Refusal(f"{instruction.name} repeats it along the dimension that is sliced")
        return list(instruction.dimensions).index(dim)
    if opcode in ("reshape", "bitcast"):
        return _reshaped(instruction, instruction.shape, operand, dim, blocks)
    return _unchanged(instruction, dim)


def reshaped_dim(before: Sequence[int], after: Sequence[int], dim: int, blocks: int) -> int | None:
    """Where `blocks` equal blocks along `dim` of row-major sizes `before` lie in row-major sizes `after`.

    The same elements in as many contiguous blocks along one dimension; None where no dimension has them.
    """
    ahead, size = prod(before[:dim]), before[dim]
    if size % blocks:
        return None
    outer = 1
    for d, n in enumerate(after):
        if outer == ahead and n > 1 and n % blocks == 0:
            return d
        if outer > ahead:
            return None
        outer *= n
    return None


def _reshaped(instruction: HloInstructionProto, before: ShapeProto, after: ShapeProto, dim: int, blocks: int) -> int:
    if instruction.opcode == "reshape":
        found = reshaped_dim(before.dimensions, after.dimensions, dim, blocks)
    else:
        # A bitcast keeps the bytes where they are: it reshapes the dimensions in the order memory has them.
        if before.element_type != after.element_type:
            raise Refusal(f"{instruction.name} changes the type of the bytes it reads")
        order, new_order = _major_to_minor(before), _major_to_minor(after)
        physical = [before.dimensions[d] for d in order], [after.dimensions[d] for d in new_order]
        at = reshaped_dim(*physical, order.index(dim), blocks)
        found = None if at is None else new_order[at]
    if found is None:
        raise Refusal(f"{instruction.name} takes the blocks apart")
    return found


def _major_to_minor(shape: ShapeProto) -> list[int]:
    written = list(shape.layout.minor_to_major)
    return written[::-1] if written else list(range(len(shape.dimensions)))


def _unchanged(instruction: HloInstructionProto, dim: int) -> int:
    if not is_blockwise(instruction) or instruction.shape.tuple_shapes:
        raise Refusal(f"{instruction.name} ({instruction.opcode}) needs the whole array")
    return dim
