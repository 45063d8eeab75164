"""Collectives take what the heaviest link takes, and no less than their bytes allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.chips.machine import Machine
from engine.cost.collectives import NOTHING, Transfer, collective_time, pairs_of, permute_time, ring_time
from engine.errors import UnsupportedError
from engine.hlo.hlo_pb2 import HloInstructionProto, SourceTarget
from engine.ir.groups import Lists
from engine.ir.module import Header
from tests.engine.chips.test_machines import machine

MB = 1 << 20
WHOLE = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "collective-broadcast")
MICRO = 1_000_000


def along(sizes: tuple[int, ...], axis: int) -> Lists:
    """Groups along one axis of a mesh."""
    ids = np.moveaxis(np.arange(int(np.prod(sizes))).reshape(sizes), axis, -1)
    return tuple(tuple(map(int, group)) for group in ids.reshape(-1, sizes[axis]))


def seconds(transfer: Transfer) -> float:
    return transfer.time / 1e12


def test_a_hop_is_bytes_over_the_links_rate_and_a_latency() -> None:
    found = permute_time(machine(64, mesh="x=16,y=4"), ((0, 1),), 45 * MB)
    assert found.time == pytest.approx(MB / 1e9 * 1e12 + MICRO)
    assert found.bytes == (45 * MB,)


def test_more_hops_add_latency_only() -> None:
    near = permute_time(machine(8, topology="8x1x1"), ((0, 1),), MB)
    far = permute_time(machine(8, topology="8x1x1"), ((0, 5),), MB)
    assert far.time - near.time == 4 * MICRO


def test_two_permutes_over_one_link_take_twice_as_long() -> None:
    line = machine(8, topology="8x1x1")
    alone, both = permute_time(line, ((0, 2),), 45 * MB), permute_time(line, ((0, 2), (1, 3)), 45 * MB)
    assert both.time - 2 * MICRO == pytest.approx(2 * (alone.time - 2 * MICRO))
    assert both.bytes == (90 * MB,)


def test_a_permute_to_oneself_or_to_nobody_is_free() -> None:
    assert permute_time(machine(8), ((3, 3),), MB) == NOTHING
    assert permute_time(machine(8), (), MB) == NOTHING


@pytest.mark.parametrize("chip", ["tpu-v4", "h100"])
@pytest.mark.parametrize("opcode", WHOLE)
def test_a_scalar_takes_its_hops(opcode: str, chip: str) -> None:
    """Losses and norms are smaller than one byte a member; they wait for the links all the same."""
    of = machine(8, chip=chip)
    scalar, few = (collective_time(of, opcode, (tuple(range(8)),), size).time for size in (4, 8 * 4))
    assert 0.99 * few <= scalar <= few


@pytest.mark.parametrize("hops", [1, 7])
@pytest.mark.parametrize("chip", ["tpu-v4", "h100"])
def test_a_ring_takes_its_steps(hops: int, chip: str) -> None:
    """Each of them a permute of its own, launch included."""
    torus, groups = machine(64, chip, mesh="x=8,y=8"), along((8, 8), 1)
    step = permute_time(torus, tuple((g[r], g[r - 1]) for g in groups for r in range(8)), MB)
    ring = ring_time(torus, groups, MB, hops, both=False)
    assert ring.time == pytest.approx(hops * step.time, rel=1e-6)
    assert ring.bytes == tuple(hops * b for b in step.bytes)


def test_both_directions_cost_nothing_extra_on_a_physical_ring() -> None:
    torus, groups = machine(64, mesh="a=4,b=4,c=4"), along((4, 4, 4), 0)
    one, both = (ring_time(torus, groups, 45 * MB, 3, both=b) for b in (False, True))
    assert both.time == one.time
    assert len(both.links) == 2 * len(one.links)


def test_the_directions_of_a_ring_through_a_box_share_no_link() -> None:
    """Back and forth through 2×2×2 (Gray order): each direction has a link of its own everywhere."""
    torus = machine(8, topology="2x2x2", mesh="x=8;order=natural")
    ring = (0, 1, 3, 2, 6, 7, 5, 4)
    left = permute_time(torus, tuple((ring[k], ring[k - 1]) for k in range(8)), MB)
    right = permute_time(torus, tuple((ring[k - 1], ring[k]) for k in range(8)), MB)
    assert not set(left.links) & set(right.links)
    assert ring_time(torus, (ring,), MB, 1, both=True).time == ring_time(torus, (ring,), MB, 1, both=False).time


def test_gathering_without_wrap_takes_twice_as_long() -> None:
    """The public rule of thumb: a ring that does not close costs about twice."""
    groups = along((16,), 0)
    closed, line = (machine(16, "tpu-v5e", topology) for topology in ("16tx1", "16mx1"))
    ratio = seconds(collective_time(line, "all-gather", groups, 256 * MB)) / seconds(
        collective_time(closed, "all-gather", groups, 256 * MB)
    )
    assert ratio == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("opcode", WHOLE)
@pytest.mark.parametrize("wrap", "tm")
def test_one_axis_alone_is_a_torus_with_axes_of_one(opcode: str, wrap: str) -> None:
    groups = along((8,), 0)
    alone = collective_time(machine(8, topology=f"8{wrap}"), opcode, groups, MB)
    assert alone.time == collective_time(machine(8, topology=f"8{wrap}x1x1"), opcode, groups, MB).time


def test_the_public_v5e_gather() -> None:
    """34 MB over 4 chips in a line: 560 µs by the public formula, 680 measured."""
    found = collective_time(machine(4, "tpu-v5e", "4x1"), "all-gather", along((4,), 0), 34_000_000)
    assert found.time / MICRO == pytest.approx(560, rel=0.03)


def test_more_axes_share_the_work() -> None:
    """Gathering over a 4×4×4 torus uses all six links of a chip."""
    found = collective_time(machine(64, mesh="x=64"), "all-gather", along((64,), 0), 256 * MB)
    assert len(found.links) == 2 * 6  # in even rows and in odd ones
    assert seconds(found) == pytest.approx(256 * MB * 63 / 64 / (6 * 45e9), rel=0.01)


@pytest.mark.parametrize(
    ("chip", "devices", "mesh"),
    [
        ("tpu-v4", 64, (8, 8)),
        ("tpu-v4", 8, (2, 4)),
        ("tpu-v5e", 16, (4, 4)),
        ("h100", 32, (4, 8)),
        ("tpu-v7x", 32, (4, 8)),
    ],
)
@pytest.mark.parametrize("opcode", WHOLE)
@pytest.mark.parametrize("axis", [0, 1])
def test_no_collective_beats_the_bytes_that_must_arrive(
    chip: str, devices: int, mesh: tuple[int, ...], opcode: str, axis: int
) -> None:
    """Every device must receive what it lacks through its own links, and half of all must cross the middle."""
    found = machine(devices, chip, mesh=f"x={mesh[0]},y={mesh[1]}")
    groups = along(mesh, axis)
    size, members = 64 * MB, mesh[axis]
    time = seconds(collective_time(found, opcode, groups, size))
    arriving = size * (members - 1) / members * (2 if opcode == "all-reduce" else 1)
    inbound = sum(link.rate.usable for link in found.links if not link.name.startswith(("network", "ICI odd")))
    per_chip = inbound if found.chip.family == "tpu" else found.links[0].rate.usable
    assert time >= arriving / per_chip * (1 if found.chip.devices_per_chip == 1 else 0.4)


@pytest.mark.parametrize("opcode", WHOLE)
@pytest.mark.parametrize(("chip", "devices"), [("tpu-v4", 64), ("tpu-v5p", 16), ("h100", 16), ("a100", 8)])
@given(sizes=st.tuples(st.integers(1, 1 << 28), st.integers(1, 1 << 28)))
@settings(max_examples=5)
def test_more_bytes_never_take_less(opcode: str, chip: str, devices: int, sizes: tuple[int, int]) -> None:
    small, large = (
        collective_time(_cached(devices, chip), opcode, along((devices,), 0), size).time for size in sorted(sizes)
    )
    assert small <= large


_MACHINES: dict[tuple[int, str], Machine] = {}


def _cached(devices: int, chip: str) -> Machine:
    return _MACHINES.setdefault((devices, chip), machine(devices, chip))


def test_groups_of_one_and_arrays_of_nothing_are_free() -> None:
    assert collective_time(machine(8), "all-gather", along((8, 1), 1), MB) == NOTHING
    assert collective_time(machine(8), "all-gather", along((8,), 0), 0) == NOTHING
    assert ring_time(machine(8), along((8,), 0), MB, 0, both=True) == NOTHING


def test_an_all_reduce_scatters_and_gathers() -> None:
    found = machine(64, mesh="x=8,y=8")
    gather, scatter, reduce = (
        collective_time(found, opcode, along((8, 8), 0), 8 * MB)
        for opcode in ("all-gather", "reduce-scatter", "all-reduce-start")
    )
    assert gather == scatter
    assert reduce.time == 2 * gather.time


def test_small_gpu_messages_are_launches() -> None:
    h100 = machine(8, "h100")
    tiny = collective_time(h100, "all-gather", along((8,), 0), 1024)
    assert 5 * MICRO < tiny.time < 20 * MICRO
    large = collective_time(h100, "all-gather", along((8,), 0), 2048 * MB)
    assert seconds(large) == pytest.approx(2048 * MB * 7 / 8 / 370e9, rel=0.02)


def test_between_nodes_the_network_decides() -> None:
    two = machine(16, "h100")
    inside = collective_time(two, "all-gather", along((2, 8), 1), 256 * MB)
    across = collective_time(two, "all-gather", along((2, 8), 0), 256 * MB)
    assert len(inside.links) == 2
    assert len(across.links) == 4
    assert across.time > 4 * inside.time


def test_a_permute_between_nodes_is_at_the_networks_rate() -> None:
    """NVLink's curve of message sizes is not the network's: 8 devices of a node share 400 GB/s, 360 usable."""
    two = machine(16, "h100")
    across = tuple((d, (d + 8) % 16) for d in range(16))
    size = 256 * 1024
    found = permute_time(two, across, size)
    assert seconds(found) == pytest.approx(5e-6 + 5e-6 + 8 * size / 360e9, rel=1e-3)


def test_groups_that_are_no_box_still_have_a_price() -> None:
    groups = ((0, 1, 3, 6), (2, 4, 5, 7))
    for opcode in WHOLE:
        assert collective_time(machine(8), opcode, groups, MB).time > 0


def test_groups_of_different_sizes_take_as_long_as_the_slowest() -> None:
    mixed, four = ((0, 1), (2, 3, 4, 5), (6,), (7,)), ((2, 3, 4, 5),)
    assert (
        collective_time(machine(8), "all-gather", mixed, MB).time
        >= collective_time(machine(8), "all-gather", four, MB).time
    )


@pytest.mark.parametrize("opcode", WHOLE)
def test_groups_in_a_switched_network_lie_where_the_machine_puts_their_devices(opcode: str) -> None:
    """Every second device in one node: groups of neighbours by number cross the network, those by place do not."""
    network = machine(16, chip="h100", topology="2x8")
    dealt = replace(network, position=np.arange(16).reshape(8, 2).T.ravel())
    dealt_out = tuple(tuple(range(first, 16, 2)) for first in (0, 1))
    inside, across = (tuple(tuple(range(k * 8, k * 8 + 8)) for k in (0, 1)), dealt_out)
    assert collective_time(dealt, opcode, inside, MB).time == collective_time(network, opcode, across, MB).time
    assert collective_time(network, opcode, inside, MB).time < collective_time(dealt, opcode, inside, MB).time


def permute(*pairs: tuple[int, int], channel: int) -> HloInstructionProto:
    listed = [SourceTarget(source=s, target=t) for s, t in pairs]
    return HloInstructionProto(opcode="collective-permute", channel_id=channel, source_target_pairs=listed)


def test_pairs_are_partitions_with_a_channel_and_replicas_without() -> None:
    header = Header(num_partitions=2, replica_count=3)
    assert pairs_of(permute((0, 1), channel=1), header) == ((0, 1), (2, 3), (4, 5))
    assert pairs_of(permute((0, 2), channel=0), header) == ((0, 4), (1, 5))
    assert pairs_of(permute((0, 1), channel=1), Header(num_partitions=2)) == ((0, 1),)


def test_pairs_that_the_module_does_not_have() -> None:
    with pytest.raises(UnsupportedError, match="name partition 9, but the module has 8 partitions"):
        pairs_of(permute((0, 9), channel=1), Header(num_partitions=8))
    with pytest.raises(UnsupportedError, match="replica 1, but the module has 1 replica;"):
        pairs_of(permute((0, 1), channel=0), Header(num_partitions=8))
