"""The einsum that a reduction sums up, and how blocks of the result come from blocks of its operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.einsum import Role
from engine.ir.flow import Flow
from engine.ir.literals import literal_array
from engine.passes.decompose.find.collectives import Collective, check_shapes
from engine.passes.decompose.find.einsums import EINSUMS, Einsums
from engine.passes.decompose.find.tracing import LONGEST_PATH, back, is_blockwise, path_operand
from engine.passes.decompose.refusal import Refusal
from engine.passes.decompose.site import Case, EinsumUse, Step
from engine.passes.decompose.verdicts import listed


def producer(flow: Flow, collective: Collective) -> tuple[tuple[HloInstructionProto, ...], int]:
    """The instructions between the einsum and the reduction, in order of data flow, and the einsum.

    Raises Refusal where it reduces something else, or the einsum is too far away.
    """
    check_shapes(flow, collective)
    operands = flow.operands[collective.start]
    path: list[HloInstructionProto] = []
    value = operands[0]
    while flow.opcodes[value] not in EINSUMS:
        written = flow.instructions[value]
        if written.opcode == "pad":
            at = 0
        elif is_blockwise(written):
            at = path_operand(flow, written)
        else:
            raise Refusal(_not_an_einsum(flow, written))
        if len(path) == LONGEST_PATH:
            raise Refusal(f"more than {LONGEST_PATH} instructions lie between it and an einsum")
        path.append(written)
        value = written.operand_ids[at]
    return tuple(reversed(path)), value


def _not_an_einsum(flow: Flow, written: HloInstructionProto) -> str:
    """Why a reduction of `written` is none of an einsum; of a part of one's result, what would make it one."""
    value = written
    while value.opcode in ("slice", "dynamic-slice") or (is_blockwise(value) and len(value.operand_ids) == 1):
        value = flow.instructions[value.operand_ids[0]]
        if value.opcode in EINSUMS:
            return (
                f"reduces {written.name}, a part of what the einsum {value.name} computes: its blocks are none of the "
                f"einsum's; cut the operands of {value.name} instead, so that it computes no more than that"
            )
    return f"reduces {written.name} ({written.opcode}), not an einsum"


def sliced(
    flow: Flow, einsums: Einsums, path: Sequence[HloInstructionProto], einsum: int, dim: int, blocks: int
) -> EinsumUse:
    """The einsum as the source of a scatter along `dim` of what the path ends in. Raises Refusal."""
    for value in (einsum, *(p.id for p in path)):
        _check_single(flow, value)
    at, steps = backwards(flow, path, dim, blocks)
    index = einsums.read(einsum).at_output(at)
    if index is None:
        raise Refusal(f"{flow.name(einsum)} does not run over the scattered dimension")
    valid = _valid(flow, path)
    if valid is None and index.size % blocks:
        raise Refusal(f"{index.size} elements do not divide into {blocks} blocks")
    side = 1 if index.role is Role.RHS else 0
    source = index.operand(side)
    assert source is not None
    other = index.rhs if index.role is Role.BATCH else None
    return EinsumUse(einsum, Case.SCATTER, side, source, other, at, steps, valid)


def _check_single(flow: Flow, value: int) -> None:
    """Raises Refusal where a value has a reader besides the reduction: it would have to be whole for that."""
    users = flow.users(value)
    if value in flow.roots:
        raise Refusal(f"{flow.name(value)} is also the result of its computation")
    if len(users) > 1:
        raise Refusal(f"{flow.name(value)} is read by {listed([flow.name(u) for u in users])}")


def backwards(flow: Flow, path: Sequence[HloInstructionProto], dim: int, blocks: int) -> tuple[int, tuple[Step, ...]]:
    """The blocked dimension before `path`, whose result is blocked along `dim`, and the path as steps.

    Raises Refusal where a block would not stay a block.
    """
    steps: list[Step] = []
    padded = False
    for written in reversed(path):
        block = -(-written.shape.dimensions[dim] // blocks)
        if written.opcode == "pad":
            _check_padding(flow, written, dim)
            steps.append(Step(written.id, 0, dim, block))
            padded = True
            continue
        if padded and written.opcode in ("reshape", "bitcast"):
            raise Refusal(f"{written.name} reshapes blocks of which the last is partly padding")
        operand = path_operand(flow, written)
        steps.append(Step(written.id, operand, dim, block))
        dim = back(written, flow.instructions[written.operand_ids[operand]].shape, dim, blocks)
    return dim, tuple(reversed(steps))


def _valid(flow: Flow, path: Sequence[HloInstructionProto]) -> int | None:
    """Elements along the padded dimension that are no padding; None where nothing is padded."""
    for written in path:
        if written.opcode == "pad":
            before = flow.instructions[written.operand_ids[0]].shape.dimensions
            changed = [a for a, b in zip(before, written.shape.dimensions, strict=True) if a != b]
            return changed[0] if changed else None
    return None


def _check_padding(flow: Flow, written: HloInstructionProto, dim: int) -> None:
    """Raises Refusal unless a pad puts zeros, which change no sum, behind the blocks alone."""
    for d, part in enumerate(written.padding_config.dimensions):
        clean = not part.edge_padding_low and not part.interior_padding
        if not clean or part.edge_padding_high < 0 or (d != dim and part.edge_padding_high):
            raise Refusal(f"{written.name} pads more than the end of the scattered dimension")
    value = flow.instructions[written.operand_ids[1]]
    if value.opcode != "constant" or np.any(literal_array(value.literal)):
        raise Refusal(f"{written.name} pads with something else than zero")
