"""Which links of a machine a module's transfers load differently: what has to be known to share links exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from engine.chips.classes import refine
from engine.chips.machine import Machine
from engine.cost.collectives import collective_carries, permute_carries
from engine.ir.groups import Lists

Moving = tuple[str, Lists, int]
"""A transfer as its opcode, who takes part (pairs of a permute, groups of any other), and its bytes; a permute's do
not matter here and are 0."""
_MOST = 256
"""Transfers that differ, beyond which telling their links apart takes long; the wiring's own classes stay then."""


def tell_apart(machine: Machine, transfers: Iterable[Moving]) -> Machine:
    """`machine` with classes of links that tell apart what `transfers` load differently.

    The same machine comes back for the same transfers, so that what is known of it stays known.
    """
    distinct = frozenset(transfers)
    if not 1 < len(distinct) <= _MOST:
        return machine
    return _told_apart(machine, distinct)


@lru_cache(maxsize=64)
def _told_apart(machine: Machine, transfers: frozenset[Moving]) -> Machine:
    carried = {}
    for opcode, members, size in sorted(transfers):
        loads = collective_carries(machine, opcode, members, size) if size else permute_carries(machine, members)
        if loads.any():
            shape = loads / loads.max()
            carried[shape.tobytes()] = shape
    if len(carried) < 2:
        return machine
    return replace(machine, topology=refine(machine.topology, list(carried.values())))
