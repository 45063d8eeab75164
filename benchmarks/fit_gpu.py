"""Fits three constants of the GPUs to what XLA's authors measured, apart from the published rows that check the model.

``python -m benchmarks.fit_gpu`` reads ``benchmarks/data/xla_gpu_*.csv``: matmuls and collectives measured on 8 × H100
and 8 × B200, with which XLA's own GPU cost model interpolates (xla/service/gpu/model/default_*_perf_table.txtpb of
openxla/xla, Apache-2.0, as in jax-cuda12-pjrt 0.10.2). `benchmarks.published` is not read. The procedure was written
down before its results were compared with any:

- ``matmul_efficiency``: steps of 0.01, and ``split_depth``: powers of two; together the least time-weighted relative
  error over all bf16 products. Large ones decide the first, long contractions of few tiles the second.
- ``half_bytes``: steps of 0.5 MB; least mean of |ln(model / measured)| over all-gathers of 1 MB and more, whole
  array, among 2, 4 and 8 devices. Reduce-scatters, which the model prices alike, and all-reduces are held out.

The other constants are those of the chip's file; link rates are documented. Equal values go to the smaller constant.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path

from engine.chips.chip import Chip, DomainLinks
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.chips.machine import Machine
from engine.cost.collectives import collective_time
from engine.cost.compute import PICO, work_time
from engine.cost.matmul import Matmul
from engine.cost.work import Work
from engine.hlo.reading import read_here

DATA = Path(__file__).parent / "data"
CHIPS = ("h100", "b200")
EFFICIENCIES = tuple(round(0.5 + x / 100, 2) for x in range(51))
DEPTHS = (0, 128, 256, 512, 1024, 2048, 4096)
HALVES = tuple(500_000 * x for x in range(121))
SMALLEST = 1_000_000
"""Bytes of the smallest collective that is fitted on; below, launches and protocols decide."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured time in seconds, and what the model says of it for a machine of such chips."""

    what: str
    seconds: float
    model: Callable[[Machine], float]


def matmuls(chip: str) -> list[Measured]:
    """The bf16 products measured on `chip`."""
    found = []
    for row in _rows("xla_gpu_matmuls.csv", chip):
        b, m, n, k = (int(row[key]) for key in ("batch", "m", "n", "k"))
        product = Matmul(b, m, n, k, "bf16")
        work = Work([product], in_hbm=[2.0 * b * size for size in (m * k, k * n, 0, m * n)])
        seconds = product.flops / (float(row["gigaflops"]) * 1e9)

        def model(machine: Machine, work: Work = work) -> float:
            return work_time(work, machine.chip) / PICO

        found.append(Measured(f"{b}×{m}×{n}×{k}", seconds, model))
    return found


def collectives(chip: str, opcode: str) -> list[Measured]:
    """Collectives of `SMALLEST` bytes and more measured on `chip`; rates are of the whole array."""
    found = []
    for row in _rows("xla_gpu_collectives.csv", chip):
        devices, size = int(row["devices"]), int(row["bytes"])
        if row["opcode"] != opcode or size < SMALLEST:
            continue
        groups = tuple(tuple(range(first, first + devices)) for first in range(0, 8, devices))

        def model(machine: Machine, groups: tuple[tuple[int, ...], ...] = groups, size: int = size) -> float:
            return collective_time(machine, opcode, groups, size).time / PICO

        found.append(Measured(f"{opcode} of {size} bytes", size / (float(row["gigabytes_per_second"]) * 1e9), model))
    return found


def node(chip: Chip) -> Machine:
    """Eight of the chip in one domain."""
    module = read_here(b"HloModule m, num_partitions=8\n\nENTRY main {\n  ROOT p = f32[] parameter(0)\n}\n")
    return machine_for(module, chip, "1x8")


def _rows(file: str, chip: str) -> list[dict[str, str]]:
    with (DATA / file).open(encoding="utf-8", newline="") as lines:
        return [row for row in csv.DictReader(lines) if row["chip"] == chip]


def weighted(found: Sequence[Measured], machine: Machine) -> float:
    """Time-weighted relative error."""
    return sum(abs(m.model(machine) - m.seconds) for m in found) / sum(m.seconds for m in found)


def apart(found: Sequence[Measured], machine: Machine) -> float:
    """Mean of |ln(model / measured)|."""
    return sum(abs(log(m.model(machine) / m.seconds)) for m in found) / len(found)


def with_matmuls(machine: Machine, efficiency: float, depth: int) -> Machine:
    units = replace(machine.chip.units, matmul_efficiency=efficiency, split_depth=depth)
    return replace(machine, chip=replace(machine.chip, units=units))


def with_half(machine: Machine, half_bytes: int) -> Machine:
    assert isinstance(machine.chip.network, DomainLinks)
    return replace(machine, chip=replace(machine.chip, network=replace(machine.chip.network, half_bytes=half_bytes)))


def fit(name: str) -> tuple[float, int, int]:
    """`matmul_efficiency`, `split_depth` and `half_bytes` of the chip."""
    machine, products, gathers = node(load_chip(name)), matmuls(name), collectives(name, "all-gather")
    pairs = [(e, depth) for e in EFFICIENCIES for depth in DEPTHS]
    efficiency, depth = min(pairs, key=lambda pair: weighted(products, with_matmuls(machine, *pair)))
    return efficiency, depth, min(HALVES, key=lambda half: apart(gathers, with_half(machine, half)))


def main(arguments: list[str]) -> int:
    """Print the constants for every chip, and how near the model then is to what was fitted on and held out."""
    argparse.ArgumentParser(prog="benchmarks.fit_gpu", description=(__doc__ or "").partition("\n")[0]).parse_args(
        arguments
    )
    for name in CHIPS:
        efficiency, depth, half = fit(name)
        machine = with_half(with_matmuls(node(load_chip(name)), efficiency, depth), half)
        print(f"{name}: matmul_efficiency {efficiency:g}, split_depth {depth}, half_bytes {half}")
        print(f"  {'matmuls':16} fitted on  {weighted(matmuls(name), machine):6.1%} of time")
        for opcode, role in (("all-gather", "fitted on"), ("reduce-scatter", "held out"), ("all-reduce", "held out")):
            print(f"  {opcode:16} {role:9}  {apart(collectives(name, opcode), machine):6.1%} in the mean")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
