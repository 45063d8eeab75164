"""The compute model against the production TPU compiler's own estimates, module by module.

``python -m benchmarks.costs [CHIP=FILE.hlo …]`` prints, for every module, how far the model's prices of fusions are
from `estimated_cycles` in the module's text. The constants come from `benchmarks.fit`, which reads the shipped modules
of TPU v4 and those of v6e that its `FITS` names: all others are held out. Without arguments the modules in
``tests/data/tpu-compiler`` and ``benchmarks/data`` are taken; `benchmarks.compiled` makes more of them without a TPU.
The goals are for steps, not for probes.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.chips.chip import Chip
from engine.chips.library import chips, load_chip
from engine.cost.compute import PICO, work_time
from engine.cost.estimates import estimated_cycles
from engine.cost.work import Reader, Work
from engine.hlo.reading import read_here
from engine.ir.graph import Ints
from engine.ir.module import Module

ROOT = Path(__file__).parent.parent
GOALS = {"matmul fusions": (0.10, 0.35, 0.15), "other fusions": (None, None, 0.40)}
"""Median, 90th percentile and time-weighted error that are aimed for."""


@dataclass(frozen=True, slots=True)
class Priced:
    """Instructions of one sort: the compiler's and the model's times in picoseconds."""

    sort: str
    theirs: Ints
    ours: Ints
    forgotten: int
    """Estimates besides that are left out: see `below_hbm`."""

    @property
    def errors(self) -> tuple[float, float, float]:
        """Median, 90th percentile, and time-weighted mean of the relative error."""
        apart = np.abs(self.ours - self.theirs)
        relative = apart / self.theirs
        return float(np.median(relative)), float(np.quantile(relative, 0.9)), float(apart.sum() / self.theirs.sum())


def below_hbm(cycles: float, work: Work, chip: Chip) -> bool:
    """Whether an estimate is under the time that HBM at its documented peak takes for what is read and written.

    It is then no estimate of the fusion: part of what it does was forgotten.
    """
    return cycles / chip.units.clock * chip.hbm_bandwidth < work.hbm


def compare(module: Module, chip: Chip) -> tuple[Priced, ...]:
    """Every fusion of `module` that carries an estimate, with and without a matmul inside."""
    reader = Reader(module)
    pairs: dict[str, list[tuple[int, int]]] = {sort: [] for sort in GOALS}
    forgotten = dict.fromkeys(GOALS, 0)
    for instruction in module.instructions.values():
        cycles = estimated_cycles(instruction)
        if cycles is None or instruction.opcode != "fusion":
            continue
        work = reader.work(instruction)
        sort = "matmul fusions" if work.matmuls else "other fusions"
        if below_hbm(cycles, work, chip):
            forgotten[sort] += 1
            continue
        pairs[sort].append((round(cycles / chip.units.clock * PICO), work_time(work, chip)))
    return tuple(
        Priced(sort, np.array([p[0] for p in found]), np.array([p[1] for p in found]), forgotten[sort])
        for sort, found in pairs.items()
        if found
    )


def modules(arguments: Iterable[str]) -> Iterable[tuple[str, Path]]:
    """Chip name and file of every argument, or of the files that ship."""
    given = list(arguments)
    for argument in given:
        chip, _, path = argument.partition("=")
        yield chip, Path(path)
    if given:
        return
    for folder in (ROOT / "tests/data/tpu-compiler", ROOT / "benchmarks/data"):
        for file in sorted(folder.glob("*.hlo*")):
            words = file.name.replace("_", "-").replace(".", "-").split("-")
            named = next((c for c in chips() if c.removeprefix("tpu-") in words), None)
            if named is not None and file.suffix in (".hlo", ".gz"):
                yield named, file


def read_module(path: Path) -> Module:
    """HLO text, gzipped or not."""
    data = path.read_bytes()
    return read_here(gzip.decompress(data) if path.suffix == ".gz" else data, str(path))


def main(arguments: list[str]) -> int:
    """Print the table; 1 when a goal is missed on steps of 20 such fusions or more."""
    parser = argparse.ArgumentParser(prog="benchmarks.costs", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="CHIP=FILE", help="compiled TPU HLO, gzipped or not")
    given = parser.parse_args(arguments).modules
    missed = 0
    print(f"{'module':58} {'chip':8} {'fusions':15} {'n':>4} {'median':>7} {'p90':>7} {'weighted':>8}")
    for name, path in modules(given):
        if name not in chips() or not path.is_file():
            parser.error(f"CHIP=FILE was expected, a chip that ships and a file, but '{name}={path}' came")
        for priced in compare(read_module(path), load_chip(name)):
            over = [g is not None and e > g for e, g in zip(priced.errors, GOALS[priced.sort], strict=True)]
            missed += any(over) and len(priced.theirs) >= 20 and not path.name.startswith("probe")
            shown = " ".join(f"{e:6.1%}{'*' if o else ' '}" for e, o in zip(priced.errors, over, strict=True))
            row = f"{path.name[:58]:58} {name.removeprefix('tpu-'):8} {priced.sort:15} {len(priced.theirs):4} {shown}"
            print(f"{row} {priced.forgotten} left out" if priced.forgotten else row)
    print("* over the goal: matmul fusions 10 %, 35 %, 15 %; other fusions 40 % time-weighted")
    print("left out: estimates shorter than HBM's documented peak needs for what the fusion reads and writes there")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
