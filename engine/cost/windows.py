"""How TPU compilers cut an einsum into windows that fit the vector memory, and how long its steps take.

A kernel multiplies one window of either operand in a step, while the next windows come from memory; what meets the
result comes, and the result goes, with the last step of an output window. Where a window does not hold the whole
contracting dimension, or the other operand's windows take turns, operands are read again and again. The compiler
writes the windows that it chose into its backend config; here the fastest of those that halve dimensions is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, isinf

import numpy as np

from engine.chips.chip import Units
from engine.chips.topology import Floats
from engine.cost.matmul import Matmul
from engine.cost.work import Role

BUFFERS = 2
"""Windows of an array in the vector memory: one is worked on, one is on its way. Operands fill both at first."""
_LANES = 128
"""Elements of the minor dimension in a tile of memory."""
_NARROWEST = 2
"""Tiles that a window is wide at least, where its array is: narrower ones come in pieces that are too short."""
_ACCUMULATOR = 4
"""Bytes of an element of the result while it is added up, beside its windows unless those are as wide themselves."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """Ways to cut one einsum: [c] each, and [4, c] by `Role` what one window of the arrays of a role holds."""

    steps: Floats
    """Along the contracting dimension."""
    rows: Floats
    """Windows along the first operand's own dimensions, and along the batch; likewise `columns`, of the second."""
    columns: Floats
    batches: Floats
    macs: Floats
    """Multiplications of a step, idle parts of tiles included."""
    share: Floats
    """Of the result, in one window."""
    added: Floats
    """Elements of the result that a window adds up, idle parts of tiles included."""
    hbm: Floats
    """Bytes."""
    onchip: Floats
    """Bytes in an on-chip memory that the units do not work from."""
    held: Floats
    """[c] bytes of the vector memory that all windows take together."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What one core does in a second, and what it loses by the step."""

    macs: float
    """Multiplications with their additions."""
    hbm: float
    """Bytes."""
    onchip: float
    """Bytes."""
    step: float
    """Seconds that a step takes beside its work."""
    tail: float
    """Share that does not hide of the shorter of a step's matmul and its vector work."""
    adding: float
    """Elements of a window's result that are added to what earlier steps left, where a contraction takes several."""
    cores: int
    """They share the windows of the result."""


def cut(matmul: Matmul, hbm: Sequence[float], onchip: Sequence[float], units: Units) -> Cuts:
    """The ways to cut `matmul` that fit `units.vmem_share` of `units.vmem`; none where the smallest windows do not.

    `hbm` and `onchip` are all bytes by `Role`. Windows are tiles of 8 rows by 128 columns or multiples of them, each
    dimension halved as often as that goes; windows of several whole batches are doubled.
    """
    high, wide = units.tile[0], _LANES
    m, n, k = _halves(matmul.m, high), _halves(matmul.n, wide, _NARROWEST), _halves(matmul.k, wide)
    rows, columns, depth = (grid.ravel() for grid in np.meshgrid(m, n, k, indexing="ij"))
    together = 2.0 ** np.arange(ceil(matmul.batch).bit_length())
    batch = np.concatenate((np.ones_like(rows), together[1:]))
    rows, columns, depth = (np.append(a, np.full(len(together) - 1, a[0])) for a in (rows, columns, depth))
    part = np.minimum(1.0, np.array((batch / matmul.batch, rows / matmul.m, columns / matmul.n, depth / matmul.k)))
    shares = np.array((part[0] * part[1] * part[3], part[0] * part[2] * part[3], *(part[0] * part[1] * part[2],) * 2))
    in_hbm, in_chip = np.array(hbm)[:, None] * shares, np.array(onchip)[:, None] * shares
    if isinf(units.onchip_bandwidth):
        in_chip = np.zeros_like(in_chip)
    beside = 0 if matmul.dtype == "f32" else _ACCUMULATOR
    held = BUFFERS * (in_hbm + in_chip).sum(axis=0) + beside * batch * rows * columns
    fits = held <= units.vmem * units.vmem_share
    return Cuts(
        steps=np.ceil(matmul.k / depth)[fits],
        rows=np.ceil(matmul.m / rows)[fits],
        columns=np.ceil(matmul.n / columns)[fits],
        batches=np.ceil(matmul.batch / batch)[fits],
        macs=(batch * _busy(rows, columns, units) * depth * matmul.passes)[fits] * _idle(matmul, units),
        share=shares[Role.WRITTEN][fits],
        added=(batch * rows * columns)[fits],
        hbm=in_hbm[:, fits],
        onchip=in_chip[:, fits],
        held=held[fits],
    )


