"""Routes take the shortest way, and loads add up to what was sent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.chips.chip import Rate
from engine.chips.links import read_links
from engine.chips.topology import Domains, Floats, Load, Topology, Torus, classes_of
from engine.errors import InputError, UsageError
from engine.ir.graph import Ints

RATE = Rate(1e9, 2e9)


def torus(*shape: int, wrap: bool = True) -> Torus:
    return Torus(shape, (wrap,) * len(shape), RATE, 10)


def load_of(network: Topology, sources: Ints, targets: Ints, size: Floats) -> Load:
    """By class of links."""
    carried = network.carry(sources, targets, size)
    return Load(classes_of(network).heaviest(carried.bytes), carried.latency)


def one(chip: int) -> Ints:
    return np.array([chip])


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.booleans(), st.data())
@settings(max_examples=50)
def test_a_single_transfer_takes_the_shortest_way(shape: list[int], wrap: bool, data: st.DataObject) -> None:
    network = torus(*shape, wrap=wrap)
    source, target = (data.draw(st.integers(0, network.size - 1)) for _ in range(2))
    load = load_of(network, one(source), one(target), np.array([7.0]))
    apart = np.abs(network.coordinates[source] - network.coordinates[target])
    hops = np.minimum(apart, np.array(shape) - apart) if wrap else apart
    assert load.latency == 10 * hops.sum()
    assert set(load.bytes.tolist()) <= {0.0, 7.0}
    assert np.count_nonzero(load.bytes) == np.count_nonzero(hops)


def test_a_ring_loads_every_link_of_one_direction_once() -> None:
    network = torus(6)
    chips = np.arange(6)
    load = load_of(network, chips, np.roll(chips, 1), np.full(6, 5.0))
    assert load.bytes.tolist() == [0.0, 5.0]


def test_without_wrap_the_way_back_loads_the_other_direction() -> None:
    chips = np.arange(6)
    load = load_of(torus(6, wrap=False), chips, np.roll(chips, 1), np.full(6, 5.0))
    assert load.bytes.tolist() == [5.0, 5.0]
    assert load.latency == 50


def test_half_way_round_both_ways_are_used() -> None:
    chips = np.arange(4)
    load = load_of(torus(4), chips, (chips + 2) % 4, np.full(4, 1.0))
    assert load.bytes.tolist() == [1.0, 1.0]


def test_nothing_sent_is_no_load() -> None:
    network = torus(2, 2)
    empty = np.array([], np.int64)
    assert not load_of(network, empty, empty, np.array([])).bytes.any()
    assert not load_of(network, one(1), one(1), np.array([9.0])).bytes.any()


def test_domains_load_ports_and_the_shared_network() -> None:
    network = Domains(2, 4, RATE, RATE, link_latency=1, network_latency=5)
    sources, targets = np.arange(8), (np.arange(8) + 4) % 8
    load = load_of(network, sources, targets, np.full(8, 3.0))
    assert load.bytes.tolist() == [3.0, 3.0, 12.0, 12.0]
    assert load.latency == 5
    inside = load_of(network, np.array([0, 1]), np.array([2, 2]), np.array([3.0, 3.0]))
    assert inside.bytes.tolist() == [3.0, 6.0, 0.0, 0.0]
    assert inside.latency == 1


def write(path: Path, *links: str) -> str:
    path.write_text("\n".join(f"[[links]]\n{link}" for link in links))
    return str(path)


def line(a: int, b: int, more: str = "") -> str:
    return f"from = {a}\nto = {b}\ngigabytes_per_second = 10\n{more}"


def test_a_list_of_links_routes_over_the_fewest_hops(tmp_path: Path) -> None:
    path = write(tmp_path / "ring.toml", line(0, 1), line(1, 2), line(2, 3), line(3, 0, 'name = "slow side"'))
    network = read_links(path, 4)
    assert [link.name for link in network.alike.links] == ["links of 10 GB/s", "slow side"]
    load = load_of(network, np.array([0, 1]), np.array([2, 0]), np.array([4.0, 2.0]))
    assert load.bytes.tolist() == [4.0, 0.0]
    assert load.latency == 2_000_000
    assert load_of(network, one(0), one(3), np.array([4.0])).bytes.tolist() == [0.0, 4.0]


@pytest.mark.parametrize(
    ("links", "error", "message"),
    [
        ([line(0, 1)], UsageError, "do not connect all 3 devices"),
        ([line(0, 3), line(1, 2)], UsageError, "two of devices 0..2"),
        ([line(0, 0)], UsageError, "two of devices"),
        ([line(0, 1, "speed = 3")], InputError, "speed: no figure"),
        ([line(0, 1, 'name = "a"'), "from = 1\nto = 2\ngigabytes_per_second = 5\nname = 'a'"], InputError, "10 GB/s"),
        (["from = 0\nto = 1"], InputError, "gigabytes_per_second is missing"),
        ([line(0, 1, "both = 1")], InputError, "both: true or false"),
    ],
)
def test_a_wrong_list_says_what_is_wrong(
    tmp_path: Path, links: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_links(write(tmp_path / "wrong.toml", *links), 3)


@pytest.mark.parametrize("text", ["", "[links]\n", "links = 3", "x = 1\n[[links]]\n", "[["])
def test_what_is_no_list_of_links(tmp_path: Path, text: str) -> None:
    (tmp_path / "no.toml").write_text(text)
    with pytest.raises(InputError):
        read_links(str(tmp_path / "no.toml"), 2)
    with pytest.raises(InputError, match="cannot be read"):
        read_links(str(tmp_path / "missing.toml"), 2)
