"""In which order a ring visits the members of its groups, so that its hops are links where the wiring allows it.

A collective numbers its members as the job does; in natural device order the steps of a logical ring often cross
several links, and the two directions share some. Any order will do for a ring as long as shards keep their numbers:
position r then has block σ(r). Where a box of chips has an even side, going back and forth through it closes a ring
of single links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import permutations

import numpy as np

from engine.chips.machine import Machine
from engine.chips.topology import Torus
from engine.cost.collectives import ring_time
from engine.ir.graph import Ints
from engine.ir.groups import Groups, Lists
from engine.passes.decompose.site import GatherSite, ScatterSite

_BYTES = 1 << 24
"""Size of the shards with which orders are compared; large enough for links to matter more than latency."""


def reordered_gather(site: GatherSite, order: tuple[int, ...]) -> GatherSite:
    """`site` with its rings going through their members in `order` (positions of the groups as they are)."""
    if _is_identity(order):
        return site
    return replace(site, groups=_ordered(site.groups, order), positions=order)


def reordered_scatter(site: ScatterSite, order: tuple[int, ...]) -> ScatterSite:
    """`site` with its rings going through their members in `order` (positions of the groups as they are)."""
    if _is_identity(order):
        return site
    return replace(
        site, groups=_ordered(site.groups, order), positions=tuple(site.positions[position] for position in order)
    )


@lru_cache(maxsize=256)
def ring_order(machine: Machine, lists: Lists) -> tuple[int, ...]:
    """The order of positions in which rings through `lists` (device numbers, all groups) are the fastest.

    The order that the groups have wins ties. All groups go in the same order, by position.
    """
    size = len(lists[0])
    identity = tuple(range(size))
    if size < 4 or not isinstance(machine.topology, Torus):
        return identity
    best, fastest = identity, _time(machine, lists, identity)
    for order in _circuits(machine, lists):
        time = _time(machine, lists, order)
        if time < fastest:
            best, fastest = order, time
    return best


def _time(machine: Machine, lists: Lists, order: Sequence[int]) -> int:
    """Of a step in both directions: it shows hops over several links, and links that both directions use."""
    ordered = tuple(tuple(group[position] for position in order) for group in lists)
    return ring_time(machine, ordered, _BYTES, 1, both=True).time


def _circuits(machine: Machine, lists: Lists) -> Iterator[tuple[int, ...]]:
    """Ways through the chips of the first group, if those are a box: back and forth, for every order of the axes."""
    torus = machine.topology
    assert isinstance(torus, Torus)
    at = torus.coordinates[machine.position[np.array(lists[0], np.int64)]]
    axes = [axis for axis in range(at.shape[1]) if len(np.unique(at[:, axis])) > 1]
    ranks = [np.unique(at[:, axis], return_inverse=True)[1] for axis in axes]
    sides = [int(rank.max()) + 1 for rank in ranks]
    if int(np.prod(sides)) != len(at):
        return
    for choice in permutations(range(len(axes))):
        position_at = np.zeros([sides[k] for k in choice], np.int64)
        position_at[tuple(ranks[k] for k in choice)] = np.arange(len(at))
        yield tuple(map(int, _snake(position_at)))
        if position_at.shape[0] % 2 == 0:
            yield tuple(map(int, _comb(position_at)))


def _snake(cells: Ints) -> Ints:
    """Back and forth: neighbours in the list are neighbours in the box."""
    if cells.ndim == 1:
        return cells
    rows = [_snake(row) for row in cells]
    return np.concatenate([row if k % 2 == 0 else row[::-1] for k, row in enumerate(rows)])


def _comb(cells: Ints) -> Ints:
    """A closed way through a box with an even number of rows: back and forth beside the first column, home along it."""
    rows = np.stack([_snake(row) for row in cells]) if cells.ndim > 1 else cells[:, None]
    if rows.shape[1] < 2:
        return rows[:, 0]
    teeth = [row[1:] if k % 2 == 0 else row[:0:-1] for k, row in enumerate(rows)]
    return np.concatenate([*teeth, rows[::-1, 0]])


def _ordered(groups: Groups, order: tuple[int, ...]) -> Groups:
    return Groups(tuple(tuple(group[position] for position in order) for group in groups.members), groups.mode)


def _is_identity(order: tuple[int, ...]) -> bool:
    return order == tuple(range(len(order)))
