"""Roles of dimensions, and the multiplications of a convolution that meet an element."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cost.matmul import Matmul, matmul_of, valid_taps
from engine.cost.work import Reader
from engine.hlo.hlo_pb2 import WindowDimension
from engine.hlo.reading import read_here


def matmul(text: str, sizes: dict[tuple[int, int], int] | None = None) -> Matmul:
    """Of the root of a one-computation module written after ``ENTRY``."""
    module = read_here(f"HloModule m\n\nENTRY main {{\n{text}\n}}\n".encode())
    root = module.instructions[module.entry.root_id]
    lhs, rhs = (module.instructions[o].shape for o in root.operand_ids[:2])
    return matmul_of(root, lhs, rhs, sizes or {})


DOT = """
  a = bf16[4,128,64]{2,1,0} parameter(0)
  b = bf16[4,64,32]{2,1,0} parameter(1)
  ROOT d = bf16[4,128,32]{2,1,0} dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={2}, rhs_contracting_dims={1}
"""


def test_a_dot() -> None:
    found = matmul(DOT)
    assert found == Matmul(batch=4, m=128, n=32, k=64, dtype="bf16")
    assert found.flops == 2 * 4 * 128 * 32 * 64


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({(0, 1): 32}, (4, 32, 32, 64)),
        ({(1, 2): 8}, (4, 128, 8, 64)),
        ({(0, 2): 16}, (4, 128, 32, 16)),
        ({(1, 1): 16}, (4, 128, 32, 16)),
        ({(1, 0): 1}, (1, 128, 32, 64)),
        ({(0, 2): 16, (0, 1): 2}, (4, 2, 32, 16)),
    ],
)
def test_the_partner_of_a_changed_dimension_follows(
    sizes: dict[tuple[int, int], int], expected: tuple[int, ...]
) -> None:
    found = matmul(DOT, sizes)
    assert (found.batch, found.m, found.n, found.k) == expected


HEADS = """
  x = bf16[512,4096]{1,0} parameter(0)
  w = bf16[16,128,4096]LAYOUT parameter(1)
  ROOT d = bf16[512,16,128]{2,1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={2}
"""
SPATIAL_HEADS = """
  x = bf16[512,4096,1]{1,0,2} parameter(0)
  w = bf16[16,128,4096]LAYOUT parameter(1)
  ROOT d = bf16[512,16,128]{2,1,0} convolution(x, w), window={size=16 pad=15_15 rhs_reversal=1}, dim_labels=bf0_0oi->b0f
"""


@pytest.mark.parametrize("text", [HEADS, SPATIAL_HEADS])
@pytest.mark.parametrize(("layout", "block"), [("{2,1,0}", 128), ("", 128), ("{1,2,0}", inf), ("{2,0,1}", inf)])
def test_heads_of_an_operand_that_lies_turned_are_loaded_alone(text: str, layout: str, block: float) -> None:
    """The contracted dimension innermost, and a head's features beside it."""
    if text is HEADS and layout == "{2,0,1}":
        block = 16  # the heads themselves lie beside it
    found = matmul(text.replace("LAYOUT", layout))
    assert (found.n, found.block) == (16 * 128, block)


def test_blocks_change_with_their_dimension() -> None:
    """One head is all there is to load, and half of each head leaves half a block."""
    text = HEADS.replace("LAYOUT", "{2,1,0}")
    assert matmul(text, {(1, 0): 1}).block == inf
    assert matmul(text, {(1, 1): 64}).block == 64
    text = SPATIAL_HEADS.replace("LAYOUT", "{2,1,0}")
    assert matmul(text, {(1, 1): 64}).block == 64


ROWS = """
  x = bf16[2,120,64]{2,1,0} parameter(0)
  w = bf16[4,2,64,32]{3,2,1,0} parameter(1)
  groups = s32[2,4]{1,0} parameter(2)
  ROOT d = bf16[2,120,32]{2,1,0} ragged-dot(x, w, groups), lhs_batch_dims={0}, rhs_batch_dims={1},
    lhs_contracting_dims={2}, rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={0}
"""
CONTRACTED = """
  x = bf16[2,120,64]{2,1,0} parameter(0)
  y = bf16[2,120,32]{2,1,0} parameter(1)
  groups = s32[2,4]{1,0} parameter(2)
  ROOT d = bf16[4,2,64,32]{3,2,1,0} ragged-dot(x, y, groups), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={1}
"""
BATCHES = """
  x = bf16[8,120,64]{2,1,0} parameter(0)
  w = bf16[8,64,32]{2,1,0} parameter(1)
  groups = s32[4]{0} parameter(2)
  ROOT d = bf16[8,120,32]{2,1,0} ragged-dot(x, w, groups), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ROWS, Matmul(batch=2 * 4, m=30, n=32, k=64, dtype="bf16")),
        (CONTRACTED, Matmul(batch=2 * 4, m=64, n=32, k=30, dtype="bf16")),
        (BATCHES, Matmul(batch=8, m=120, n=32, k=64, dtype="bf16")),
    ],
)
def test_a_ragged_dot_is_a_matmul_for_each_group(text: str, expected: Matmul) -> None:
    assert matmul(text) == expected


def test_groups_of_less_than_a_row_each_count_the_rows() -> None:
    """As in decoding, where few tokens meet many experts."""
    found = matmul(ROWS.replace("120", "3"))
    assert found.flops == 2 * 2 * 3 * 32 * 64


def test_a_scaled_dot_is_a_dot() -> None:
    found = matmul("""
  a = f8e4m3fn[128,64]{1,0} parameter(0)
  b = f8e4m3fn[64,32]{1,0} parameter(1)
  a_scale = f8e8m0fnu[128,2]{1,0} parameter(2)
  b_scale = f8e8m0fnu[2,32]{1,0} parameter(3)
  ROOT d = bf16[128,32]{1,0} scaled-dot(a, b, a_scale, b_scale), lhs_contracting_dims={1}, rhs_contracting_dims={0}
""")
    assert found == Matmul(batch=1, m=128, n=32, k=64, dtype="f8e4m3fn")


@pytest.mark.parametrize(("precision", "passes"), [("default", 1), ("high", 3), ("highest", 6)])
def test_wide_products_are_made_of_narrow_ones(precision: str, passes: int) -> None:
    text = DOT.replace("bf16", "f32").replace("contracting_dims={1}", "contracting_dims={1}, operand_precision={XX,XX}")
    assert matmul(text.replace("XX", precision)).passes == passes


def test_a_convolution_that_is_a_matmul() -> None:
    found = matmul(
        """
  a = bf16[4,2048,4096]{2,1,0} parameter(0)
  b = bf16[4096,8192,1]{1,0,2} parameter(1)
  ROOT c = bf16[4,2048,8192]{2,1,0} convolution(a, b), window={size=1}, dim_labels=0bf_io0->0bf
"""
    )
    assert (found.batch, found.m, found.n, found.k) == (1, 4 * 2048, 8192, 4096)


def test_a_convolution_that_is_a_batched_matmul() -> None:
    """TPU HLO writes a batch dimension as a spatial one whose window meets one element at every position."""
    found = matmul(
        """
  a = bf16[8,128,64]{2,1,0} parameter(0)
  b = bf16[8,32,64]{2,1,0} parameter(1)
  ROOT c = bf16[8,128,32]{2,1,0} convolution(a, b),
    window={size=8 stride=7 pad=0_0 lhs_dilate=8}, dim_labels=0bf_0oi->0bf
"""
    )
    assert (found.batch, found.m, found.n, found.k) == (8, 128, 32, 64)


def test_a_convolution_over_an_image() -> None:
    found = matmul(
        """
  a = f32[2,16,16,3]{3,2,1,0} parameter(0)
  b = f32[3,3,3,8]{3,2,1,0} parameter(1)
  ROOT c = f32[2,16,16,8]{3,2,1,0} convolution(a, b), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
"""
    )
    assert found.macs == 2 * 8 * 3 * (3 * 16 - 2) ** 2


@given(
    st.integers(1, 6), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4),
    st.integers(-3, 6), st.integers(1, 8), st.integers(1, 9),
)  # fmt: skip
def test_valid_taps_are_those_that_meet_an_element(
    size: int, stride: int, holes: int, dilation: int, padding: int, base: int, out: int
) -> None:
    window = WindowDimension(
        size=size, stride=stride, base_dilation=holes, window_dilation=dilation, padding_low=padding
    )
    at = np.arange(out)[:, None] * stride + np.arange(size)[None, :] * dilation - padding
    valid = (at >= 0) & (at % holes == 0) & (at // holes < base)
    assert valid_taps(window, base, out) == int(valid.sum())


def test_calls_into_matmul_libraries() -> None:
    text = """
  a = f16[128,64]{1,0} parameter(0)
  b = f16[64,32]{1,0} parameter(1)
  ROOT c = (f16[128,32]{1,0}, s8[1024]{0}) custom-call(a, b), custom_call_target="TARGET",
    backend_config={"gemm_backend_config":{"alpha_real":1,"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],
    "rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}}}
"""
    for target, macs in (("__cublas$gemm", [128 * 32 * 64]), ("__cublas$lt$matmul", [128 * 32 * 64]), ("other", [])):
        module = read_here(f"HloModule m\n\nENTRY main {{\n{text.replace('TARGET', target)}\n}}\n".encode())
        work = Reader(module).work(module.instructions[module.entry.root_id])
        assert [m.macs for m in work.matmuls] == macs


def test_windows_without_anything() -> None:
    assert valid_taps(WindowDimension(size=0), 4, 4) == 0
    assert valid_taps(WindowDimension(size=3), 0, 4) == 0
