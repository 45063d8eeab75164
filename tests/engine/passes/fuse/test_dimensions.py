"""Boxes carried through reshapes, against numpy."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.passes.fuse.dimensions import carry_range

_FACTORS = st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4)


def _regroup(factors: list[int], cuts: list[bool]) -> tuple[int, ...]:
    """A shape made of the factors, neighbours multiplied where `cuts` says so."""
    shape = [factors[0]]
    for factor, cut in zip(factors[1:], cuts, strict=False):
        if cut:
            shape.append(factor)
        else:
            shape[-1] *= factor
    return tuple(shape)


@given(st.data())
def test_a_carried_box_holds_the_same_elements_in_the_same_order(data: st.DataObject) -> None:
    factors = data.draw(_FACTORS)
    cuts = st.lists(st.booleans(), min_size=len(factors), max_size=len(factors))
    old, new = _regroup(factors, data.draw(cuts)), _regroup(factors, data.draw(cuts))
    ranges = []
    for size in old:
        low = data.draw(st.integers(0, size - 1))
        ranges.append((low, data.draw(st.integers(low + 1, size))))
    array = np.arange(prod(old)).reshape(old)
    piece = array[tuple(slice(*r) for r in ranges)].ravel()
    carried = carry_range(ranges, old, new)
    if carried is not None:
        there = array.reshape(new)[tuple(slice(*r) for r in carried)].ravel()
        np.testing.assert_array_equal(there, piece)


def test_whole_dimensions_and_aligned_pieces_are_carried() -> None:
    assert carry_range([(1, 2), (0, 3), (0, 5)], (2, 3, 5), (6, 5)) == [(3, 6), (0, 5)]
    assert carry_range([(3, 6), (0, 5)], (6, 5), (2, 3, 5)) == [(1, 2), (0, 3), (0, 5)]
    assert carry_range([(0, 1), (2, 4)], (1, 8), (8,)) == [(2, 4)]


def test_what_is_no_box_is_refused() -> None:
    assert carry_range([(1, 5)], (6,), (2, 3)) is None
    assert carry_range([(0, 2), (1, 2)], (2, 3), (6,)) is None
