"""One view of `dot` and of the `convolution` that is a matrix product, by the indices of the einsum they compute.

The TPU compiler writes every dot as a convolution whose spatial dimensions stand for further indices: an index of one
operand alone, a contracted one, or a batch one, told apart by padding, reversal, stride and dilation of the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod

import numpy as np

from engine.errors import UnsupportedError
from engine.hlo.hlo_pb2 import C64, C128, HloInstructionProto, ShapeProto, WindowDimension

_ENUMERATED = 1 << 20
"""Window positions × taps up to which a spatial dimension is looked at; a larger one is no index of an einsum."""


class Role(StrEnum):
    """Where an index of an einsum occurs."""

    LHS = "lhs"
    """In the left operand and the result."""
    RHS = "rhs"
    """In the right operand and the result."""
    BATCH = "batch"
    """In both operands and the result."""
    CONTRACTING = "contracting"
    """In both operands only."""


class NotAnEinsumError(UnsupportedError):
    """A convolution that no einsum expresses; the message is the reason in a few words."""


@dataclass(frozen=True, slots=True)
class Index:
    """One index of an einsum and the dimension that carries it in each array; None where it does not occur."""

    role: Role
    size: int
    lhs: int | None
    rhs: int | None
    out: int | None
    spatial: int | None = None
    """Number of the convolution's spatial dimension that expresses it; None for a dot, features and batches."""

    def operand(self, side: int) -> int | None:
        """Its dimension in operand `side` (0 lhs, 1 rhs)."""
        return self.rhs if side else self.lhs


@dataclass(frozen=True, slots=True)
class Einsum:
    """Indices of a dot or of a convolution that is a matrix product."""

    indices: tuple[Index, ...]
    flops: int
    """Two per multiply-add of real numbers, eight of complex ones."""

    def at_operand(self, side: int, dim: int) -> Index | None:
        """The index along dimension `dim` of operand `side`; None for a dimension of size one that carries none."""
        return next((i for i in self.indices if i.operand(side) == dim), None)

    def at_output(self, dim: int) -> Index | None:
        """The index along dimension `dim` of the result; None for a dimension of size one that carries none."""
        return next((i for i in self.indices if i.out == dim), None)


def read_einsum(instruction: HloInstructionProto, lhs: ShapeProto, rhs: ShapeProto) -> Einsum:
    """The einsum that a `dot` or `convolution` of operands shaped `lhs` and `rhs` computes.

    Raises NotAnEinsumError for convolutions that are none, and for other opcodes.
    """
    if instruction.opcode == "dot":
        indices = _dot_indices(instruction, lhs.dimensions, rhs.dimensions)
    elif instruction.opcode == "convolution":
        indices = _convolution_indices(instruction, lhs.dimensions, rhs.dimensions)
    else:
        raise NotAnEinsumError(f"{instruction.opcode} is no einsum")
    flops = 8 if instruction.shape.element_type in (C64, C128) else 2
    return Einsum(indices, flops * prod(i.size for i in indices))


def resize(instruction: HloInstructionProto, index: Index, size: int) -> None:
    """Make a copy of an einsum run over `size` values of `index`: its result dimension and its window change."""
    if index.out is not None:
        instruction.shape.dimensions[index.out] = size
    if index.spatial is not None:
        instruction.window.dimensions[index.spatial].CopyFrom(_window(index.role, size))


def _dot_indices(dot: HloInstructionProto, lhs: Sequence[int], rhs: Sequence[int]) -> tuple[Index, ...]:
    numbers = dot.dot_dimension_numbers
    batch = list(zip(numbers.lhs_batch_dimensions, numbers.rhs_batch_dimensions, strict=True))
    contracting = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    found = [Index(Role.BATCH, lhs[a], a, b, k) for k, (a, b) in enumerate(batch)]
    found += [Index(Role.CONTRACTING, lhs[a], a, b, None) for a, b in contracting]
    taken_lhs = {a for a, _ in batch + contracting}
    taken_rhs = {b for _, b in batch + contracting}
    out = len(batch)
    for a in (d for d in range(len(lhs)) if d not in taken_lhs):
        found.append(Index(Role.LHS, lhs[a], a, None, out))
        out += 1
    for b in (d for d in range(len(rhs)) if d not in taken_rhs):
        found.append(Index(Role.RHS, rhs[b], None, b, out))
        out += 1
    return tuple(found)


