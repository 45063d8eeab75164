"""What is not said about a machine is inferred from the module, and the notes say so."""

from __future__ import annotations

import pickle
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.chips.inference import MOST_DEVICES, check_machine, machine_for
from engine.chips.library import load_chip
from engine.chips.machine import Machine
from engine.chips.mesh import DeviceOrder, infer_mesh, parse_mesh, place
from engine.chips.topology import Domains, Torus
from engine.errors import UsageError
from engine.hlo.hlo_pb2 import HloComputationProto, HloModuleProto
from engine.ir.module import Header, Module


def module(devices: int, *groups: list[list[int]]) -> Module:
    computation = HloComputationProto(id=1, name="main")
    for number, lists in enumerate(groups, start=1):
        collective = computation.instructions.add(
            id=number, name=f"g{number}", opcode="all-gather", channel_id=1, use_global_device_ids=True
        )
        for members in lists:
            collective.collective_device_list.replica_groups.add().replica_ids.extend(members)
    proto = HloModuleProto(name="m", entry_computation_id=1, computations=[computation])
    return Module(proto, Header(num_partitions=devices))


def machine(devices: int, chip: str = "tpu-v4", topology: str | None = None, mesh: str | None = None) -> Machine:
    return machine_for(module(devices), load_chip(chip), topology, mesh)


@pytest.mark.parametrize(
    ("chip", "devices", "shape", "wraps"),
    [
        ("tpu-v4", 1, (1, 1, 1), False),
        ("tpu-v4", 8, (2, 2, 2), False),
        ("tpu-v4", 16, (2, 2, 4), False),
        ("tpu-v4", 64, (4, 4, 4), True),
        ("tpu-v4", 128, (4, 4, 8), True),
        ("tpu-v4", 4096, (16, 16, 16), True),
        ("tpu-v5e", 8, (2, 4), False),
        ("tpu-v5e", 64, (8, 8), False),
        ("tpu-v5e", 256, (16, 16), True),
        ("tpu-v7x", 128, (4, 4, 4), True),
    ],
)
def test_slices_are_cubic_and_wrap_by_their_chips_rule(
    chip: str, devices: int, shape: tuple[int, ...], wraps: bool
) -> None:
    torus = machine(devices, chip).topology
    assert isinstance(torus, Torus)
    assert torus.shape == shape
    assert all(torus.wrap) == wraps


def test_only_the_whole_axis_of_a_v5e_pod_wraps() -> None:
    torus = machine(128, "tpu-v5e").topology
    assert isinstance(torus, Torus)
    assert (torus.shape, torus.wrap) == ((8, 16), (False, True))


def test_wrap_can_be_forced() -> None:
    torus = machine(8, topology="2tx2mx2t").topology
    assert isinstance(torus, Torus)
    assert torus.wrap == (True, False, True)


def test_gpus_fill_domains() -> None:
    small, large = machine(4, "h100").topology, machine(16, "h100").topology
    assert isinstance(small, Domains)
    assert isinstance(large, Domains)
    assert (small.text, large.text) == ("1x4", "2x8")
    assert len(small.alike.links) == 2
    assert machine(72, "gb200-nvl72").topology.text == "1x72"
    assert machine(128, "gb200-nvl72").topology.text == "2x64"
    assert machine(12, "h100").topology.text == "2x6"
    assert machine(8, "h100", topology="4x2").topology.text == "4x2"


