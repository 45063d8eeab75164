"""Collectives across slices: over the hosts' ports first, then over the links of a slice."""

from __future__ import annotations

import numpy as np
import pytest

from engine.chips.slices import Slices
from engine.cost.collectives import collective_time, permute_time
from tests.engine.chips.test_machines import machine

MIB = 1 << 20
PORT = 25e9
HOP = 10_000_000
TWO = machine(16, "tpu-v4", "2@2x2x2", "data=2,model=8")
ONE = machine(8, "tpu-v4", "2x2x2", "model=8")
SLICES = (tuple(range(8)), tuple(range(8, 16)))
ACROSS = tuple((k, k + 8) for k in range(8))
ALL = (tuple(range(16)),)


@pytest.mark.parametrize("opcode", ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"])
def test_within_slices_a_collective_takes_what_it_takes_in_one(opcode: str) -> None:
    alone = collective_time(ONE, opcode, SLICES[:1], 64 * MIB)
    both = collective_time(TWO, opcode, SLICES, 64 * MIB)
    assert (both.time, both.bytes) == (alone.time, alone.bytes)


def test_across_slices_four_chips_share_a_port() -> None:
    found = collective_time(TWO, "all-gather", ACROSS, 64 * MIB)
    assert found.time == pytest.approx(HOP + 4 * 32 * MIB / PORT * 1e12, rel=1e-6)
    assert [TWO.links[k].name for k in found.links] == ["DCN out", "DCN in"]
    assert found.bytes == (128 * MIB, 128 * MIB)
    assert collective_time(TWO, "all-reduce", ACROSS, 64 * MIB).time == pytest.approx(2 * found.time, rel=1e-6)


def test_over_all_devices_parts_cross_before_they_spread() -> None:
    found = collective_time(TWO, "all-gather", ALL, 64 * MIB)
    inside = collective_time(TWO, "all-gather", SLICES, 64 * MIB)
    crossing = HOP + 4 * 4 * MIB / PORT * 1e12
    assert found.time == pytest.approx(inside.time + crossing, rel=1e-6)


def test_groups_that_are_not_alike_in_their_slices_are_routed() -> None:
    uneven = ((0, 1, 2, 8), (9, 10, 11, 3))
    found = collective_time(TWO, "all-gather", uneven, 64 * MIB)
    assert found.time > 2 * 16 * MIB / PORT * 1e12
    assert {"DCN out", "DCN in"} <= {TWO.links[k].name for k in found.links}


def test_a_permute_between_slices_waits_for_the_network() -> None:
    found = permute_time(TWO, tuple((k, (k + 8) % 16) for k in range(16)), MIB)
    assert found.time == pytest.approx(HOP + 4 * MIB / PORT * 1e12, rel=1e-6)
    assert permute_time(TWO, ((0, 1),), MIB).time == permute_time(ONE, ((0, 1),), MIB).time


def test_exchanges_of_all_with_all_load_the_ports() -> None:
    found = collective_time(TWO, "all-to-all", ALL, 16 * MIB)
    assert found.time >= 4 * 8 * MIB / PORT * 1e12


@pytest.mark.parametrize("groups", [ALL, (tuple(range(0, 16, 2)), tuple(range(1, 16, 2))), ACROSS])
def test_ports_carry_what_routing_every_pair_says(groups: tuple[tuple[int, ...], ...]) -> None:
    """Every member of every group leaves by its host's port, beside all others there."""
    pairs = np.array([(s, t) for group in groups for s in group for t in group if s != t])
    each = np.full(len(pairs), 16 * MIB / len(groups[0]))
    carried = TWO.topology.carry(TWO.position[pairs[:, 0]], TWO.position[pairs[:, 1]], each)
    topology = TWO.topology
    assert isinstance(topology, Slices)
    found = topology.ports(TWO.position, groups, 16 * MIB)
    hosts = 2 * len(np.unique(topology.host))
    assert found.bytes[-hosts:] == pytest.approx(carried.bytes[-hosts:])
    assert not found.bytes[:-hosts].any()
    transfer = collective_time(TWO, "all-to-all", groups, 16 * MIB)
    wire = HOP + carried.bytes[-hosts:].max() / PORT * 1e12
    assert transfer.time == pytest.approx(wire, rel=0.01)  # ports are slower than the links beside them


def test_groups_of_very_many_pairs_contend_for_ports() -> None:
    """1024 chips in two slices, two groups whose members share hosts: routing the first alone counts half."""
    large = machine(1024, "tpu-v4", "2@8x8x8", "data=2,model=512")
    groups = tuple(tuple(range(k, 1024, 2)) for k in range(2))
    found = collective_time(large, "all-to-all", groups, 64 * MIB)
    assert found.time == pytest.approx(HOP + 4 * 32 * MIB / PORT * 1e12, rel=0.01)
