"""Products of 8192 cubed on every TPU, against what its own compiler estimates for them."""

from __future__ import annotations

import pytest

from engine.chips.library import load_chip
from engine.cost.compute import work_time
from engine.cost.matmul import Matmul
from engine.cost.work import Work

MILLISECOND = 1e9
ESTIMATES = {
    "tpu-v2": 48.8,
    "tpu-v3": 18.4,
    "tpu-v4": 4.31,
    "tpu-v5e": 6.37,
    "tpu-v5p": 2.66,
    "tpu-v6e": 1.70,
    "tpu-v7x": 1.37,
}
"""Milliseconds on one device, bf16, by libtpu 0.0.51's `estimated_cycles` over the chip's clock."""


@pytest.mark.parametrize(("name", "milliseconds"), ESTIMATES.items())
def test_a_large_product(name: str, milliseconds: float) -> None:
    side = 8192
    moved = [2.0 * side**2, 2.0 * side**2, 0.0, 2.0 * side**2]
    work = Work([Matmul(1, side, side, side, "bf16")], narrow=side**2, ports=side**2 / 2, in_hbm=moved)
    assert work_time(work, load_chip(name)) / MILLISECOND == pytest.approx(milliseconds, rel=0.13)
