"""The einsum that the manual prices step by step takes what the manual says."""

from __future__ import annotations

import numpy as np

from engine.chips.library import load_chip
from engine.cost.compute import matmul_seconds, pace, work_time
from engine.cost.windows import BUFFERS, cut, seconds
from engine.cost.work import Reader, Role
from engine.hlo.reading import read_here
from tests.places import ROOT

EINSUM = b"""HloModule einsum
ENTRY e {
  a = bf16[2048,1024] parameter(0)
  b = bf16[1024,4096] parameter(1)
  ROOT dot = bf16[2048,4096] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
MICRO = 1e6
VECTOR = 53.46e-6
"""Seconds of the vector units for the whole result: its unpacking, its passing them, and their waiting for HBM."""


def test_the_manual_prices_an_einsum_as_the_program_does() -> None:
    module, chip = read_here(EINSUM), load_chip("tpu-v4")
    work = Reader(module).work(next(i for i in module.instructions.values() if i.opcode == "dot"))
    (matmul,) = work.matmuls
    core = pace(chip, matmul.dtype)
    cuts = cut(matmul, work.in_hbm, work.in_chip, chip.units)
    taken = seconds(cuts, VECTOR, core)
    best = int(taken.argmin())
    assert (cuts.rows[best], cuts.columns[best], cuts.steps[best], len(taken)) == (4, 16, 1, 142)
    moved = cuts.hbm[:, best] / core.hbm * MICRO
    multiply, vector = cuts.macs[best] / core.macs * MICRO, VECTOR * cuts.share[best] * core.cores * MICRO
    step = multiply + core.tail * vector + core.step * MICRO
    held = cuts.held[best]
    other = {
        (rows, columns, steps): time * MICRO
        for rows, columns, steps, time in zip(cuts.rows, cuts.columns, cuts.steps, taken, strict=True)
    }
    figures = {
        "91.6 µs": work_time(work, chip) / MICRO,
        "62.5 µs": matmul.flops / chip.peak(matmul.dtype) * MICRO,
        "23.9 µs": sum(work.in_hbm) / chip.hbm_bandwidth * MICRO,
        "hold 4 MiB": held / 2**20,
        "2.06 µs": multiply,
        "1.67 µs": vector,
        "2.41 µs": step,
        "2.75 µs": moved[Role.LHS],
        "1.38 µs": moved[Role.RHS],
        "0.69 µs": moved[Role.WRITTEN],
        "2.07 µs": moved[Role.RHS] + moved[Role.WRITTEN],
        "4.82 µs": moved.sum(),
        "2.56 µs": (moved.sum() + 15 * step) / 16,
        "82.0 µs": 32 * (moved.sum() + 15 * step) / 16,
        "8.95 µs": BUFFERS * (moved[Role.LHS] + moved[Role.RHS]) + moved[Role.WRITTEN],
        "0.61 µs": chip.units.launch / MICRO,
        "0.1 µs": other[4, 8, 1] - other[4, 16, 1],
        "155 µs": other[16, 8, 2] - other[4, 16, 1],
    }
    text = (ROOT / "docs" / "machines.md").read_text("utf-8")
    for said, figure in figures.items():
        number = next(word for word in said.split() if word[0].isdigit())
        digits = len(number.partition(".")[2])
        assert said in text, said
        assert f"{figure:.{digits}f}" == number, said
    assert np.isclose(taken[best] * MICRO + chip.units.launch / MICRO, figures["91.6 µs"], rtol=1e-4)
    assert matmul_seconds(matmul, chip) < taken[best]
