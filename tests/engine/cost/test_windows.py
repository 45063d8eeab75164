"""Windows fit the vector memory, and what they take stays above what multiplying and moving take at least."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, isinf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.chips.library import load_chip
from engine.cost.compute import PICO, pace, work_time
from engine.cost.matmul import Matmul
from engine.cost.windows import BUFFERS, cut, fastest, seconds
from engine.cost.work import Role, Work

V4, V5P = load_chip("tpu-v4"), load_chip("tpu-v5p")
KILO = st.integers(1, 64).map(lambda x: 128 * x)
CHIPS = st.sampled_from([V4, V5P, load_chip("tpu-v5e"), load_chip("tpu-v6e")])


def moved(m: float, n: float, k: float, batch: float = 1, beside: int = 0) -> tuple[float, float, float, float]:
    """Bytes by role of bf16 operands and a result, and of `beside` arrays more that meet the result."""
    return 2 * batch * m * k, 2 * batch * n * k, 2 * batch * m * n * beside, 2 * batch * m * n


NOTHING = (0.0, 0.0, 0.0, 0.0)


@given(CHIPS, KILO, KILO, KILO, st.integers(1, 40), st.integers(0, 6))
def test_windows_fit(chip: object, m: int, n: int, k: int, batch: int, beside: int) -> None:
    assert isinstance(chip, type(V4))
    cuts = cut(Matmul(batch, m, n, k, "bf16"), moved(m, n, k, batch, beside), NOTHING, chip.units)
    assert len(cuts.steps) > 0
    assert (BUFFERS * cuts.hbm.sum(axis=0) <= cuts.held).all()
    assert (cuts.held <= chip.units.vmem * chip.units.vmem_share).all()
    counts = cuts.batches * cuts.rows * cuts.columns
    assert (counts * cuts.share >= 1 - 1e-9).all()
    assert (counts * cuts.steps * cuts.macs >= batch * m * n * k * (1 - 1e-9)).all()


@given(CHIPS, KILO, KILO, KILO, st.integers(1, 40), st.integers(0, 6))
def test_no_einsum_is_faster_than_its_parts(chip: object, m: int, n: int, k: int, batch: int, beside: int) -> None:
    """Than its multiplications at the rate of all cores, or all its bytes once."""
    assert isinstance(chip, type(V4))
    matmul, hbm = Matmul(batch, m, n, k, "bf16"), moved(m, n, k, batch, beside)
    at = pace(chip, "bf16")
    found = fastest(matmul, hbm, NOTHING, 0.0, at, chip.units)
    assert found >= max(matmul.macs / at.macs, sum(hbm) / at.hbm) / at.cores * (1 - 1e-9)


@given(KILO, KILO, KILO, st.integers(0, 4), st.integers(1, 4))
def test_more_arrays_beside_the_result_take_no_less(m: int, n: int, k: int, beside: int, more: int) -> None:
    def time(beside: int) -> float:
        return fastest(Matmul(1, m, n, k, "bf16"), moved(m, n, k, 1, beside), NOTHING, 0.0, pace(V4, "bf16"), V4.units)

    assert time(beside) <= time(beside + more) * (1 + 1e-9)


@given(KILO, KILO, KILO)
def test_more_memory_takes_no_longer(m: int, n: int, k: int) -> None:
    matmul, hbm = Matmul(1, m, n, k, "bf16"), moved(m, n, k)
    less, more = (
        fastest(matmul, hbm, NOTHING, 0.0, pace(V4, "bf16"), replace(V4.units, vmem=size * 2.0**20)) for size in (8, 16)
    )
    assert more <= less


@pytest.mark.parametrize(("columns", "tiles"), [(9472, 2), (384, 2), (256, 2), (128, 1)])
def test_no_window_is_one_tile_wide_where_its_array_is_wider(columns: int, tiles: int) -> None:
    """As the TPU compiler has it."""
    cuts = cut(Matmul(1, 8192, columns, 4096, "bf16"), moved(8192, columns, 4096), NOTHING, V4.units)
    assert ceil(columns / 128 / cuts.columns.max()) == tiles


def test_a_result_of_32_bits_is_added_up_in_place() -> None:
    """The TPU compiler's kernel for 8192³ in f32 holds two buffers of each window, and nothing of their size beside."""
    side = 8192
    whole = 4.0 * side**2
    for dtype, beside in (("f32", 0), ("bf16", 4)):
        cuts = cut(Matmul(1, side, side, side, dtype), (whole, whole, 0.0, whole), NOTHING, V4.units)
        assert cuts.held == pytest.approx(BUFFERS * cuts.hbm.sum(axis=0) + beside * side**2 * cuts.share)


