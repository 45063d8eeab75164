"""Which block of a sliced array each ring position keeps: the position map π."""

from __future__ import annotations

import numpy as np

from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.graph import Ints
from engine.ir.groups import Groups, Mode
from engine.ir.module import Header
from engine.ir.scalars import ElidedValueError, Scalars, UnknownValueError
from engine.passes.decompose.refusal import Refusal


class NotByPositionError(Refusal):
    """A slice that is not one equal block for each position; the message is the reason in a few words."""


def sliced_dim(dynamic_slice: HloInstructionProto, sizes: tuple[int, ...]) -> int:
    """The one dimension along which `dynamic_slice` takes less than all of an array of `sizes`.

    Raises NotByPositionError where there is none or more than one.
    """
    dims = [
        d for d, (part, whole) in enumerate(zip(dynamic_slice.dynamic_slice_sizes, sizes, strict=True)) if part < whole
    ]
    if not dims:
        raise NotByPositionError("the slice takes the whole array")
    if len(dims) > 1:
        raise NotByPositionError(f"sliced along {len(dims)} dimensions at once")
    return dims[0]


def kept_blocks(
    dynamic_slice: HloInstructionProto, dim: int, whole: int, groups: Groups, header: Header, scalars: Scalars
) -> tuple[Groups, tuple[int, ...]]:
    """The groups, and π: position r of each keeps block π(r) of `whole` elements along `dim`.

    Start indices clamp as XLA defines it. Where groups keep blocks in different orders, their members are reordered
    (a sum does not mind) so that π is the identity. Where the text left a lookup table out, that table is taken to hold
    the positions, which is what partitioners write. Raises NotByPositionError where π is no bijection.
    """
    size = dynamic_slice.dynamic_slice_sizes[dim]
    if size * groups.size != whole:
        raise NotByPositionError(f"slices of {size} of {whole} elements do not match groups of {groups.size}")
    try:
        starts = scalars.on_devices(_start_index(dynamic_slice, dim))
    except ElidedValueError:
        return groups, tuple(range(groups.size))
    except UnknownValueError as error:
        raise NotByPositionError(
            f"where the slice starts is not known from the position: it depends on {error}"
        ) from None
    clamped = np.clip(starts, 0, whole - size)
    odd = clamped[clamped % size != 0]
    if len(odd):
        raise NotByPositionError(f"slices of {size} start at {int(odd[0])}, not at a multiple of it")
    blocks = _by_member(clamped // size, groups.mode, header)
    order = blocks[np.array(groups.members)]
    if not np.array_equal(np.sort(order, axis=1), np.broadcast_to(np.arange(groups.size), order.shape)):
        raise NotByPositionError("two positions of a group keep the same block")
    if np.array_equal(order, np.broadcast_to(order[0], order.shape)):
        return groups, tuple(map(int, order[0]))
    members = np.take_along_axis(np.array(groups.members), np.argsort(order, axis=1), axis=1)
    reordered = tuple(tuple(map(int, group)) for group in members)
    return Groups(reordered, groups.mode), tuple(range(groups.size))


def _start_index(dynamic_slice: HloInstructionProto, dim: int) -> int:
    if len(dynamic_slice.operand_ids) != 1 + len(dynamic_slice.dynamic_slice_sizes):
        raise NotByPositionError("its start indices are one array")
    return dynamic_slice.operand_ids[1 + dim]


def _by_member(values: Ints, mode: Mode, header: Header) -> Ints:
    """Values of devices as values of partitions (or replicas), which they must agree on."""
    table = values.reshape(header.replica_count, header.num_partitions)
    if mode is Mode.REPLICA:
        table = table.T
    if not np.array_equal(table, np.broadcast_to(table[0], table.shape)):
        what = "replica" if mode is Mode.PARTITION else "partition"
        raise NotByPositionError(f"the blocks that are kept differ from {what} to {what}")
    first: Ints = table[0]
    return first
