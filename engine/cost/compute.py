"""How long compute takes on one chip: a roofline whose matmul roof knows tiles."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, isinf, pow
from types import MappingProxyType

from engine.chips.chip import Chip, Units
from engine.chips.machine import Machine
from engine.cost.matmul import NO_CHANGE, Matmul, matmul_of
from engine.cost.windows import Pace, fastest
from engine.cost.work import FREE, Reader, Role, Work
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.module import Module

PICO = 1e12
_NOTHING: Mapping[Role, float] = MappingProxyType({})


def instruction_time(module: Module, instruction: HloInstructionProto, machine: Machine) -> int:
    """Picoseconds of one execution on the compute stream; 0 for instructions that cost nothing.

    Collectives, and instructions whose callees are sequences of their own, are not meant for this function.
    """
    if instruction.opcode in FREE:
        return 0
    return work_time(Reader(module).work(instruction), machine.chip)


def einsum_time(
    module: Module,
    instruction: HloInstructionProto,
    machine: Machine,
    sizes: Mapping[tuple[int, int], int] = NO_CHANGE,
    further: Mapping[Role, float] = _NOTHING,
) -> int:
    """Picoseconds of a dot or convolution whose operands' dimensions {(side, dimension): size} have other sizes.

    `further`: bytes in HBM by role that its fusion reads besides.
    """
    lhs, rhs = (module.instructions[o].shape for o in instruction.operand_ids[:2])
    full = matmul_of(instruction, lhs, rhs)
    part = matmul_of(instruction, lhs, rhs, sizes)
    work = Work([part])
    # Shares of both operands and of the result, which alone passes the vector units.
    scale = (
        part.batch * part.m * part.k / (full.batch * full.m * full.k or 1),
        part.batch * part.n * part.k / (full.batch * full.n * full.k or 1),
        part.batch * part.m * part.n / (full.batch * full.m * full.n or 1),
    )
    roles = (Role.LHS, Role.RHS, Role.WRITTEN)
    for shape, share, role in zip((lhs, rhs, instruction.shape), scale, roles, strict=True):
        work.move(shape, share, role)
    for role, size in further.items():
        work.in_hbm[role] = max(0.0, work.in_hbm[role] + size)
    return work_time(work, machine.chip)


def work_time(work: Work, chip: Chip) -> int:
    """Picoseconds: the launch, then matmul units, vector units and memories side by side.

    Form and constants for TPUs follow the production compiler's own estimates (`benchmarks/fit.py`). What passes
    the vector units costs by its bytes, the time of HBM and theirs; narrow elements cost their unpacking too;
    element-wise operations hardly count. Einsums are cut into windows (`engine.cost.windows`) where chips have `vmem`;
    otherwise, and where no windows fit, the times of the resources join as (Σ tᵖ)^(1/p) with p = `Units.overlap`, after
    the first window of what is read.
    """
    units = chip.units
    vector = work.narrow / units.narrow + work.ports / units.ports + _fetching(work, chip)
    if work.matmuls and units.vmem and not isinf(windowed := _windowed(work, vector, chip)):
        return units.launch + ceil(windowed * PICO)
    matmul = sum([matmul_seconds(m, chip) for m in work.matmuls])
    efficiency = units.matmul_hbm_efficiency if matmul else units.hbm_efficiency
    onchip = work.onchip / units.onchip_bandwidth
    memory = work.hbm / (chip.hbm_bandwidth * efficiency) + onchip
    resources = (matmul, vector, work.vector / units.vector + work.transcendental / units.transcendental, memory)
    slowest = max(resources)
    if slowest == 0:
        return units.launch
    if work.scalar:
        return units.scalar
    shares = sum([pow(t / slowest, units.overlap) for t in resources])
    first = min(work.hbm / chip.hbm_bandwidth + onchip, units.window / chip.hbm_bandwidth)
    return units.launch + ceil((slowest * pow(shares, 1 / units.overlap) + first) * PICO)


def _windowed(work: Work, vector: float, chip: Chip) -> float:
    """Seconds of an einsum's windows, infinity where none fit; a fusion's further einsums count by multiplications."""
    largest = max(work.matmuls, key=lambda m: m.macs * m.passes)
    if largest.macs == 0:
        return vector
    scale = sum([m.macs * m.passes for m in work.matmuls]) / (largest.macs * largest.passes)
    vector = max(vector, work.vector / chip.units.vector + work.transcendental / chip.units.transcendental)
    moved = tuple(work.in_hbm), tuple(work.in_chip)
    return fastest(largest, *moved, vector, pace(chip, largest.dtype, scale), chip.units)


def pace(chip: Chip, dtype: str, scale: float = 1.0) -> Pace:
    """Of one core of `chip`; multiplications take `scale` times as long."""
    units = chip.units
    return Pace(
        macs=chip.peak(dtype) * units.matmul_efficiency / (2 * units.cores * scale),
        hbm=chip.hbm_bandwidth * units.matmul_hbm_efficiency / units.cores,
        onchip=units.onchip_bandwidth / units.cores,
        step=units.step / PICO,
        tail=units.tail,
        adding=units.adding / units.cores,
        cores=units.cores,
    )


def _fetching(work: Work, chip: Chip) -> float:
    """Seconds that vector units wait for HBM, and for an on-chip memory that they do not work from."""
    if isinf(chip.units.ports):
        return 0.0
    own = work.ports_onchip if isinf(chip.units.onchip_bandwidth) else 0.0
    return 4 * (work.ports - own) / chip.hbm_bandwidth


def matmul_seconds(matmul: Matmul, chip: Chip) -> float:
    """Seconds of the matmul units alone, by the better of both operands as the stationary one.

    Sizes are rounded up to tiles, tiles are dealt in waves to parallel units. Where that leaves units idle, libraries
    also cut the contraction ("split-K") and add up the parts, which are f32 and are written and read once more.
    """
    if matmul.macs == 0:
        return 0.0
    units = chip.units
    most = min(matmul.k / units.split_depth, units.parallel) if units.split_depth else 1
    found, parts = _in_parts(matmul, chip, 1), 2
    while parts <= most:
        found = min(found, _in_parts(matmul, chip, parts))
        parts *= 2
    return found


def _in_parts(matmul: Matmul, chip: Chip, parts: int) -> float:
    """Seconds of a matmul whose contraction is cut into so many parts."""
    units, batch = chip.units, matmul.batch * parts
    depth = ceil(matmul.k / parts / units.tile[2]) * units.tile[2]
    area = min(_tiled(matmul.m, matmul.n, batch, units), _tiled(matmul.n, matmul.m, batch, units))
    added = 2 * 4 * batch * matmul.m * matmul.n / chip.hbm_bandwidth if parts > 1 else 0.0
    return 2 * area * depth * matmul.passes / (chip.peak(matmul.dtype) * units.matmul_efficiency) + added


def _tiled(rows: float, columns: float, batch: float, units: Units) -> float:
    """Elements of the output that the units are busy for."""
    high, wide = units.tile[0], units.tile[1]
    tiles = batch * ceil(rows / high) * ceil(columns / wide)
    waves = ceil(tiles / units.parallel) * units.parallel
    return waves * high * wide * max(1.0, units.fill / (ceil(rows / high) * high))
