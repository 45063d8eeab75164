"""Fits the TPU constants of the compute model to the production compiler's estimates for one chip, v4 or v6e.

``python -m benchmarks.fit`` reads the v4 modules in ``tests/data/tpu-compiler`` and ``benchmarks/data``, prints the
constants it finds, how well they do on a module that was left out of the fit, module by module (``--quick`` skips
that), and the ``[units]`` of the TPUs in ``engine/chips/data`` that follow from them: v2 to v5p. No module of another
chip is read. v6e and v7x, whose matmul units are four times as large, have the constants that ``--chip tpu-v6e`` fits
to the modules of v6e that `FITS` names. The procedure was written down before its results were compared with any:

- Not fitted: peaks, HBM bandwidth and cores, as documented; the clock that the compiler states; tiles of 8 × 128 by
  128 (by 256 on v6e and v7x), of which the stationary one is used for 128 rows at least; 16 MiB of vector memory,
  the most that the compiler lets its kernels use (32 on v6e and v7x); v7x's share of its peak for matmuls.
- Left out: estimates that are shorter than HBM at its documented peak takes for what the fusion reads and writes there.
- Objective: for each module, for the fusions with and without a matmul, half the mean of |ln(model / compiler)| plus
  half the time-weighted relative error; the mean over all of these. Every module weighs the same.
- Search: from the documented ideal (first value of each grid: full efficiency, no overhead), every constant is tried
  on all of its grid and moved to the best, one after the other, until a whole round gains under 0.1 %; then every pair
  of constants, pair after pair, likewise.
- Ties: a move has to gain 0.1 %; else a constant stays where it is, which is nearer the ideal.
- Other chips: times in cycles, work per core and cycle; the matmul rate as a share of its documented peak. What passes
  the vector units and lies in HBM takes the time of that, as documented, and cycles to load and store. What a fusion
  with a matmul moves goes at as many bytes per core and cycle as on v4, if HBM has them, where matmul units are v4's,
  else at the same share of HBM; a step of a window takes as many cycles, and windows fill the same share.
  The memory that v4's compiler places arrays in, space 3, is a common memory next to HBM; that of the others, space 1,
  is the vector memory, which the units work from: reading it takes no time of its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations, product
from math import inf, isinf
from pathlib import Path
from types import MappingProxyType

import numpy as np

from benchmarks.costs import below_hbm, modules, read_module
from engine.chips.chip import Chip, Units
from engine.chips.library import chips, load_chip
from engine.chips.topology import Floats
from engine.cost.estimates import estimated_cycles
from engine.cost.windows import Cuts, Pace, cut, seconds
from engine.cost.work import Reader
from engine.ir.graph import Ints

LANES = 8 * 128
"""Elements of 32 bits of a vector register, and lanes of a core's vector unit."""
REGISTER = 4 * LANES
"""Bytes of a vector register."""
CORES: Mapping[str, int] = MappingProxyType(
    {c.name: c.units.cores * c.devices_per_chip for c in map(load_chip, chips()) if c.family == "tpu"}
)
"""TensorCores of a chip, as the chips' files have them from Google's documentation of each."""

Constants = Mapping[str, float]

GRIDS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        # Cycles before an instruction's first byte moves.
        "launch": tuple(float(x) for x in range(0, 1001, 20)),
        # Of the documented peak.
        "matmul_efficiency": tuple(round(1 - x / 100, 2) for x in range(21)),
        # Cycles per register, of a core: to unpack and pack narrow elements; to load or store, beside HBM's time.
        "narrow": tuple(round(0.4 * x, 1) for x in range(41)),
        "ports": tuple(round(0.2 * x, 1) for x in range(41)),
        # Operations per lane and cycle: four arithmetic units a lane are documented.
        "vector": (4.0, 2.0, 1.0, 0.5),
        # Of the documented HBM bandwidth, with a matmul.
        "matmul_hbm_efficiency": tuple(round(1 - x / 50, 2) for x in range(26)),
        # Bytes per cycle and core, of v4's common memory.
        "onchip": (inf, 4096.0, 3072.0, 2560.0, 2048.0, 1536.0, 1280.0, 1024.0, 768.0, 512.0),
        # Cycles of a step of a matmul, beside its work.
        "step": tuple(float(x) for x in range(0, 601, 50)),
        # Of the vector memory: what windows may fill.
        "vmem_share": tuple(round(1 - x / 20, 2) for x in range(9)),
        # Of the shorter of a step's matmul and its vector work: what does not hide.
        "tail": tuple(round(x / 20, 2) for x in range(21)),
        # Cycles per register of a result that a step adds to what the steps before it left.
        "adding": (0.0,),
        # Kibibytes of a core that move before anything else can start, without a matmul.
        "window": tuple(float(x) for x in range(0, 4097, 128)),
    }
)
LATER: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        **GRIDS,
        "launch": tuple(float(x) for x in range(0, 3001, 60)),
        "step": tuple(float(x) for x in range(0, 1201, 100)),
        "onchip": (inf,),
        "adding": tuple(round(0.5 * x, 1) for x in range(7)),
    }
)
"""The same for v6e, whose smallest fusions and steps take more cycles; its units work from the vector memory."""


