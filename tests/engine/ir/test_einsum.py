"""Dots and the convolutions that are matrix products read as the einsum they compute; true convolutions do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.hlo.hlo_pb2 import BF16, C64, ConvolutionDimensionNumbers, HloInstructionProto, ShapeProto, WindowDimension
from engine.ir.einsum import Einsum, Index, NotAnEinsumError, Role, read_einsum, resize
from engine.ir.shapes import array


def dot(
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    out: tuple[int, ...],
    contracting: tuple[list[int], list[int]],
    batch: tuple[list[int], list[int]] = ([], []),
) -> tuple[HloInstructionProto, ShapeProto, ShapeProto]:
    instruction = HloInstructionProto(opcode="dot", shape=array(BF16, out))
    numbers = instruction.dot_dimension_numbers
    numbers.lhs_contracting_dimensions.extend(contracting[0])
    numbers.rhs_contracting_dimensions.extend(contracting[1])
    numbers.lhs_batch_dimensions.extend(batch[0])
    numbers.rhs_batch_dimensions.extend(batch[1])
    return instruction, array(BF16, lhs), array(BF16, rhs)


def window(text: str) -> list[WindowDimension]:
    """``8,pad=7,reversal`` a dimension, separated by spaces, in the words of HLO text."""
    dims = []
    for part in text.split():
        size, *more = part.split(",")
        dim = WindowDimension(size=int(size), stride=1, window_dilation=1, base_dilation=1)
        for key, _, value in (m.partition("=") for m in more):
            if key == "pad":
                dim.padding_low = dim.padding_high = int(value)
            elif key == "reversal":
                dim.window_reversal = True
            elif key == "stride":
                dim.stride = int(value)
            else:
                assert key == "dilate"
                dim.base_dilation = int(value)
        dims.append(dim)
    return dims


def convolution(
    labels: str, lhs: tuple[int, ...], rhs: tuple[int, ...], out: tuple[int, ...], windows: str = ""
) -> tuple[HloInstructionProto, ShapeProto, ShapeProto]:
    """`labels` as in HLO text: ``0bf_io0->0bf``."""
    instruction = HloInstructionProto(opcode="convolution", shape=array(BF16, out))
    a, rest = labels.split("_")
    b, o = rest.split("->")
    spatial = range(len(a) - 2)
    instruction.convolution_dimension_numbers.CopyFrom(
        ConvolutionDimensionNumbers(
            input_batch_dimension=a.index("b"),
            input_feature_dimension=a.index("f"),
            input_spatial_dimensions=[a.index(str(k)) for k in spatial],
            kernel_input_feature_dimension=b.index("i"),
            kernel_output_feature_dimension=b.index("o"),
            kernel_spatial_dimensions=[b.index(str(k)) for k in spatial],
            output_batch_dimension=o.index("b"),
            output_feature_dimension=o.index("f"),
            output_spatial_dimensions=[o.index(str(k)) for k in spatial],
        )
    )
    instruction.window.dimensions.extend(window(windows))
    return instruction, array(BF16, lhs), array(BF16, rhs)


def roles(einsum: Einsum) -> list[tuple[str, int | None, int | None, int | None]]:
    return [(i.role.value, i.lhs, i.rhs, i.out) for i in einsum.indices]


def test_dot_with_two_contracting_and_a_batch_dimension() -> None:
    einsum = read_einsum(*dot((5, 2, 3, 4), (4, 7, 5, 2), (2, 3, 7), ([0, 3], [2, 0]), ([1], [3])))
    assert einsum.indices == (
        Index(Role.BATCH, 2, 1, 3, 0),
        Index(Role.CONTRACTING, 5, 0, 2, None),
        Index(Role.CONTRACTING, 4, 3, 0, None),
        Index(Role.LHS, 3, 2, None, 1),
        Index(Role.RHS, 7, None, 1, 2),
    )
    assert einsum.flops == 2 * 2 * 5 * 4 * 3 * 7
    assert einsum.at_operand(1, 1) == einsum.at_output(2) == Index(Role.RHS, 7, None, 1, 2)


def test_complex_multiply_adds_are_eight_operations() -> None:
    instruction, lhs, rhs = dot((3, 4), (4, 5), (3, 5), ([1], [0]))
    instruction.shape.element_type = C64
    assert read_einsum(instruction, lhs, rhs).flops == 8 * 60


@pytest.mark.parametrize(
    ("labels", "lhs", "rhs", "out", "windows", "spatial"),
    [
        # Forms that the TPU compiler (libtpu 0.0.51) writes.
        ("bf_io->bf", (16, 8), (8, 4), (16, 4), "", []),
        ("0bf_io0->0bf", (5, 16, 8), (8, 4, 1), (5, 16, 4), "1", [("lhs", 0, None, 0)]),
        ("0bf1_i1o0->0b1f", (5, 16, 8, 1), (8, 6, 4, 1), (5, 16, 6, 4), "1 6,pad=5,reversal",
         [("lhs", 0, None, 0), ("rhs", None, 1, 2)]),
        ("0b1f_1io0->0bf1", (5, 16, 6, 8), (6, 8, 4, 1), (5, 16, 4, 1), "1 6",
         [("lhs", 0, None, 0), ("contracting", 2, 0, None)]),
        ("0f1b_01oi->01bf", (4, 8, 6, 16), (4, 6, 3, 8), (4, 6, 16, 3), "4,stride=3,dilate=4 6,stride=5,dilate=6",
         [("batch", 0, 0, 0), ("batch", 2, 1, 1)]),
    ],
)  # fmt: skip
def test_matrix_products_as_convolutions(
    labels: str, lhs: tuple[int, ...], rhs: tuple[int, ...], out: tuple[int, ...], windows: str,
    spatial: list[tuple[str, int | None, int | None, int | None]],
) -> None:  # fmt: skip
    einsum = read_einsum(*convolution(labels, lhs, rhs, out, windows))
    a, b = labels.split("->")[0].split("_")
    o = labels.split("->")[1]
    assert roles(einsum) == [
        ("lhs", a.index("b"), None, o.index("b")),
        ("contracting", a.index("f"), b.index("i"), None),
        ("rhs", None, b.index("o"), o.index("f")),
        *spatial,
    ]


def test_a_dimension_of_one_carries_no_index() -> None:
    einsum = read_einsum(*convolution("0bf_0io->0bf", (1, 16, 8), (1, 8, 4), (1, 16, 4), "1"))
    assert len(einsum.indices) == 3
    assert einsum.at_operand(0, 0) is None


@pytest.mark.parametrize(
    ("windows", "size", "taps", "outputs"),
    [
        ("3", 8, 3, 6),
        ("3,pad=1", 8, 3, 8),
        ("8,reversal", 8, 8, 1),
        ("6,pad=5", 1, 6, 6),
        ("4,stride=2,dilate=4", 4, 4, 5),
        ("1,stride=2", 8, 1, 4),
        ("4096", 8191, 4096, 4096),
    ],
)
def test_true_convolutions_are_refused(windows: str, size: int, taps: int, outputs: int) -> None:
    with pytest.raises(NotAnEinsumError, match=rf"true convolution \(spatial dimension 0: window {taps} over {size}\)"):
        read_einsum(*convolution("0bf_0io->0bf", (size, 16, 8), (taps, 8, 4), (outputs, 16, 4), windows))


def test_grouped_convolutions_are_refused() -> None:
    instruction, lhs, rhs = convolution("bf_io->bf", (16, 8), (4, 4), (16, 4))
    instruction.feature_group_count = 2
    with pytest.raises(NotAnEinsumError, match="feature_group_count=2"):
        read_einsum(instruction, lhs, rhs)


def test_other_opcodes_are_refused() -> None:
    with pytest.raises(NotAnEinsumError, match="add is no einsum"):
        read_einsum(HloInstructionProto(opcode="add"), array(BF16, (2,)), array(BF16, (2,)))


@given(which=st.integers(0, 6), size=st.integers(2, 12))
def test_resized_einsums_keep_their_indices(which: int, size: int) -> None:
    instruction, lhs, rhs = convolution(
        "0b1f23_1io032->0bf132",
        (5, 16, 6, 8, 1, 4), (6, 8, 4, 1, 4, 7), (5, 16, 4, 1, 4, 7),
        "1 6 7,pad=6,reversal 4,stride=3,dilate=4",
    )  # fmt: skip
    before = read_einsum(instruction, lhs, rhs)
    index = before.indices[which]
    resize(instruction, index, size)
    if index.lhs is not None:
        lhs.dimensions[index.lhs] = size
    if index.rhs is not None:
        rhs.dimensions[index.rhs] = size
    after = read_einsum(instruction, lhs, rhs)
    assert roles(after) == roles(before)
    assert [i.size for i in after.indices] == [size if i is index else i.size for i in before.indices]
