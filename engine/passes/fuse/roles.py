"""What an instruction is to fusion, by its opcode alone."""

from __future__ import annotations

from enum import IntEnum

from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.opcodes import ELEMENTWISE


class Role(IntEnum):
    """How an instruction may take part in a fusion."""

    BARRIER = 0
    """Never: collectives, loops, calls, tuples, parameters, what is fused already, what acts on the world."""
    ELEMENTWISE = 1
    """Each element of the result from the same element of the operands."""
    INDEXING = 2
    """Elements move, none is computed: slices, pads, broadcasts, transposes, …"""
    UPDATE = 3
    """A dynamic-update-slice: in place, so only at the end of a fusion."""
    REDUCE = 4
    EINSUM = 5


INDEXING = frozenset(
    ["bitcast", "broadcast", "concatenate", "dynamic-slice", "iota", "pad", "reshape", "reverse", "slice", "transpose"]
)
EINSUMS = frozenset(["dot", "convolution"])
REPEATABLE = INDEXING - {"concatenate", "transpose", "reverse", "pad"} | ELEMENTWISE
"""What is done once in every reader instead of being written to memory, exponentials and the like too."""


def role_of(instruction: HloInstructionProto) -> Role:
    """The role of an instruction that is not inside a fusion yet."""
    opcode = instruction.opcode
    if instruction.shape.tuple_shapes:
        return Role.BARRIER
    if opcode in ELEMENTWISE or opcode == "bitcast-convert":
        return Role.ELEMENTWISE
    if opcode in INDEXING:
        return Role.INDEXING
    if opcode == "dynamic-update-slice":
        return Role.UPDATE
    if opcode == "reduce":
        return Role.REDUCE
    if opcode in EINSUMS:
        return Role.EINSUM
    return Role.BARRIER


def is_scalar_constant(instruction: HloInstructionProto) -> bool:
    """A constant that every reader may carry itself."""
    return instruction.opcode == "constant" and not instruction.shape.dimensions
