"""Dots and convolutions as batched matmuls: which dimension plays which role, how many multiplications are real."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from math import gcd, inf, prod
from types import MappingProxyType

import numpy as np

from engine.hlo.hlo_pb2 import DotDimensionNumbers, HloInstructionProto, ShapeProto, WindowDimension
from engine.ir import shapes

NO_CHANGE: Mapping[tuple[int, int], int] = MappingProxyType({})
_LIBRARIES = ("__cublas$", "__triton_gemm", "__hipblas$")
_DOT_FIELDS = (
    "lhs_contracting_dimensions",
    "rhs_contracting_dimensions",
    "lhs_batch_dimensions",
    "rhs_batch_dimensions",
)
_PASSES: Mapping[int, int] = MappingProxyType({1: 3, 2: 6})


@dataclass(frozen=True, slots=True)
class Matmul:
    """``batch`` products of an [m, k] by a [k, n] matrix."""

    batch: float
    m: float
    n: float
    k: float
    dtype: str
    """Of the wider operand, as HLO writes it."""
    passes: int = 1
    """Products of narrower numbers that a wide one is made of, at the precision asked for."""
    block: float = inf
    """Columns that are loaded into the matmul units together. An operand that lies with its contracting dimension
    innermost is turned over on its way there, and of several dimensions of its own (heads, and the features of a head)
    the inner one alone."""

    @property
    def macs(self) -> float:
        """Multiplications that take part in the result."""
        return self.batch * self.m * self.n * self.k

    @property
    def flops(self) -> float:
        return 2 * self.macs


def matmul_of(
    instruction: HloInstructionProto,
    lhs: ShapeProto,
    rhs: ShapeProto,
    sizes: Mapping[tuple[int, int], int] = NO_CHANGE,
) -> Matmul:
    """The matmul that one of `engine.ir.opcodes.MATMULS` computes.

    `sizes` gives other extents to dimensions of operands, as {(side, dimension): size}; the dimension of the other
    operand that it is contracted or batched with follows.
    """
    dtype = shapes.dtype_name(max((lhs.element_type, rhs.element_type), key=shapes.bits))
    found = _BUILDERS[instruction.opcode](instruction, lhs, rhs, sizes, dtype)
    return replace(found, passes=_passes(instruction)) if dtype == "f32" else found


def library_matmul(call: HloInstructionProto) -> HloInstructionProto | None:
    """The dot that a custom call into a GPU matmul library stands for; None for any other call.

    XLA's GPU compiler keeps the dimension numbers in ``gemm_backend_config`` of the call's backend config.
    """
    if not call.custom_call_target.startswith(_LIBRARIES):
        return None
    try:
        config = json.loads(call.backend_config)
        numbers = config.get("gemm_backend_config", config)["dot_dimension_numbers"]
        fields = {name: [int(d) for d in numbers.get(name, ())] for name in _DOT_FIELDS}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return HloInstructionProto(opcode="dot", shape=call.shape, dot_dimension_numbers=DotDimensionNumbers(**fields))


def _passes(instruction: HloInstructionProto) -> int:
    """f32 is multiplied in bf16 (or TF32) pieces: one product by default, 3 at HIGH, 6 at HIGHEST."""
    return _PASSES.get(max(instruction.precision_config.operand_precision, default=0), 1)


def _dot(
    instruction: HloInstructionProto,
    lhs: ShapeProto,
    rhs: ShapeProto,
    sizes: Mapping[tuple[int, int], int],
    dtype: str,
) -> Matmul:
    return _dense(instruction.dot_dimension_numbers, lhs, rhs, sizes, dtype)


def _ragged(
    instruction: HloInstructionProto,
    lhs: ShapeProto,
    rhs: ShapeProto,
    sizes: Mapping[tuple[int, int], int],
    dtype: str,
) -> Matmul:
    """A matmul for each group, the mean of them: how long each is, only the run knows.

    The dimension that is cut into groups says the mode (RaggedDotDimensionNumbers in XLA's xla_data.proto). Rows: each
    meets the weights of its group alone. Contracted: each group has a result of its own. Batch: a dot.
    """
    numbers = instruction.ragged_dot_dimension_numbers
    dot = numbers.dot_dimension_numbers
    dense = _dense(dot, lhs, rhs, sizes, dtype)
    (cut,) = numbers.lhs_ragged_dimensions
    if cut in dot.lhs_batch_dimensions:
        return dense
    if cut in dot.lhs_contracting_dimensions:
        groups = instruction.shape.dimensions[0] or 1
        return replace(dense, batch=dense.batch * groups, k=dense.k / groups)
    groups = prod(rhs.dimensions[d] for d in numbers.rhs_group_dimensions) or 1
    return replace(dense, batch=dense.batch * groups, m=dense.m / groups, n=dense.n / groups)


def _dense(
    numbers: DotDimensionNumbers,
    lhs: ShapeProto,
    rhs: ShapeProto,
    sizes: Mapping[tuple[int, int], int],
    dtype: str,
) -> Matmul:
    left, right = list(lhs.dimensions), list(rhs.dimensions)
    batch = tuple(zip(numbers.lhs_batch_dimensions, numbers.rhs_batch_dimensions, strict=True))
    contracting = tuple(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    for (side, dimension), size in sizes.items():
        (left, right)[side][dimension] = size
        for pair in (*batch, *contracting):
            if pair[side] == dimension:
                (left, right)[1 - side][pair[1 - side]] = size
    joined_left = {pair[0] for pair in (*batch, *contracting)}
    joined_right = {pair[1] for pair in (*batch, *contracting)}
    own = {d: size for d, size in enumerate(right) if d not in joined_right}
    n = prod(own.values())
    return Matmul(
        batch=prod(left[a] for a, _ in batch),
        m=prod(size for d, size in enumerate(left) if d not in joined_left),
        n=n,
        k=prod(left[a] for a, _ in contracting),
        dtype=dtype,
        block=_block(rhs, {b for _, b in contracting}, own, n),
    )


def _block(shape: ShapeProto, contracted: Set[int], own: Mapping[int, float], n: float) -> float:
    """`Matmul.block` of a second operand, whose `own` dimensions have these extents and `n` columns in all."""
    order = shape.layout.minor_to_major or range(len(shape.dimensions))[::-1]
    inner, beside, *_ = *[d for d in order if shape.dimensions[d] > 1], -1, -1
    return own[beside] if inner in contracted and own.get(beside, n) < n else inf


def _convolution(
    instruction: HloInstructionProto,
    lhs: ShapeProto,
    rhs: ShapeProto,
    sizes: Mapping[tuple[int, int], int],
    dtype: str,
) -> Matmul:
    """Each spatial dimension becomes a batch, row, column or contracting dimension where its window says so."""
    numbers = instruction.convolution_dimension_numbers
    groups = max(1, instruction.feature_group_count, instruction.batch_group_count)
    batch, m, n = float(groups), 1.0, 1.0
    k = float(rhs.dimensions[numbers.kernel_input_feature_dimension])
    m *= lhs.dimensions[numbers.input_batch_dimension] / max(1, instruction.batch_group_count)
    n *= rhs.dimensions[numbers.kernel_output_feature_dimension] / groups
    scale = _scales(lhs, rhs, sizes)
    m *= scale.get((0, numbers.input_batch_dimension), 1.0)
    n *= scale.get((1, numbers.kernel_output_feature_dimension), 1.0)
    feature = (0, numbers.input_feature_dimension), (1, numbers.kernel_input_feature_dimension)
    k *= next((scale[f] for f in feature if f in scale), 1.0)
    spatial = zip(
        instruction.window.dimensions,
        numbers.input_spatial_dimensions,
        numbers.kernel_spatial_dimensions,
        numbers.output_spatial_dimensions,
        strict=True,
    )
    for window, at_input, at_kernel, at_output in spatial:
        base, out = lhs.dimensions[at_input], instruction.shape.dimensions[at_output]
        valid = valid_taps(window, base, out)
        changed = scale.get((0, at_input), 1.0), scale.get((1, at_kernel), 1.0)
        if base == out == window.size and valid == out and out > 1:
            batch *= out * max(changed)
        elif base == 1 and valid == out:
            n *= out * changed[1]
        else:
            m *= out * changed[0]
            k *= valid / out * changed[1] if out else 0.0
    out = numbers.kernel_output_feature_dimension
    own = {out: rhs.dimensions[out] * scale.get((1, out), 1.0)}
    return Matmul(batch, m, n, k, dtype, block=_block(rhs, {numbers.kernel_input_feature_dimension}, own, n))


_BUILDERS: Mapping[str, Callable[..., Matmul]] = MappingProxyType(
    {"convolution": _convolution, "dot": _dot, "ragged-dot": _ragged, "scaled-dot": _dot}
)


def _scales(lhs: ShapeProto, rhs: ShapeProto, sizes: Mapping[tuple[int, int], int]) -> Mapping[tuple[int, int], float]:
    return {(side, d): size / (lhs, rhs)[side].dimensions[d] for (side, d), size in sizes.items()}


def valid_taps(window: WindowDimension, base: int, out: int) -> int:
    """Pairs of an output position and a window position that meet an element, not padding or a dilation's hole.

    Output o and tap t meet input position (o·stride + t·dilation - padding_low) / base_dilation where that is a whole
    number in range; the o of one t form an arithmetic progression, so this takes time proportional to the window.
    """
    stride, holes = max(1, window.stride), max(1, window.base_dilation)
    if base == 0 or out == 0 or window.size == 0:
        return 0
    taps = np.arange(window.size, dtype=np.int64) * max(1, window.window_dilation) - window.padding_low
    common = gcd(stride, holes)
    period = holes // common
    low = np.maximum(0, -(taps // stride))
    high = np.minimum(out - 1, ((base - 1) * holes - taps) // stride)
    inverse = pow(stride // common, -1, period) if period > 1 else 0
    first = (-taps // common * inverse) % period
    count = (high - first) // period - (low - 1 - first) // period
    count[(taps % common != 0) | (high < low)] = 0
    return int(count.sum())
