"""The shipped constants are those that the fits yield, on the data that they say they read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.costs import read_module
from benchmarks.fit import CORES, FITTED_ON, FOUND, GRIDS, fit, objective, samples, times, units_of, v4_files
from benchmarks.fit_gpu import (
    CHIPS,
    DEPTHS,
    EFFICIENCIES,
    HALVES,
    apart,
    collectives,
    matmuls,
    node,
    weighted,
    with_half,
    with_matmuls,
)
from benchmarks.fit_gpu import fit as fit_gpu
from engine.chips.chip import DomainLinks
from engine.chips.library import load_chip
from engine.cost.compute import PICO, work_time
from engine.cost.estimates import estimated_cycles
from engine.cost.work import Reader

LARGE_TILES = ("tpu-v6e", "tpu-v7x")
"""Chips whose `matmul_efficiency` is their own, for their tiles are not v4's."""


def test_only_v4_is_read() -> None:
    assert len(v4_files()) >= 9
    assert all("v4" in file.name and "v5" not in file.name for file in v4_files())


@pytest.mark.parametrize("name", CORES)
def test_shipped_units_follow_from_the_fit(name: str) -> None:
    """To the digits that the files give."""
    shipped, derived = load_chip(name).units, units_of(name, FOUND)
    if name in LARGE_TILES:
        derived = replace(derived, matmul_efficiency=shipped.matmul_efficiency)
    for field in ("narrow", "ports", "vector", "onchip_bandwidth", "window", "launch"):
        assert getattr(shipped, field) == pytest.approx(getattr(derived, field), rel=2e-3), field
    fitted = ("fill", "matmul_efficiency", "hbm_efficiency", "matmul_hbm_efficiency", "tail", "overlap")
    assert [getattr(shipped, f) for f in fitted] == [getattr(derived, f) for f in fitted]


def test_the_fit_prices_as_the_engine_does() -> None:
    """`times` is `work_time`, in cycles and for all fusions at once."""
    chip, file = load_chip(FITTED_ON), v4_files()[0]
    module = read_module(file)
    reader = Reader(module)
    fusions = [i for i in module.instructions.values() if i.opcode == "fusion" and estimated_cycles(i)]
    works = [work for work in map(reader.work, fusions) if not work.scalar]
    ours = [work_time(work, chip) / PICO * chip.units.clock for work in works]
    assert times(samples([file], chip, CORES[FITTED_ON]), FOUND) == pytest.approx(np.array(ours), rel=2e-3)


def test_no_constant_alone_does_better() -> None:
    found = samples(v4_files(), load_chip(FITTED_ON), CORES[FITTED_ON])
    reached = objective(found, FOUND)
    for name, grid in GRIDS.items():
        best = min(objective(found, {**FOUND, name: value}) for value in grid)
        assert best >= reached * (1 - 1e-3), name


@pytest.mark.full
def test_the_fit_yields_what_ships() -> None:
    found = samples(v4_files(), load_chip(FITTED_ON), CORES[FITTED_ON])
    assert fit(found)[0] == FOUND


@pytest.mark.parametrize("name", CHIPS)
def test_gpu_constants_are_the_best_of_their_grids(name: str) -> None:
    machine = node(load_chip(name))
    chip = machine.chip
    assert isinstance(chip.network, DomainLinks)
    products, gathers = matmuls(name), collectives(name, "all-gather")
    efficiency, depth, half = chip.units.matmul_efficiency, chip.units.split_depth, chip.network.half_bytes
    at = EFFICIENCIES.index(efficiency)
    errors = [weighted(products, with_matmuls(machine, e, depth)) for e in EFFICIENCIES[at - 1 : at + 2]]
    assert min(errors) == errors[1]
    at = DEPTHS.index(depth)
    errors = [weighted(products, with_matmuls(machine, efficiency, d)) for d in DEPTHS[at - 1 : at + 2]]
    assert min(errors) == errors[1]
    at = HALVES.index(half)
    errors = [apart(gathers, with_half(machine, h)) for h in HALVES[at - 1 : at + 2]]
    assert min(errors) == errors[1]


@pytest.mark.full
@pytest.mark.parametrize("name", CHIPS)
def test_the_gpu_fit_yields_what_ships(name: str) -> None:
    chip = load_chip(name)
    assert isinstance(chip.network, DomainLinks)
    assert fit_gpu(name) == (chip.units.matmul_efficiency, chip.units.split_depth, chip.network.half_bytes)