@dataclass(frozen=True)
class Fit:
    """What is fitted to one chip's compiler."""

    grids: Mapping[str, tuple[float, ...]]
    found: Constants
    """What the fit yields, and the chips' files ship."""
    files: tuple[str, ...] = ()
    """Modules that are read; none: all that ship for the chip."""


FITS: Mapping[str, Fit] = MappingProxyType(
    {
        "tpu-v4": Fit(
            GRIDS,
            {
                "launch": 640.0,
                "matmul_efficiency": 0.95,
                "narrow": 9.2,
                "ports": 2.0,
                "vector": 4.0,
                "matmul_hbm_efficiency": 0.62,
                "onchip": 2048.0,
                "step": 200.0,
                "vmem_share": 0.8,
                "tail": 0.1,
                "adding": 0.0,
                "window": 896.0,
            },
        ),
        "tpu-v6e": Fit(
            LATER,
            {
                "launch": 2160.0,
                "matmul_efficiency": 0.92,
                "narrow": 5.2,
                "ports": 0.6,
                "vector": 4.0,
                "matmul_hbm_efficiency": 0.76,
                "onchip": inf,
                "step": 300.0,
                "vmem_share": 0.6,
                "tail": 0.0,
                "adding": 1.0,
                "window": 0.0,
            },
            (
                "decoder_v6e-2x2_2x2_d2048.hlo.gz",
                "decoder_v6e-2x4_2x4_d4096_whole.hlo.gz",
                "probe_v6e.hlo.gz",
            ),
        ),
    }
)
LARGE_TILES = "tpu-v6e", "tpu-v7x"
"""Chips with matmul units of 256 by 256: they have v6e's constants, all others v4's.

Products on v7x reach less of its documented peak, which `units_of` leaves as it is.
"""
GAIN = 1e-3
"""Relative gain in the objective below which a constant is not moved."""


