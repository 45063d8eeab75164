"""Rings go through physical links where a box allows it, and keep every shard's number."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.chips.machine import Machine
from engine.chips.topology import Torus
from engine.cost.collectives import ring_time
from engine.ir.groups import Groups, Mode
from engine.passes.decompose.rings.orders import reordered_gather, reordered_scatter, ring_order
from engine.passes.decompose.site import Case, EinsumUse, GatherSite, ScatterSite
from tests.engine.passes.decompose.texts import module

Lists = tuple[tuple[int, ...], ...]


def on(topology: str, chip: str = "tpu-v4", mesh: str | None = None) -> Machine:
    devices = int(np.prod([int(n) for n in topology.split("x")]))
    empty = module("  ROOT x = f32[2] parameter(0)", before="", partitions=devices)
    return machine_for(empty, load_chip(chip), topology, mesh)


def hops(machine: Machine, group: tuple[int, ...], order: tuple[int, ...]) -> list[int]:
    torus = machine.topology
    assert isinstance(torus, Torus)
    chips = [int(machine.position[group[k]]) for k in order]
    return [int(np.abs(torus.distances(np.array([a]), np.array([b]))).sum()) for a, b in pairwise([*chips, chips[0]])]


@pytest.mark.parametrize("topology", ["2x2x2", "2x2x1", "4x2x1", "2x4x1", "4x4x1", "4x4x4", "2x3x1", "4x3x1", "2x3x3"])
def test_boxes_with_an_even_side_close_a_ring_of_single_links(topology: str) -> None:
    machine = on(topology, mesh=f"x={np.prod([int(n) for n in topology.split('x')])};order=natural")
    group = tuple(range(machine.devices))
    assert set(hops(machine, group, ring_order(machine, (group,)))) == {1}


def test_a_ring_along_one_axis_stays_as_it_is() -> None:
    machine = on("4x4x4", mesh="x=4,y=4,z=4")
    lists = tuple(tuple(16 * k + 4 * j + i for k in range(4)) for j in range(4) for i in range(4))
    assert ring_order(machine, lists) == (0, 1, 2, 3)


def test_switched_devices_stay_in_order() -> None:
    machine = on("1x8", "h100")
    assert ring_order(machine, (tuple(range(8)),)) == tuple(range(8))


@given(st.permutations(range(8)), st.sampled_from(["2x2x2", "8x1x1", "4x2x1"]))
def test_never_slower_and_always_a_permutation(members: list[int], topology: str) -> None:
    machine = on(topology)
    lists: Lists = (tuple(members),)
    order = ring_order(machine, lists)
    assert sorted(order) == list(range(8))
    ordered: Lists = (tuple(members[k] for k in order),)
    times = [ring_time(machine, x, 1 << 24, 1, both=True).time for x in (ordered, lists)]
    assert times[0] <= times[1]


def test_sites_keep_their_numbers() -> None:
    groups = Groups(((10, 11, 12), (20, 21, 22)), Mode.PARTITION)
    use = EinsumUse(1, Case.SCATTER, 0, 0, None, 0)
    order = (2, 0, 1)
    gather = reordered_gather(GatherSite(0, (5,), 4, 0, groups, (use,), rebuild=False), order)
    assert gather.groups.members == ((12, 10, 11), (22, 20, 21))
    assert gather.positions == (2, 0, 1)
    scatter = reordered_scatter(ScatterSite(0, 5, 6, groups, (1, 2, 0), 0, use), order)
    assert scatter.groups == gather.groups
    assert scatter.positions == (0, 1, 2)
    assert reordered_gather(gather, (0, 1, 2)) is gather
