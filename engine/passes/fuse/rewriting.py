"""Rewrites that let more fuse: concatenations become maxima of pads, reshapes move behind slices.

Concatenate(a, b) = Max(a padded after its end, b padded before its start) with the least value of the type as padding
(Wang et al. §5.4.3). A maximum keeps NaNs, infinities and the sign of zeros that way: every element meets only
padding. (A device that flushes subnormal numbers in arithmetic flushes them here too; the einsum that reads the result
does so anyway.) Integers are added with 0 instead. Complex numbers stay: they have no maximum, and 0 + -0 loses the
sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from engine.hlo.hlo_pb2 import (
    PRED,
    HloComputationProto,
    HloInstructionProto,
    LiteralProto,
    PaddingConfig,
    PrimitiveType,
    ShapeProto,
)
from engine.ir import shapes
from engine.ir.edit import Editor
from engine.ir.module import Module
from engine.passes.fuse.dimensions import carry_range
from engine.passes.fuse.roles import EINSUMS, Role, role_of

MOST_PARTS = 4
"""Operands up to which a concatenation is worth a chain of pads."""


def rewrite(module: Module) -> Module:
    """`module` with both rewrites done where they expose a fusion; itself where they do nowhere."""
    found = [i for computation in module.proto.computations for i in _worth_a_look(computation)]
    if not found:
        return module
    editor = Editor(module)
    for instruction in found:
        if instruction.opcode == "concatenate":
            _rewrite_concatenate(editor, instruction.id)
        else:
            _move_reshape(editor, instruction.id)
    return editor.finish()


def _worth_a_look(computation: HloComputationProto) -> Iterator[HloInstructionProto]:
    """Concatenations that an einsum reads, and slices of reshaped einsums. Most modules have none."""
    of: dict[str, list[HloInstructionProto]] = {}
    for instruction in computation.instructions:
        of.setdefault(instruction.opcode, []).append(instruction)
    einsums = [i for opcode in EINSUMS for i in of.get(opcode, ())]
    made = {i.id for i in einsums}
    read = {o for i in einsums for o in i.operand_ids}
    reshaped = {i.id for i in of.get("reshape", ()) if i.operand_ids[0] in made}
    yield from (i for i in of.get("concatenate", ()) if i.id in read)
    yield from (i for i in of.get("slice", ()) if i.operand_ids[0] in reshaped)


def _rewrite_concatenate(editor: Editor, node: int) -> None:
    whole = editor.instruction(node)
    if not 2 <= len(whole.operand_ids) <= MOST_PARTS or not _feeds_einsum(editor, node):
        return
    joined = _joining(whole.shape.element_type)
    if joined is None:
        return
    opcode, padding = joined
    computation = editor.computation_of(node)
    literal = _literal(whole.shape.element_type, padding)
    constant = HloInstructionProto(opcode="constant", shape=literal.shape, literal=literal)
    least = editor.add(computation, constant, name=f"{whole.name}.padding", origins=(node,), before=node)
    (dim,) = whole.dimensions
    at = 0
    result: HloInstructionProto | None = None
    for operand in tuple(whole.operand_ids):
        length = editor.instruction(operand).shape.dimensions[dim]
        padded = _pad(editor, whole, operand, least.id, at, whole.shape.dimensions[dim] - at - length)
        at += length
        result = padded if result is None else _combine(editor, whole, opcode, result.id, padded.id)
    assert result is not None
    editor.replace_uses(node, result.id)
    editor.remove_dead([node])


def _feeds_einsum(editor: Editor, node: int) -> bool:
    """Whether its only reader is one einsum: a reader more, and the whole array would be written anyway."""
    users = editor.users(node)
    return len(users) == 1 and not editor.is_root(node) and role_of(editor.instruction(users[0])) is Role.EINSUM


def _joining(element_type: PrimitiveType) -> tuple[str, float | int] | None:
    """(opcode, padding) that puts padded parts together without changing any element; None where there is none."""
    if element_type == PRED:
        return "or", 0
    if shapes.is_integer(element_type):
        return "add", 0
    if not shapes.is_floating(element_type):
        return None
    dtype = shapes.numpy_dtype(element_type)
    least = np.array(-np.inf).astype(dtype)
    if np.isinf(least.astype(np.float64)):
        return "maximum", -np.inf
    patterns = np.arange(1 << shapes.bits(element_type), dtype=np.uint8).view(dtype).astype(np.float64)
    lowest = float(np.nanmin(patterns))
    # An unsigned type (f8e8m0fnu) has no negative number, and one without NaN or infinity has a lowest finite one.
    return ("maximum", lowest) if lowest < 0 else None


def _literal(element_type: PrimitiveType, value: float) -> LiteralProto:
    literal = LiteralProto(shape=shapes.array(element_type))
    name = shapes.dtype_name(element_type)
    if name in ("f32", "f64"):
        getattr(literal, f"{name}s").append(value)
    elif name == "pred":
        literal.preds.append(bool(value))
    elif name in ("s32", "s64", "u32", "u64"):
        getattr(literal, f"{name}s").append(int(value))
    else:
        setattr(literal, f"{name}s", np.array(value).astype(shapes.numpy_dtype(element_type)).tobytes())
    return literal


def _pad(
    editor: Editor, whole: HloInstructionProto, operand: int, padding: int, low: int, high: int
) -> HloInstructionProto:
    (dim,) = whole.dimensions
    config = PaddingConfig(dimensions=[PaddingConfig.PaddingConfigDimension() for _ in whole.shape.dimensions])
    config.dimensions[dim].edge_padding_low = low
    config.dimensions[dim].edge_padding_high = high
    pad = HloInstructionProto(opcode="pad", shape=whole.shape, padding_config=config, metadata=whole.metadata)
    pad.operand_ids.extend((operand, padding))
    return editor.add(
        editor.computation_of(whole.id), pad, name=f"{whole.name}.pad", origins=(whole.id,), before=whole.id
    )


def _combine(editor: Editor, whole: HloInstructionProto, opcode: str, a: int, b: int) -> HloInstructionProto:
    both = HloInstructionProto(opcode=opcode, shape=whole.shape, metadata=whole.metadata)
    both.operand_ids.extend((a, b))
    return editor.add(
        editor.computation_of(whole.id), both, name=f"{whole.name}.{opcode}", origins=(whole.id,), before=whole.id
    )


def _move_reshape(editor: Editor, node: int) -> None:
    """slice(reshape(einsum)) becomes reshape(slice(einsum)), so that the einsum is seen to be taken apart."""
    piece = editor.instruction(node)
    reshape = editor.instruction(piece.operand_ids[0])
    if reshape.opcode != "reshape":
        return
    source = editor.instruction(reshape.operand_ids[0])
    if role_of(source) is not Role.EINSUM or any(r.stride != 1 for r in piece.slice_dimensions):
        return
    ranges = _carried(piece, source.shape, reshape.shape)
    if ranges is None:
        return
    cut = HloInstructionProto(opcode="slice", shape=source.shape, metadata=piece.metadata)
    cut.shape.dimensions[:] = [stop - start for start, stop in ranges]
    cut.shape.is_dynamic_dimension[:] = [False] * len(ranges)
    for start, stop in ranges:
        cut.slice_dimensions.add(start=start, limit=stop, stride=1)
    cut.operand_ids.append(source.id)
    computation = editor.computation_of(node)
    moved = editor.add(computation, cut, name=piece.name, origins=(node,), before=node)
    shaped = HloInstructionProto(opcode="reshape", shape=piece.shape, metadata=reshape.metadata)
    shaped.operand_ids.append(moved.id)
    made = editor.add(computation, shaped, name=reshape.name, origins=(reshape.id,), before=node)
    editor.replace_uses(node, made.id)
    editor.remove_dead([node])


def _carried(piece: HloInstructionProto, source: ShapeProto, reshaped: ShapeProto) -> Sequence[tuple[int, int]] | None:
    wanted = [(r.start, r.limit) for r in piece.slice_dimensions]
    return carry_range(wanted, tuple(reshaped.dimensions), tuple(source.dimensions))