@dataclass(frozen=True)
class Samples:
    """What the compiler estimated, and what decides the model's times. Everything is in cycles of the chip's clock."""

    group: Ints
    """Twice the module's number, plus one for fusions with a matmul: those of a group are averaged first."""
    bytes_per_cycle: float
    """Of HBM for a core, as documented."""
    theirs: Floats
    """The compiler's."""
    narrow: Floats
    """Registers of a core, as are `ports`, `vector` and `fetched`."""
    ports: Floats
    vector: Floats
    fetched: Floats
    """Registers of `ports` that wait for HBM, or for a common memory next to it."""
    hbm: Floats
    """HBM at its full bandwidth."""
    onchip: Floats
    """Bytes of a core."""
    cuts: tuple[Cuts | None, ...]
    """How each can be cut into windows; None without a matmul."""
    macs: float
    """Multiplications of a core in a cycle, as documented."""
    vmem: float
    """Bytes of a core's vector memory."""
    cores: int

    @cached_property
    def joined(self) -> Cuts:
        """All cuts, one sample's after the other's."""
        cuts = [cuts for cuts in self.cuts if cuts is not None]
        return Cuts(*(np.concatenate([getattr(c, f.name) for c in cuts], axis=-1) for f in fields(Cuts)))

    @cached_property
    def counts(self) -> Ints:
        """Of the cuts of every sample with a matmul."""
        return np.array([len(cuts.steps) for cuts in self.cuts if cuts is not None])

    def without(self, module: int) -> Samples:
        return self._where(self.group // 2 != module)

    def only(self, module: int) -> Samples:
        return self._where(self.group // 2 == module)

    def _where(self, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Samples:
        columns = {name: getattr(self, name)[kept] for name in _COLUMNS}
        return replace(self, **columns, cuts=tuple(c for c, keep in zip(self.cuts, kept, strict=True) if keep))


_COLUMNS = ("group", "theirs", "narrow", "ports", "vector", "fetched", "hbm", "onchip")


def samples(files: Sequence[Path], chip: Chip, cores: int) -> Samples:
    """Every fusion with an estimate in `files`, which are compiled for `chip`."""
    clock, registers = chip.units.clock, LANES * cores
    unlimited = replace(chip.units, vmem_share=1.0)
    rows: list[tuple[float, ...]] = []
    cuts: list[Cuts | None] = []
    for number, file in enumerate(files):
        module = read_module(file)
        reader = Reader(module)
        for instruction in module.instructions.values():
            cycles = estimated_cycles(instruction)
            work = reader.work(instruction)
            if not cycles or instruction.opcode != "fusion" or work.scalar or below_hbm(cycles, work, chip):
                continue
            cuts.append(cut(work.matmuls[0], work.in_hbm, work.in_chip, unlimited) if work.matmuls else None)
            fetched = work.ports - (work.ports_onchip if isinf(chip.units.onchip_bandwidth) else 0.0)
            vector = [x / registers for x in (work.narrow, work.ports, work.vector, fetched)]
            moved = work.hbm / chip.hbm_bandwidth * clock, work.onchip / cores
            rows.append((2 * number + bool(work.matmuls), cycles, *vector, *moved))
    group, *columns = np.array(rows).T
    macs = chip.peak("bf16") / (2 * cores * clock)
    theirs, narrow, ports, vectors, fetches, hbm, onchip = columns
    of = group.astype(np.int64)
    return Samples(
        group=of,
        bytes_per_cycle=_hbm_bytes(chip),
        theirs=theirs,
        narrow=narrow,
        ports=ports,
        vector=vectors,
        fetched=fetches,
        hbm=hbm,
        onchip=onchip,
        cuts=tuple(cuts),
        macs=macs,
        vmem=chip.units.vmem,
        cores=cores,
    )


def times(found: Samples, constants: Constants) -> Floats:
    """The model's cycles: `engine.cost.compute.work_time` for all samples at once."""
    c = constants
    vector = found.narrow * c["narrow"] + found.ports * c["ports"] + found.fetched * REGISTER / found.bytes_per_cycle
    memory = found.hbm + found.onchip / c["onchip"]
    cycles: Floats = np.maximum.reduce((vector, found.vector / c["vector"], memory))
    cycles = cycles + np.minimum(memory, c["window"] * 1024 / found.bytes_per_cycle)
    multiplies = found.group % 2 == 1
    pace = Pace(
        macs=found.macs * c["matmul_efficiency"],
        hbm=found.bytes_per_cycle * c["matmul_hbm_efficiency"],
        onchip=c["onchip"],
        step=c["step"],
        tail=c["tail"],
        adding=LANES / c["adding"] if c["adding"] else inf,
        cores=found.cores,
    )
    whole = np.repeat(np.maximum(vector, found.vector / c["vector"])[multiplies], found.counts)
    firsts = np.concatenate(([0], np.cumsum(found.counts)[:-1]))
    fits = found.joined.held <= c["vmem_share"] * found.vmem
    cycles[multiplies] = np.minimum.reduceat(np.where(fits, seconds(found.joined, whole, pace), inf), firsts)
    return cycles + c["launch"]


def objective(found: Samples, constants: Constants) -> float:
    """What is minimised; see the top of this file."""
    ours = np.maximum(times(found, constants), 1.0)
    _, at = np.unique(found.group, return_inverse=True)
    ratios = np.bincount(at, np.abs(np.log(ours / found.theirs))) / np.bincount(at)
    weighted = np.bincount(at, np.abs(ours - found.theirs)) / np.bincount(at, found.theirs)
    return float((ratios + weighted).mean() / 2)


def fit(found: Samples, grids: Mapping[str, tuple[float, ...]]) -> tuple[Constants, float]:
    """The constants, and the objective that they reach."""
    best = {name: grid[0] for name, grid in grids.items()}
    reached = objective(found, best)
    for together in (1, 2):
        before = inf
        while reached < before * (1 - GAIN):
            before = reached
            for names in combinations(grids, together):
                tried = (
                    best | dict(zip(names, values, strict=True)) for values in product(*(grids[name] for name in names))
                )
                value, _, candidate = min((objective(found, c), k, c) for k, c in enumerate(tried))
                if value < reached * (1 - GAIN):
                    best, reached = candidate, value
    return best, reached


def fitted_on(name: str) -> str:
    """The chip to whose compiler `name`'s constants are fitted."""
    return "tpu-v6e" if name in LARGE_TILES else "tpu-v4"


def units_of(name: str, constants: Constants) -> Units:
    """The constants as `name`'s ``[units]``, for the whole chip: scaled by its documented clock and cores."""
    chip, fitted = load_chip(name), load_chip(fitted_on(name))
    devices, clock, c = chip.devices_per_chip, chip.units.clock, constants
    registers = LANES * CORES[name] / devices * clock
    streamed = c["matmul_hbm_efficiency"]
    if name not in LARGE_TILES:
        streamed *= _hbm_bytes(fitted) / _hbm_bytes(chip)
    return replace(
        chip.units,
        matmul_efficiency=chip.units.matmul_efficiency if name == "tpu-v7x" else c["matmul_efficiency"],
        narrow=registers / c["narrow"],
        ports=registers / c["ports"],
        vector=registers * c["vector"],
        matmul_hbm_efficiency=round(min(1.0, streamed), 3),
        onchip_bandwidth=CORES[name] / devices * clock * c["onchip"]
        if name == fitted.name
        else chip.units.onchip_bandwidth,
        vmem_share=c["vmem_share"],
        step=round(c["step"] / clock * 1e12),
        tail=c["tail"],
        adding=registers / c["adding"] if c["adding"] else inf,
        window=c["window"] * 1024 * CORES[name] / devices,
        launch=round(c["launch"] / clock * 1e12),
    )


def _hbm_bytes(chip: Chip) -> float:
    """Bytes of HBM per cycle and core, as documented."""
    return chip.hbm_bandwidth * chip.devices_per_chip / CORES[chip.name] / chip.units.clock


def _written(units: Units, devices: int) -> Mapping[str, str]:
    """The fitted units as a chip's file has them; what takes no time of its own is left out."""
    values = {
        "matmul_efficiency": f"{units.matmul_efficiency:g}",
        "narrow_gigaelements": f"{units.narrow * devices / 1e9:.1f}",
        "port_gigaelements": f"{units.ports * devices / 1e9:.1f}",
        "vector_gigaops": f"{units.vector * devices / 1e9:.1f}",
        "onchip_gigabytes_per_second": f"{units.onchip_bandwidth * devices / 1e9:g}",
        "matmul_hbm_efficiency": f"{units.matmul_hbm_efficiency:g}",
        "step_nanoseconds": f"{units.step / 1e3:.0f}",
        "vmem_share": f"{units.vmem_share:g}",
        "tail": f"{units.tail:g}",
        "adding_gigaelements": f"{units.adding * devices / 1e9:.1f}",
        "window_kibibytes": f"{units.window * devices / 1024:g}",
        "launch_nanoseconds": f"{units.launch / 1e3:.0f}",
    }
    return {key: value for key, value in values.items() if value != "inf"}


def files_of(chip: str) -> list[Path]:
    """The modules that are fitted on."""
    wanted = FITS[chip].files
    return [path for name, path in modules(()) if name == chip and (not wanted or path.name in wanted)]


def main(arguments: list[str]) -> int:
    """Print the constants, the check by leaving modules out, and the units of every TPU."""
    parser = argparse.ArgumentParser(prog="benchmarks.fit", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--chip", choices=FITS, default="tpu-v4", help="whose compiler to fit to (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="skip the check that leaves each module out")
    given = parser.parse_args(arguments)
    files, chip, grids = files_of(given.chip), load_chip(given.chip), FITS[given.chip].grids
    found = samples(files, chip, CORES[given.chip])
    print(f"{len(found.theirs)} fusions of {len(files)} modules for {chip.title}", flush=True)
    constants, reached = fit(found, grids)
    print(
        f"objective {reached:.4f}: " + ", ".join(f"{name} {value:g}" for name, value in constants.items()), flush=True
    )
    for number, file in () if given.quick else enumerate(files):
        without, _ = fit(found.without(number), grids)
        moved = ", ".join(f"{k} {v:g}" for k, v in without.items() if v != constants[k]) or "nothing moves"
        left = found.only(number)
        print(f"  without {file.name[:50]:50} {objective(left, without):.4f} on it; {moved}", flush=True)
    for name in CORES:
        if fitted_on(name) != given.chip:
            continue
        print(f"\n[units] of {name}, the whole chip")
        for key, value in _written(units_of(name, constants), load_chip(name).devices_per_chip).items():
            print(f"{key} = {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
