"""How long compute takes on one chip: a roofline whose matmul roof knows tiles."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from engine.chips.chip import Chip
from engine.chips.machine import Machine
from engine.cost.matmul import NO_CHANGE, Matmul, matmul_of
from engine.cost.work import FREE, Reader, Work
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir import shapes
from engine.ir.module import Module

PICO = 1e12


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
) -> int:
    """Picoseconds of a dot or convolution whose operands' dimensions {(side, dimension): size} have other sizes."""
    lhs, rhs = (module.instructions[o].shape for o in instruction.operand_ids[:2])
    full = matmul_of(instruction, lhs, rhs)
    part = matmul_of(instruction, lhs, rhs, sizes)
    work = Work([part])
    scale = (
        part.batch * part.m * part.k / (full.batch * full.m * full.k or 1),
        part.batch * part.n * part.k / (full.batch * full.n * full.k or 1),
        part.batch * part.m * part.n / (full.batch * full.m * full.n or 1),
    )
    for shape, share in zip((lhs, rhs, instruction.shape), scale, strict=True):
        size = shapes.byte_count(shape) * share
        if shapes.memory_space(shape):
            work.onchip += size
        else:
            work.hbm += size
    return work_time(work, machine.chip)


def work_time(work: Work, chip: Chip) -> int:
    """Picoseconds: the slowest of matmul units, vector units and memories, after the launch."""
    units = chip.units
    matmul = sum(matmul_seconds(m, chip) for m in work.matmuls)
    vector = work.vector / units.vector + work.transcendental / units.transcendental
    hbm = work.hbm / (chip.hbm_bandwidth * units.hbm_efficiency)
    onchip = work.onchip / units.onchip_bandwidth
    return units.launch + ceil(max(matmul, vector, hbm, onchip) * PICO)


def matmul_seconds(matmul: Matmul, chip: Chip) -> float:
    """Seconds of the matmul units alone: sizes rounded up to tiles, tiles dealt in waves to parallel units."""
    units = chip.units
    tile_m, tile_n, tile_k = units.tile
    if matmul.macs == 0:
        return 0.0
    rows, columns, depth = ceil(matmul.m / tile_m), ceil(matmul.n / tile_n), ceil(matmul.k / tile_k)
    tiles = matmul.batch * rows * columns
    waves = ceil(tiles / units.parallel) * units.parallel
    flops = 2 * waves * tile_m * tile_n * depth * tile_k
    return flops / (chip.peak(matmul.dtype) * units.matmul_efficiency)