def _halves(size: float, unit: int, least: int = 1) -> Floats:
    """A dimension whole, halved, and so on down to `least` times `unit`, rounded up to that unit."""
    whole = ceil(size / unit)
    halved = {ceil(whole / 2**times) for times in range(whole.bit_length() + 1)}
    halved = {units for units in halved if units >= min(least, whole)}
    return unit * np.array(sorted(halved, reverse=True), np.float64)


def _busy(rows: Floats, columns: Floats, units: Units) -> Floats:
    """Elements of a window of the result that the matmul units are busy for, the better operand stationary."""
    high, wide = units.tile[0], units.tile[1]
    one = np.maximum(_up(rows, high), units.fill) * _up(columns, wide)
    other = np.maximum(_up(columns, high), units.fill) * _up(rows, wide)
    return np.minimum(one, other)


def _idle(matmul: Matmul, units: Units) -> float:
    """How often the matmul units' time is taken where blocks of columns leave part of them idle."""
    wide, block = units.tile[1], max(matmul.block, _LANES)
    return 1.0 if block >= wide else wide / block


def _up(size: Floats, unit: int) -> Floats:
    rounded: Floats = np.ceil(size / unit) * unit
    return rounded


def seconds(cuts: Cuts, vector: Floats | float, pace: Pace) -> Floats:
    """How long each cut takes [c]; `vector` is the time of the vector units for the whole result, all cores at work."""
    moved = cuts.hbm / pace.hbm + cuts.onchip / pace.onchip
    operands = moved[Role.LHS] + moved[Role.RHS]
    result = moved[Role.READ] + moved[Role.WRITTEN]
    multiply = cuts.macs / pace.macs + np.where(cuts.steps > 1, cuts.added / pace.adding, 0.0)
    finish = vector * cuts.share * pace.cores
    last = np.maximum(multiply, finish) + pace.tail * np.minimum(multiply, finish) + pace.step
    anew = np.maximum(last, operands + result)
    split = (cuts.steps - 1) * np.maximum(multiply + pace.step, operands) + anew
    whole = np.minimum(
        _sweep(last, anew, moved[Role.RHS] + result, moved[Role.LHS] + result, cuts.columns, cuts.batches),
        _sweep(last, anew, moved[Role.LHS] + result, moved[Role.RHS] + result, cuts.rows, cuts.batches),
    )
    each = np.where(cuts.steps > 1, split, whole)
    windows = cuts.batches * cuts.rows * cuts.columns
    each = np.where(windows * cuts.steps == 1, np.maximum(last, moved[Role.READ]), each)
    filling = BUFFERS * operands + moved[Role.WRITTEN]
    total: Floats = np.maximum(windows / pace.cores, 1.0) * each + filling
    return total


def _sweep(last: Floats, anew: Floats, turning: Floats, staying: Floats, turns: Floats, batches: Floats) -> Floats:
    """A window's mean time where one operand stays while the other's windows take `turns`.

    `turning` and `staying` are the times to move a window of either operand with the result's. An operand that is one
    window in all is moved once.
    """
    swept = (anew + (turns - 1) * np.maximum(last, turning)) / turns
    return np.where(turns * batches == 1, np.maximum(last, staying), swept)


@lru_cache(maxsize=1 << 13)
def fastest(
    matmul: Matmul, hbm: tuple[float, ...], onchip: tuple[float, ...], vector: float, pace: Pace, units: Units
) -> float:
    """Seconds of the fastest cut; infinity where none fits."""
    return float(seconds(cut(matmul, hbm, onchip, units), vector, pace).min(initial=inf))
