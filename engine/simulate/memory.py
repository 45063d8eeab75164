"""Bytes live over time, and which buffers are live at the worst moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.cost.program import Program
from engine.ir.buffers import Buffers
from engine.ir.graph import Ints
from engine.simulate.run import ComputationRun


def lifetimes(buffers: Buffers, place: Ints) -> tuple[Ints, Ints]:
    """First and last position at which each buffer is live, both inclusive, shape [b].

    `place` gives the position of each node. What the caller owns lives throughout, what it gives away from the start,
    results live to the end.
    """
    end = max(len(place) - 1, 0)
    early = buffers.live_in if buffers.given is None else buffers.live_in | buffers.given
    born = np.where(early, 0, place[buffers.node])
    died = born.copy()
    starts, items = buffers.readers
    read = np.flatnonzero(np.diff(starts))
    if len(read):
        last = np.maximum.reduceat(place[items], starts[read])
        died[read] = np.maximum(died[read], last)
    died[buffers.live_in | buffers.live_out] = end
    return born, died


def live_bytes(buffers: Buffers, place: Ints) -> Ints:
    """Bytes live at each position of an order, what the caller owns included, shape [n]."""
    born, died = lifetimes(buffers, place)
    change = np.zeros(len(place) + 1, dtype=np.int64)
    np.add.at(change, born, buffers.size)
    np.add.at(change, died + 1, -buffers.size)
    return np.cumsum(change[:-1])


@dataclass(frozen=True, slots=True)
class Holder:
    """A buffer that is live when memory is fullest."""

    instruction: int
    """Id of the instruction that defines it."""
    computation: int
    """Id of the computation that the instruction is in."""
    size: int
    """Bytes."""
    last: int
    """Id of the last instruction, of the same computation, that needs it."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The moment at which memory is fullest."""

    size: int
    """Bytes."""
    at: tuple[int, ...]
    """Ids of the instruction that runs then, in the entry first, and of those inside the callee that it runs."""
    holders: tuple[Holder, ...]
    """What is live then, largest first; they add up to `size`."""


def peak_of(program: Program, run: ComputationRun) -> Peak:
    """What memory holds at the worst moment of `run`, callees included. Its size is `run.peak`."""
    return _peak(program, run, with_owned=True)


def _peak(program: Program, run: ComputationRun, *, with_owned: bool) -> Peak:
    """`with_owned` counts what the computation's caller owns."""
    plan, ids = run.plan, run.graph.ids
    buffers = program.buffers[run.computation]
    place = plan.order.positions()
    most = plan.live.copy()
    for node, call in plan.calls.items():
        most[place[node]] += max(callee.extra for callee in call.runs)
    moment = int(np.argmax(most))
    born, died = lifetimes(buffers, place)
    live = (born <= moment) & (moment <= died) & (buffers.size > 0) & (with_owned | ~buffers.live_in)
    holders = [
        Holder(
            instruction=int(ids[buffers.node[buffer]]),
            computation=run.computation,
            size=int(buffers.size[buffer]),
            last=int(ids[plan.order.nodes[died[buffer]]]),
        )
        for buffer in np.flatnonzero(live).tolist()
    ]
    node = int(plan.order.nodes[moment])
    at: tuple[int, ...] = (int(ids[node]),)
    if node in plan.calls:
        fullest = max(plan.calls[node].runs, key=lambda callee: callee.extra)
        inside = _peak(program, fullest, with_owned=False)
        at += inside.at
        holders.extend(inside.holders)
    holders.sort(key=lambda holder: (-holder.size, holder.instruction))
    return Peak(sum(holder.size for holder in holders), at, tuple(holders))