@pytest.mark.parametrize(
    ("chip", "devices", "topology", "mesh", "message"),
    [
        ("tpu-v4", 8, "4x4x4", None, "64 chips, but the module runs on 8"),
        ("tpu-v4", 8, "2x2xq", None, "a topology is written 4x4x4"),
        ("tpu-v4", 16, "2x2x2x2", None, "up to 3 axes"),
        ("tpu-v4", 8, None, "x=3,y=2", "has 6 devices, but the module runs on 8"),
        ("tpu-v4", 8, None, "x8", "a mesh is written x=8,y=8"),
        ("tpu-v4", 8, None, "x=4,x=2", "names an axis twice"),
        ("tpu-v4", 8, None, "x=8;order=spiral", "order=ring"),
        ("h100", 16, "3x4", None, "NODESxGPUS with 16 devices"),
    ],
)
def test_what_does_not_fit_is_refused(
    chip: str, devices: int, topology: str | None, mesh: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        machine(devices, chip, topology, mesh)
    with pytest.raises(UsageError, match=message):
        check_machine(load_chip(chip), devices, topology, mesh)


def test_a_topology_from_a_list_of_links(tmp_path: Path) -> None:
    path = tmp_path / "pair.toml"
    path.write_text("[[links]]\nfrom = 0\nto = 1\ngigabytes_per_second = 12.5\n")
    found = machine(2, topology=str(path))
    assert found.topology.text == "pair"
    assert found.links[0].rate.usable == 12.5e9


def test_mesh_axes_come_from_the_groups_and_are_said() -> None:
    rows = [[8 * r + c for c in range(8)] for r in range(8)]
    found = machine_for(module(64, rows), load_chip("tpu-v4"))
    assert found.mesh == (("x", 8), ("y", 8))
    assert any("inferred from the replica groups" in note for note in found.notes)
    assert any("4x4x4 was assumed" in note for note in found.notes)
    said = machine_for(module(64, rows), load_chip("tpu-v4"), "4x4x4", "a=8,b=8")
    assert said.mesh == (("a", 8), ("b", 8))
    assert not said.notes


@given(st.lists(st.integers(2, 4), min_size=1, max_size=4), st.data())
@settings(max_examples=50)
def test_the_axes_of_a_mesh_are_found_again(sizes: list[int], data: st.DataObject) -> None:
    """From one group along every axis, in any order, some along two axes at once."""
    ids = np.arange(prod(sizes)).reshape(sizes)
    axes = list(range(len(sizes)))
    groups = [np.moveaxis(ids, axis, -1).reshape(-1, sizes[axis])[0] for axis in data.draw(st.permutations(axes))]
    pair = data.draw(st.lists(st.sampled_from(axes), min_size=1, max_size=2, unique=True))
    groups.append(np.moveaxis(ids, pair, range(-len(pair), 0)).reshape(-1, prod(sizes[a] for a in pair))[0])
    assert tuple(size for _, size in infer_mesh(prod(sizes), groups)) == tuple(sizes)


def test_groups_that_are_no_grid_say_nothing() -> None:
    assert infer_mesh(8, [np.array([0, 1, 3, 7])]) == (("x", 8),)


@given(
    st.sampled_from([((4, 4, 4), (8, 8)), ((2, 2, 2), (8,)), ((4, 4), (2, 8)), ((4, 8), (4, 8)), ((2, 4, 6), (6, 8))]),
    st.sampled_from(list(DeviceOrder)),
    st.booleans(),
)
@settings(max_examples=40)
def test_every_chip_gets_one_device(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], order: DeviceOrder, wrap: bool
) -> None:
    shape, sizes = shapes
    mesh = tuple(zip("abc", sizes, strict=False))
    placed = place(mesh, shape, (wrap,) * len(shape), order)
    assert sorted(placed.tolist()) == list(range(prod(shape)))


def test_a_mesh_axis_that_fits_gets_whole_axes_of_the_torus() -> None:
    found = machine(64, mesh="x=16,y=4")
    torus = found.topology
    assert isinstance(torus, Torus)
    ring = torus.coordinates[found.position[:4]]
    assert np.count_nonzero(np.ptp(ring, axis=0)) == 1


def test_ring_order_makes_neighbours_of_neighbours() -> None:
    natural, ring = machine(8, mesh="x=8;order=natural"), machine(8, mesh="x=8;order=ring")
    devices = np.arange(8)
    loads = [m.load(devices, np.roll(devices, 1), 1.0).bytes.max() for m in (natural, ring)]
    both = [
        m.load(np.tile(devices, 2), np.concatenate([np.roll(devices, 1), np.roll(devices, -1)]), 1.0).bytes.max()
        for m in (natural, ring)
    ]
    assert loads == [1.0, 1.0]
    assert both == [2.0, 1.0]


def test_devices_of_one_chip_stay_together() -> None:
    found = machine(16, "tpu-v7x", mesh="x=4,y=4")
    assert np.array_equal(found.position[::2], found.position[1::2])
    odd = machine(6, "tpu-v7x", mesh="x=2,y=3")
    assert any("does not divide over the 2 devices" in note for note in odd.notes)
    assert odd.position.tolist() == [0, 0, 1, 1, 2, 2]
    assert machine(3, "tpu-v7x").position.tolist() == [0, 0, 1]
    assert machine(1, "tpu-v7x").position.tolist() == [0]


def test_a_mesh_and_a_torus_of_different_sizes() -> None:
    with pytest.raises(ValueError, match="on a torus"):
        place((("x", 5),), (6,), (False,))


@pytest.mark.parametrize(("chip", "devices"), [("tpu-v4", 64), ("tpu-v7x", 8), ("h100", 16)])
def test_machines_travel_to_worker_processes(chip: str, devices: int) -> None:
    found = machine(devices, chip)
    there = pickle.loads(pickle.dumps(found))
    assert there.chip == found.chip
    assert there.links == found.links
    assert np.array_equal(there.position, found.position)


def test_parsed_meshes() -> None:
    assert parse_mesh("x=8, y = 4") == ((("x", 8), ("y", 4)), DeviceOrder.MESH)
    assert parse_mesh("x=8;order=ring") == ((("x", 8),), DeviceOrder.RING)


@pytest.mark.parametrize("devices", [MOST_DEVICES + 1, 2_000_000, 999_999_999_999])
def test_more_devices_than_any_machine_has_are_refused(devices: int) -> None:
    with pytest.raises(UsageError, match=f"for {devices:,} devices .* 262,144 are the most"):
        machine(devices)


def test_a_mesh_without_groups_is_assumed_and_not_inferred() -> None:
    assert "The mesh x=8 was assumed: no collective has replica groups." in machine(8).notes
    inferred = machine_for(module(8, [[0, 1, 2, 3], [4, 5, 6, 7]]), load_chip("tpu-v4"))
    assert "The mesh x=2,y=4 was inferred from the replica groups." in inferred.notes
