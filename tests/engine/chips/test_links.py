"""Ways over listed links: those of a plain search from every chip, found for thousands of chips in a moment."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.chips import links
from engine.chips.chip import Rate
from engine.chips.links import LinkList, Wire
from engine.chips.topology import Link, Load

CLASS = (Link("link", Rate(1e9, 1e9)),)


@st.composite
def networks(draw: st.DrawFn) -> LinkList:
    """A ring one way, so that every chip reaches every other, and links anywhere."""
    size = draw(st.integers(2, 12))
    chips = st.integers(0, size - 1)
    more = draw(st.lists(st.tuples(chips, chips).filter(lambda ends: ends[0] != ends[1]), max_size=3 * size))
    ends = draw(st.permutations([*((k, (k + 1) % size) for k in range(size)), *more]))
    return LinkList(size, CLASS, tuple(Wire(a, b, 0, 10 + number) for number, (a, b) in enumerate(ends)), "listed")


def plainly(network: LinkList, pairs: Sequence[tuple[int, int]], sizes: Sequence[float]) -> Load:
    """What `carry` says, by a search back from each target and a walk along each way."""
    wire_of = {(wire.source, wire.target): number for number, wire in enumerate(network.wires)}
    carried, latency = [0.0] * len(network.wires), 0
    for (source, target), size in zip(pairs, sizes, strict=True):
        next_, queue = {target: target}, deque([target])
        while queue:
            here = queue.popleft()
            for before in sorted({wire.source for wire in network.wires if wire.target == here} - next_.keys()):
                next_[before] = here
                queue.append(before)
        at, total = source, 0
        while at != target:
            wire = wire_of[at, next_[at]]
            carried[wire] += size
            total += network.wires[wire].latency
            at = next_[at]
        latency = max(latency, total)
    return Load(np.array(carried), latency)


@pytest.mark.parametrize("together", [1, 1 << 22])
@given(st.data())
@settings(max_examples=60)
def test_transfers_take_the_ways_of_a_plain_search(together: int, data: st.DataObject) -> None:
    network = data.draw(networks())
    chips = st.integers(0, network.size - 1)
    pairs = data.draw(st.lists(st.tuples(chips, chips), max_size=20))
    sizes = [float(1 << k) for k in range(len(pairs))]  # sums are exact, and tell who is in them
    sources, targets = (np.array([pair[k] for pair in pairs], np.int64) for k in (0, 1))
    with patch.object(links, "_TOGETHER", together):
        found = network.carry(sources, targets, np.array(sizes))
    wanted = plainly(network, pairs, sizes)
    assert found.bytes.tolist() == wanted.bytes.tolist()
    assert found.latency == wanted.latency


@given(st.data())
@settings(max_examples=50)
def test_whether_every_chip_reaches_every_other(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 6))
    chips = st.integers(0, size - 1)
    ends = data.draw(st.lists(st.tuples(chips, chips), max_size=2 * size))
    reached = np.eye(size, dtype=bool)
    for _ in range(size):
        for a, b in ends:
            reached[a] |= reached[b]
    network = LinkList(size, CLASS, tuple(Wire(a, b, 0, 1) for a, b in ends), "listed")
    assert network.reaches_all() is bool(reached.all())


def test_neighbours_among_thousands_of_chips_are_found_at_once() -> None:
    size = 4096
    ring = [(k, (k + step) % size) for k in range(size) for step in (1, -1)]
    network = LinkList(size, CLASS, tuple(Wire(a, b % size, 0, 1) for a, b in ring), "ring")
    chips = np.arange(size)
    begun = time.process_time()
    assert network.reaches_all()
    load = network.carry(chips, (chips + 1) % size, np.ones(size))
    assert time.process_time() - begun < 5.0  # 0.1 s; a table of every chip's way to every other took a minute
    assert load.latency == 1
    assert sorted(set(load.bytes.tolist())) == [0.0, 1.0]