def _convolution_indices(conv: HloInstructionProto, lhs: Sequence[int], rhs: Sequence[int]) -> tuple[Index, ...]:
    for what, count in (("feature", conv.feature_group_count), ("batch", conv.batch_group_count)):
        if count > 1:
            raise NotAnEinsumError(f"true convolution ({what}_group_count={count})")
    n = conv.convolution_dimension_numbers
    found = [
        Index(Role.LHS, lhs[n.input_batch_dimension], n.input_batch_dimension, None, n.output_batch_dimension),
        Index(
            Role.CONTRACTING,
            lhs[n.input_feature_dimension],
            n.input_feature_dimension,
            n.kernel_input_feature_dimension,
            None,
        ),
        Index(
            Role.RHS,
            rhs[n.kernel_output_feature_dimension],
            None,
            n.kernel_output_feature_dimension,
            n.output_feature_dimension,
        ),
    ]
    spatial = zip(n.input_spatial_dimensions, n.kernel_spatial_dimensions, n.output_spatial_dimensions, strict=True)
    for k, (a, b, o) in enumerate(spatial):
        role = _spatial_role(conv.window.dimensions[k], k, lhs[a], conv.shape.dimensions[o])
        if role is None:
            continue
        size = rhs[b] if role is Role.RHS else lhs[a]
        found.append(
            Index(
                role,
                size,
                None if role is Role.RHS else a,
                None if role is Role.LHS else b,
                None if role is Role.CONTRACTING else o,
                k,
            )
        )
    return tuple(found)


def _spatial_role(window: WindowDimension, number: int, size: int, outputs: int) -> Role | None:
    """What index a spatial dimension is, from which products (output, input, kernel) its window takes at all.

    `size` is the input's size there, `outputs` the result's. None where it has one value only.
    """
    taps = window.size
    if taps * outputs <= _ENUMERATED:
        o, k = np.divmod(np.arange(outputs * taps), taps)
        at = o * max(window.stride, 1) + k * max(window.window_dilation, 1) - window.padding_low
        dilation = max(window.base_dilation, 1)
        i, inside = at // dilation, (at >= 0) & (at % dilation == 0) & (at // dilation < size)
        w = taps - 1 - k if window.window_reversal else k
        products = np.stack([o[inside], i[inside], w[inside]])
        count = products.shape[1]
        if (size, taps, outputs) == (1, 1, 1) and count == 1:
            return None
        along, still = np.arange(count), np.zeros(count, np.int64)
        for role, sizes, expected in (
            (Role.LHS, (outputs, outputs, 1), (along, along, still)),
            (Role.RHS, (outputs, 1, outputs), (along, still, along)),
            (Role.BATCH, (outputs, outputs, outputs), (along, along, along)),
            (Role.CONTRACTING, (1, taps, taps), (still, along, along)),
        ):
            if (outputs, size, taps) == sizes and count == max(sizes) and np.array_equal(products, np.stack(expected)):
                return role
    raise NotAnEinsumError(f"true convolution (spatial dimension {number}: window {taps} over {size})")


def _window(role: Role, size: int) -> WindowDimension:
    """A window dimension that makes `size` spatial values an index of that role (the TPU compiler's own forms)."""
    window = WindowDimension(size=size, stride=1, window_dilation=1, base_dilation=1)
    if role is Role.LHS:
        window.size = 1
    elif role is Role.RHS:
        window.padding_low = window.padding_high = size - 1
        window.window_reversal = size > 1
    elif role is Role.BATCH and size > 1:
        window.stride, window.base_dilation = size - 1, size
    return window
