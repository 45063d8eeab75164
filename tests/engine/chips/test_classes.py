"""Refined classes say of any mix of transfers what the links themselves say, with few classes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.chips.chip import Rate
from engine.chips.classes import refine
from engine.chips.topology import Floats, Torus, classes_of
from engine.ir.graph import Ints

RATE = Rate(1e9, 2e9)
CUBE = Torus((4, 4, 4), (True,) * 3, RATE, 10)


def ring(chips: Ints) -> Floats:
    return CUBE.carry(chips, np.roll(chips, -1), np.ones(len(chips))).bytes


def line(x: int, y: int) -> Ints:
    """The chips along z at a place."""
    return np.flatnonzero((CUBE.coordinates[:, 0] == x) & (CUBE.coordinates[:, 1] == y))


def test_rings_on_opposite_sides_of_a_cube_share_nothing() -> None:
    here, there = ring(line(0, 0)), ring(line(2, 2))
    together = CUBE.alike.heaviest(here) * CUBE.alike.heaviest(there)
    assert together.any()  # by the wiring's own classes they seem to
    classes = classes_of(refine(CUBE, [here, there]))
    assert not (classes.heaviest(here) * classes.heaviest(there)).any()
    assert classes.heaviest(here + there).max() == 1


def test_alike_transfers_need_no_more_classes() -> None:
    every = np.arange(64).reshape(4, 4, 4)
    along_x = CUBE.carry(every.ravel(), np.roll(every, -1, axis=2).ravel(), np.ones(64)).bytes
    along_y = CUBE.carry(every.ravel(), np.roll(every, -1, axis=1).ravel(), np.ones(64)).bytes
    classes = classes_of(refine(CUBE, [along_x, along_y]))
    assert len(classes.links) == len(CUBE.alike.links)
    assert [link.name for link in classes.links] == [link.name for link in CUBE.alike.links]


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), min_size=1, max_size=6), min_size=2, max_size=5
    )
)
@settings(max_examples=50, deadline=None)
def test_mixes_are_exact(patterns: list[list[tuple[int, int]]]) -> None:
    carried = []
    for pairs in patterns:
        ends = np.array(pairs, np.int64)
        carried.append(CUBE.carry(ends[:, 0], ends[:, 1], np.ones(len(ends))).bytes)
    refined = refine(CUBE, carried)
    classes = classes_of(refined)
    for weights in (*np.eye(len(carried)).tolist(), [1.0] * len(carried), [float(k + 1) for k in range(len(carried))]):
        truth = sum(w * c for w, c in zip(weights, carried, strict=True))
        by_class = sum(w * classes.heaviest(c) for w, c in zip(weights, carried, strict=True))
        assert np.max(by_class) >= np.max(truth)
        if refined.refined is not None:
            assert np.max(by_class) == np.max(truth)


def test_too_many_classes_stay_the_wirings_own() -> None:
    random = np.random.default_rng(0)
    pairs = random.integers(0, 64, (40, 2, 30))
    carried = [CUBE.carry(a, b, random.random(30)).bytes for a, b in pairs]
    assert refine(CUBE, carried).refined is None
