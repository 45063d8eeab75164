"""What runs beside a collective: work of its computation that neither it needs nor needs it can hide a transfer.

A compiler that makes a collective asynchronous hides it there, and so does a scheduler what a ring's own einsums leave
of its permutes. There is only so much of it, and all transfers of a computation share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.ir.flow import Flow
from engine.passes.decompose.find.collectives import Collective


@dataclass(frozen=True, slots=True)
class Beside:
    """What there is to hide one collective behind."""

    time: int = 0
    """Its share of the work beside it, in picoseconds of one execution."""
    wanted: float = 0.0
    """How much of a picosecond that is hidden here other transfers are left without, from 0 (there is enough for all
    of them) to 1."""

    def hides(self, transfer: int) -> int:
        """How much less is waited for in all where so much of a transfer may run beside other work."""
        return round(min(transfer, self.time) * (1 - self.wanted))


def beside(
    flow: Flow,
    collectives: Iterable[Collective],
    comm: Callable[[Collective], int],
    work: Mapping[int, int],
    ways: Mapping[int, object],
) -> Mapping[int, Beside]:
    """By id of each of `collectives`, all transfers that may be hidden, what it may be hidden behind.

    `work` are times by instruction, in picoseconds of one execution, as `comm` gives them for a collective as it is.
    Every instruction is shared by the transfers that it could hide, each in proportion to its time. `wanted` is what
    stays exposed so of all transfers of a computation. `ways` are equal for collectives that load the same links, which
    hide nothing of each other.
    """
    inside: dict[int, list[Collective]] = {}
    for collective in collectives:
        inside.setdefault(collective.computation, []).append(collective)
    found: dict[int, Beside] = {}
    for computation, members in inside.items():
        busy = [i.id for i in flow.module.computations[computation].instructions if work.get(i.id)]
        transfers = np.array([comm(c) for c in members], np.float64)
        if not busy or not transfers.any():
            continue
        hiding = _independent(flow, computation, members, busy)
        hiding *= [[i not in ways or ways[i] != ways[c.id] for i in busy] for c in members]
        shares = np.array([work[i] for i in busy], np.float64) / np.maximum(transfers @ hiding, 1)
        times = transfers * (hiding @ shares)
        wanted = 1 - float(np.minimum(times, transfers).sum() / transfers.sum())
        found.update({c.id: Beside(round(time), wanted) for c, time in zip(members, times.tolist(), strict=True)})
    return found


def _independent(
    flow: Flow, computation: int, collectives: Sequence[Collective], busy: Sequence[int]
) -> npt.NDArray[np.float64]:
    """1 where neither of a collective and an instruction needs the other, shape [collectives, busy]."""
    needed = flow.ancestors(computation, [*busy, *(c.id for c in collectives)])
    size = len(busy)
    before = np.array([_bits(needed[c.start], size) for c in collectives])
    behind = np.array([_bits(needed[i] >> size, len(collectives)) for i in busy]).T
    return np.where(before | behind, 0.0, 1.0)


def _bits(mask: int, count: int) -> npt.NDArray[np.uint8]:
    """The lowest bits of a mask, the lowest first, shape [count]."""
    low = (mask & ((1 << count) - 1)).to_bytes((count + 7) // 8, "little")
    return np.unpackbits(np.frombuffer(low, np.uint8), count=count, bitorder="little")