@pytest.mark.parametrize("beside", [0, 60])
def test_one_window_is_moved_before_it_is_multiplied(beside: int) -> None:
    """In one cut both buffers fill, then the product while other arrays come for its result, which leaves at last."""
    matmul, at = Matmul(1, 128, 128, 128, "bf16"), pace(V4, "bf16")
    cuts = cut(matmul, moved(128, 128, 128, 1, beside), NOTHING, V4.units)
    whole = int(np.flatnonzero((cuts.rows == 1) & (cuts.columns == 1) & (cuts.steps == 1))[0])
    size = 2 * 128 * 128
    expected = max(128**3 / at.macs + at.step, beside * size / at.hbm) + BUFFERS * 2 * size / at.hbm + size / at.hbm
    assert seconds(cuts, 0.0, at)[whole] == pytest.approx(expected)


def test_heads_leave_half_of_larger_matmul_units_idle() -> None:
    """Blocks of 128 columns in units of 256; units of 128 are as wide as a block."""
    plain = Matmul(1, 4096, 2048, 2048, "bf16")
    for chip, longer in ((load_chip("tpu-v6e"), 2.0), (V5P, 1.0)):
        whole, heads = (
            cut(m, moved(plain.m, plain.n, plain.k), NOTHING, chip.units) for m in (plain, replace(plain, block=128))
        )
        assert heads.macs == pytest.approx(longer * whole.macs)


def test_steps_of_a_split_contraction_add_up_what_they_find() -> None:
    matmul, at = Matmul(1, 1024, 1024, 8192, "bf16"), pace(V5P, "bf16")
    cuts = cut(matmul, NOTHING, NOTHING, V5P.units)
    without, adding = seconds(cuts, 0.0, at), seconds(cuts, 0.0, replace(at, adding=1e12))
    windows = np.maximum(cuts.batches * cuts.rows * cuts.columns / at.cores, 1)
    more = np.where(cuts.steps > 1, windows * cuts.steps * cuts.added / 1e12, 0.0)
    assert adding - without == pytest.approx(more)


def test_operands_are_read_again_where_their_windows_take_turns() -> None:
    """Steps of 1024³ of 8192³: each moves a window of either operand, and half of them are multiplied by each core."""
    side = 8192
    slow = replace(pace(V4, "bf16"), hbm=1e9, step=0.0)
    units = replace(V4.units, vmem_share=1.0)
    cuts = cut(Matmul(1, side, side, side, "bf16"), moved(side, side, side), NOTHING, units)
    at = int(np.flatnonzero((cuts.rows == 8) & (cuts.columns == 8) & (cuts.steps == 8))[0])
    window = 2 * 1024**2
    expected = (64 / 2 * (8 * 2 + 1) + BUFFERS * 2 + 1) * window / 1e9
    assert seconds(cuts, 0.0, slow)[at] == pytest.approx(expected)


def test_an_operand_that_stays_is_read_once() -> None:
    """A second operand of one window in all: every window of the first moves once, and its part of the result."""
    m, n, k = 65536, 256, 256
    slow = replace(pace(V4, "bf16"), hbm=1e9, step=0.0)
    found = fastest(Matmul(1, m, n, k, "bf16"), moved(m, n, k), NOTHING, 0.0, slow, V4.units)
    once = 2 * m * (n + k) / 1e9 / slow.cores
    assert once < found < 1.05 * once


def test_vector_memory_needs_no_windows() -> None:
    """On v5p the units work from on-chip arrays; v4's have to come from a memory next to HBM."""
    matmul, onchip = Matmul(1, 2048, 2048, 2048, "bf16"), (8e6, 8e6, 0.0, 0.0)
    assert cut(matmul, NOTHING, onchip, V5P.units).onchip.max() == 0
    assert cut(matmul, NOTHING, onchip, V4.units).onchip.max() > 0


def test_what_no_windows_fit_is_priced_as_a_stream() -> None:
    """A result of one tile that meets a gigabyte: no window of that fits, all of it has to come."""
    matmul = Matmul(1, 8, 128, 128, "bf16")
    hbm = [2.0 * 8 * 128, 2.0 * 128 * 128, 1e9, 2.0 * 8 * 128]
    assert isinf(fastest(matmul, tuple(hbm), NOTHING, 0.0, pace(V4, "bf16"), V4.units))
    streamed = 1e9 / (V4.hbm_bandwidth * V4.units.matmul_hbm_efficiency) * PICO
    assert work_time(Work([matmul], in_hbm=hbm), V4) == pytest.approx(streamed, rel=1e-2)


def test_roles_of_a_plain_einsum_cover_all_bytes() -> None:
    work = Work([Matmul(1, 512, 512, 512, "bf16")], in_hbm=list(moved(512, 512, 512)))
    assert work.hbm == sum(work.in_hbm[role] for role in Role)
