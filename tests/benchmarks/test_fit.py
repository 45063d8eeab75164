"""The shipped constants are those that the fits yield, on the data that they say they read."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.costs import below_hbm, read_module
from benchmarks.fit import CORES, FITS, Samples, files_of, fit, fitted_on, objective, samples, times, units_of
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


def samples_of(name: str) -> Samples:
    return samples(files_of(name), load_chip(name), CORES[name])


def test_a_fit_reads_its_own_chip_alone() -> None:
    assert len(files_of("tpu-v4")) >= 9
    assert all("v4" in file.name and "v5" not in file.name for file in files_of("tpu-v4"))
    assert [file.name for file in files_of("tpu-v6e")] == list(FITS["tpu-v6e"].files)
    assert [name for name in CORES if fitted_on(name) == name] == list(FITS)


@pytest.mark.parametrize("name", CORES)
def test_shipped_units_follow_from_the_fit(name: str) -> None:
    """To the digits that the files give."""
    shipped, derived = load_chip(name).units, units_of(name, FITS[fitted_on(name)].found)
    for field in ("narrow", "ports", "vector", "onchip_bandwidth", "adding", "window", "launch"):
        assert getattr(shipped, field) == pytest.approx(getattr(derived, field), rel=2e-3), field
    assert shipped.step == pytest.approx(derived.step, abs=500)  # files have whole nanoseconds
    fitted = ("fill", "matmul_efficiency", "hbm_efficiency", "matmul_hbm_efficiency", "vmem_share", "tail", "overlap")
    assert [getattr(shipped, f) for f in fitted] == [getattr(derived, f) for f in fitted]


@pytest.mark.parametrize("name", FITS)
def test_the_fit_prices_as_the_engine_does(name: str) -> None:
    """`times` is `work_time`, in cycles and for all fusions at once."""
    chip, file = load_chip(name), files_of(name)[0]
    module = read_module(file)
    reader = Reader(module)
    fusions = [i for i in module.instructions.values() if i.opcode == "fusion" and estimated_cycles(i)]
    priced = [(work, estimated_cycles(i) or 0) for i in fusions if not (work := reader.work(i)).scalar]
    works = [work for work, cycles in priced if not below_hbm(cycles, work, chip)]
    ours = [work_time(work, chip) / PICO * chip.units.clock for work in works]
    assert times(samples([file], chip, CORES[name]), FITS[name].found) == pytest.approx(np.array(ours), rel=2e-3)


@pytest.mark.parametrize("name", FITS)
def test_no_constant_alone_does_better(name: str) -> None:
    found, best = samples_of(name), FITS[name].found
    reached = objective(found, best)
    for constant, grid in FITS[name].grids.items():
        moved = min(objective(found, {**best, constant: value}) for value in grid)
        assert moved >= reached * (1 - 1e-3), constant


@pytest.mark.full
@pytest.mark.parametrize("name", FITS)
def test_the_fit_yields_what_ships(name: str) -> None:
    assert fit(samples_of(name), FITS[name].grids)[0] == FITS[name].found


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
