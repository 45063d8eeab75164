"""Slices on a data-centre network: wiring, hosts, and where a job's devices lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.chips.chip import TorusLinks
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.chips.slices import Slices
from engine.errors import UsageError
from tests.engine.chips.test_machines import machine, module


def slices(devices: int, topology: str, chip: str = "tpu-v4", mesh: str | None = None) -> Slices:
    found = machine(devices, chip, topology, mesh).topology
    assert isinstance(found, Slices)
    return found


def test_hosts_are_blocks_of_neighbouring_chips() -> None:
    found = slices(32, "2@2x2x4")
    assert (found.count, found.size, found.text) == (2, 32, "2@2x2x4")
    assert found.host.tolist() == np.repeat(np.arange(8), 4).tolist()
    assert np.bincount(slices(64, "2@4x8", "tpu-v5e").host).tolist() == [8] * 8
    assert set(slices(8, "4@2x1x1").host.tolist()) == {0, 1, 2, 3}  # a slice smaller than a host


def test_transfers_within_slices_take_their_links_alone() -> None:
    found = slices(16, "2@2x2x2")
    one = found.torus.carry(np.array([0]), np.array([1]), np.array([100.0]))
    load = found.carry(np.array([8]), np.array([9]), np.array([100.0]))
    assert load.latency == one.latency
    assert load.bytes[len(one.bytes) : 2 * len(one.bytes)].tolist() == one.bytes.tolist()
    assert load.bytes.sum() == one.bytes.sum()


def test_transfers_between_slices_share_their_hosts_ports() -> None:
    found = slices(16, "2@2x2x2")
    load = found.carry(np.array([0, 1, 4, 8]), np.array([8, 9, 12, 0]), np.full(4, 100.0))
    links = [link.name for link in found.alike.links]
    heaviest = dict(zip(links, found.alike.heaviest(load.bytes).tolist(), strict=True))
    assert heaviest.pop("DCN out") == heaviest.pop("DCN in") == 200.0  # chips 0 and 1 are of one host
    assert not any(heaviest.values())
    assert load.latency == found.between.latency


def test_slowest_axes_span_slices() -> None:
    for mesh in ("data=2,model=8", "data=4,model=4", "x=16"):
        found = machine(16, "tpu-v4", "2@2x2x2", mesh)
        assert (found.position // 8).tolist() == [0] * 8 + [1] * 8
        assert sorted(found.position.tolist()) == list(range(16))
    inner = machine(8, "tpu-v4", "2x2x2", "data=2,model=4")
    outer = machine(16, "tpu-v4", "2@2x2x2", "data=4,model=4")
    assert (outer.position[:8] % 8).tolist() == inner.position.tolist()


@pytest.mark.parametrize(
    ("topology", "mesh", "said"),
    [
        ("1@2x2x2", None, "two or more of one shape"),
        ("x@2x2x2", None, "slices are written 2@4x4x4"),
        ("3@2x2x2", None, "16 devices do not divide over them"),
        ("2@2x2x4", None, "8 chips are needed"),
        ("2@2x2x2", "x=16;order=nothing", "order=mesh"),
    ],
)
def test_what_does_not_fit_is_refused(topology: str, mesh: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        machine(16, "tpu-v4", topology, mesh)


def test_axes_that_do_not_divide_over_slices_are_refused() -> None:
    with pytest.raises(UsageError, match="does not divide over 2 slices along its slowest axes"):
        machine(18, "tpu-v4", "2@3x3x1", "x=3,y=6")


def test_a_chip_without_the_figures_is_refused() -> None:
    chip = load_chip("tpu-v4")
    assert isinstance(chip.network, TorusLinks)
    bare = replace(chip, network=replace(chip.network, slices=None))
    with pytest.raises(UsageError, match=r"says it under \[slices\]"):
        machine_for(module(16), bare, "2@2x2x2")
