"""What stood between a collective and an einsum, and the einsum itself, done again on single blocks of their arrays."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import UnsupportedError
from engine.hlo.hlo_pb2 import F32, PrimitiveType, ShapeProto
from engine.ir import shapes
from engine.ir.build import Builder, resized
from engine.ir.edit import Editor, Instruction
from engine.ir.einsum import Einsum, resize
from engine.passes.decompose.site import Step

_TYPE_KEEPING = frozenset({"bitcast", "copy", "reshape", "transpose", "broadcast", "slice", "pad"})
"""Opcodes whose result has its operand's element type."""

_PASSED_OVER = frozenset({"custom-call", "opt-barrier"})
"""On a path these say something about the whole array only (a sharding, where it may not be moved to)."""


def redo_path(builder: Builder, steps: Sequence[Step], block: Instruction) -> Instruction:
    """`block` after all of `steps`."""
    for step in steps:
        block = redo_step(builder, step, block)
    return block


def redo_step(builder: Builder, step: Step, block: Instruction) -> Instruction:
    """One instruction of a path on one block. A block in f32 stays in f32: see `Variant.accumulate`."""
    original = builder.editor.instruction(step.instruction)
    if original.opcode in _PASSED_OVER:
        return block
    shape = resized(original.shape, original.shape.dimensions)
    shape.dimensions[step.dim] = step.block
    if original.opcode in _TYPE_KEEPING or _widened(builder.editor, original, step.operand, block):
        shape.element_type = block.shape.element_type
    if original.opcode == "convert" and shape.element_type == block.shape.element_type:
        return block
    operands = [
        block if k == step.operand else _beside(builder, operand, step.dim, step.block, original)
        for k, operand in enumerate(builder.editor.operands(step.instruction))
    ]
    return redo(builder, original, operands, step.dim, shape)


def redo(
    builder: Builder, original: Instruction, operands: Sequence[Instruction], dim: int, shape: ShapeProto
) -> Instruction:
    """`original` over blocks of its operands, with the `shape` of its block; its other attributes are cut to fit."""
    if original.opcode in ("slice", "pad") and shapes.same(shape, operands[0].shape):
        return operands[0]
    made = builder.clone(original, shape, operands, "block")
    if made.opcode == "bitcast" and not _changes_order(original, builder.editor):
        made.opcode = "reshape"
    elif made.opcode == "slice":
        made.slice_dimensions[dim].CopyFrom(Instruction.SliceDimensions(limit=shape.dimensions[dim], stride=1))
    elif made.opcode == "pad":
        made.padding_config.dimensions[dim].Clear()
    return made


def partial_einsum(
    builder: Builder,
    original: Instruction,
    einsum: Einsum,
    operands: tuple[Instruction, Instruction],
    element_type: PrimitiveType,
) -> Instruction:
    """`original` over parts of its operands: every index takes the size that they have."""
    shape = resized(original.shape, original.shape.dimensions)
    shape.element_type = element_type
    made = builder.clone(original, shape, operands, "partial")
    for index in einsum.indices:
        side = 0 if index.lhs is not None else 1
        dim = index.operand(side)
        size = index.size if dim is None else operands[side].shape.dimensions[dim]
        if size != index.size:
            resize(made, index, size)
    return made


def stacked_einsum(
    builder: Builder,
    original: Instruction,
    einsum: Einsum,
    operands: tuple[Sequence[Instruction], Instruction],
    side: int,
    out: int,
    element_type: PrimitiveType,
) -> list[Instruction]:
    """`original`, a dot, over several blocks of operand `side` at once: the result of each block.

    `operands` are the blocks, alike in shape and cut along the free dimension that is dimension `out` of the result,
    and the other operand. The blocks are stacked along a dimension of their own in front of that one, so that what
    comes of each lies in one piece.
    """
    blocks, other = operands
    dim = next(d for index in einsum.indices if index.out == out and (d := index.operand(side)) is not None)
    block = blocks[0].shape.dimensions
    stacked = builder.concatenate([builder.reshape(b, _with(block, dim, 1)) for b in blocks], dim)
    sizes = list(original.shape.dimensions)
    sizes[out] = block[dim]
    shape = shapes.with_dimensions(original.shape, _with(sizes, out, len(blocks)))
    shape.element_type = element_type
    made = builder.clone(original, shape, (stacked, other) if side == 0 else (other, stacked), "partial")
    numbers = made.dot_dimension_numbers
    lhs = numbers.lhs_contracting_dimensions, numbers.lhs_batch_dimensions
    rhs = numbers.rhs_contracting_dimensions, numbers.rhs_batch_dimensions
    for dimensions in lhs if side == 0 else rhs:
        dimensions[:] = [d + (d >= dim) for d in dimensions]
    return [builder.reshape(builder.slice(made, out, k, k + 1), sizes) for k in range(len(blocks))]


def _with(sizes: Sequence[int], at: int, size: int) -> list[int]:
    """`sizes` and one more, `size`, before dimension `at`."""
    return [*sizes[:at], size, *sizes[at:]]


def accumulator_type(element_type: PrimitiveType, accumulate: str) -> PrimitiveType:
    """In which type partial results are added up: f32 for floats of fewer bits where that is wanted."""
    narrow = shapes.is_floating(element_type) and shapes.bits(element_type) < shapes.bits(F32)
    return F32 if accumulate == "f32" and narrow else element_type


def _beside(builder: Builder, operand: Instruction, dim: int, size: int, reader: Instruction) -> Instruction:
    """An operand off the path, for a block: scalars stay, broadcasts are made as long as the block along `dim`."""
    if not operand.shape.dimensions:
        return operand
    if operand.opcode == "broadcast" and dim not in operand.dimensions:
        return shortened_broadcast(builder, operand, dim, size)
    raise UnsupportedError(f"{reader.name} also reads {operand.name}, which is no broadcast along dimension {dim}")


def shortened_broadcast(builder: Builder, broadcast: Instruction, dim: int, size: int) -> Instruction:
    """The same broadcast to `size` elements along `dim`, which it must not take from its operand."""

    def make() -> Instruction:
        shape = resized(broadcast.shape, broadcast.shape.dimensions)
        shape.dimensions[dim] = size
        return builder.clone(broadcast, shape, builder.editor.operands(broadcast.id), "block")

    return builder.once(("block", broadcast.id, dim, size), make)


def _widened(editor: Editor, original: Instruction, operand: int, block: Instruction) -> bool:
    """Whether the block carries more bits than the original had there, which the rest of the path is to keep."""
    was = editor.instruction(original.operand_ids[operand]).shape.element_type
    now = block.shape.element_type
    return now != was and shapes.is_floating(original.shape.element_type) and shapes.bits(now) > shapes.bits(was)


def _changes_order(bitcast: Instruction, editor: Editor) -> bool:
    """Whether a bitcast changes the order of dimensions in memory, so that no reshape says the same."""
    both = (bitcast.shape, editor.operands(bitcast.id)[0].shape)
    return any(list(s.layout.minor_to_major) != list(range(len(s.dimensions) - 1, -1, -1)) for s in both)
