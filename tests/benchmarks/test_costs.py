"""Which of a compiler's estimates count, and what the table says of those that do not."""

from __future__ import annotations

import pytest

from benchmarks.costs import ROOT, below_hbm, main
from engine.chips.library import load_chip
from engine.cost.work import Work

V6E = load_chip("tpu-v6e")


def test_an_estimate_takes_at_least_the_time_of_hbm() -> None:
    """A megabyte at the documented peak, half of it read and half of it written."""
    work = Work(in_hbm=[0.0, 0.0, 5e5, 5e5])
    least = 1e6 / V6E.hbm_bandwidth * V6E.units.clock
    assert below_hbm(0.99 * least, work, V6E)
    assert not below_hbm(1.01 * least, work, V6E)


def test_what_is_left_out_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """The gradient of attention scores of this step is estimated at half of what its arrays take to come and go."""
    assert main([f"tpu-v6e={ROOT / 'benchmarks/data/decoder_v6e-2x4_2x4_d5120_whole.hlo.gz'}"]) == 0
    matmuls, others = capsys.readouterr().out.splitlines()[1:3]
    assert "matmul fusions" in matmuls
    assert matmuls.endswith(" 1 left out")
    assert "other fusions" in others
    assert "left out" not in others
