"""Tells links apart that the transfers of a module load differently, and no others.

The wiring alone puts all links along +x of even rows into one class; rings on opposite sides of a cube would then seem
to share a link. Here links stay together only where every transfer of a module loads them alike, and a class goes into
another that every transfer loads at least as much: it is never full first. What is left is exact for any mix of these
transfers, and few: SPMD programs load links alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.chips.topology import Classes, Floats, Topology
from engine.ir.graph import Ints

_MOST = 96
"""Classes beyond which the simulator would take long: then the wiring's own stay, which err on the safe side."""


def refine(topology: Topology, carried: Sequence[Floats]) -> Topology:
    """`topology` with classes that tell the links apart which transfers load with `carried`, bytes by physical link."""
    alike = topology.alike
    labels = alike.of
    for bytes_ in carried:
        labels = _split(labels, bytes_)
    _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    loads = np.array([bytes_[first] for bytes_ in carried]).T
    into = _absorbed(alike.of[first], loads)
    kept = np.unique(into)
    if len(kept) > _MOST:
        return topology
    links = tuple(alike.links[kind] for kind in alike.of[first[kept]].tolist())
    of: Ints = np.searchsorted(kept, into)[labels].astype(np.int64)
    return topology.with_classes(Classes(links, of))


def _split(labels: Ints, carried: Floats) -> Ints:
    """Labels that also differ where `carried` does, ascending as `labels` did."""
    values, ranks = np.unique(carried, return_inverse=True)
    _, found = np.unique(labels * len(values) + ranks, return_inverse=True)
    split: Ints = found.astype(np.int64)
    return split


def _absorbed(kinds: Ints, loads: Floats) -> Ints:
    """For each class, of `loads` [classes, transfers], the one of its kind that stands for it: at least as loaded."""
    into = np.arange(len(kinds), dtype=np.int64)
    heaviest_first = np.lexsort((into, -loads.sum(axis=1)))
    kept: list[int] = []
    for number in heaviest_first.tolist():
        over = next((k for k in kept if kinds[k] == kinds[number] and (loads[k] >= loads[number]).all()), None)
        if over is None:
            kept.append(number)
        else:
            into[number] = over
        if len(kept) > _MOST:
            return np.arange(len(kinds), dtype=np.int64)
    return into
