"""Blocks followed through reshapes and transposes are the blocks numpy sees."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.passes.decompose.find.flow import Flow
from engine.passes.decompose.find.tracing import back, is_scalar, path_operand, reshaped_dim, through
from engine.passes.decompose.refusal import Refusal
from tests.engine.passes.decompose.texts import module


@given(
    sizes=st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4),
    merged=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    blocks=st.sampled_from([1, 2, 3, 4]),
    data=st.data(),
)
def test_reshaped_blocks_hold_the_same_elements(
    sizes: list[int], merged: list[int], blocks: int, data: st.DataObject
) -> None:
    """Sizes are regrouped at random; the answer must hold the same elements in every block, and none be missed."""
    after: list[int] = []
    rest = list(sizes)
    for count in merged:
        if rest:
            after.append(prod(rest[:count]))
            rest = rest[count:]
    after += rest
    for before, other in ((sizes, after), (after, sizes)):
        dim = data.draw(st.integers(0, len(before) - 1))
        if before[dim] % blocks or before[dim] == 0:
            continue
        array = np.arange(prod(before)).reshape(before)
        expected = [set(part.ravel().tolist()) for part in np.split(array, blocks, axis=dim)]
        found = reshaped_dim(before, other, dim, blocks)
        possible = [
            d
            for d, n in enumerate(other)
            if n % blocks == 0
            and [set(p.ravel().tolist()) for p in np.split(array.reshape(other), blocks, axis=d)] == expected
        ]
        if blocks > 1:
            assert (found in possible) if possible else (found is None)


LINES = """
  p = f32[4,6,8] parameter(0)
  s = f32[] parameter(1)
  t = f32[8,4,6] transpose(p), dimensions={2,0,1}
  r = f32[24,8] reshape(p)
  apart = f32[6,4,8] reshape(p)
  bc = f32[4,5,6,8] broadcast(p), dimensions={0,2,3}
  c = bf16[4,6,8] convert(p)
  twice = f32[4,6,8] broadcast(s), dimensions={}
  scaled = f32[4,6,8] multiply(twice, p)
  sum = f32[4,6,8] add(p, p)
  same = f32[4,6,8] custom-call(p), custom_call_target="Sharding"
  odd = f32[4,6,8] custom-call(p), custom_call_target="something"
  flat = f32[192] bitcast(p)
  cut = f32[2,6,8] slice(p), slice={[0:2],[0:6],[0:8]}
  ROOT out = (f32[8,4,6], f32[24,8], f32[6,4,8], f32[4,5,6,8], bf16[4,6,8], f32[4,6,8], f32[4,6,8], f32[4,6,8], f32[4,6,8], f32[192], f32[2,6,8]) tuple(t, r, apart, bc, c, scaled, sum, same, odd, flat, cut)
"""  # noqa: E501


@pytest.mark.parametrize(
    ("name", "dim", "blocks", "expected"),
    [
        ("t", 0, 4, 1), ("t", 2, 4, 0), ("r", 0, 4, 0), ("r", 2, 4, 1), ("bc", 1, 3, 2), ("c", 1, 3, 1),
        ("scaled", 2, 2, 2), ("same", 0, 4, 0), ("flat", 0, 4, 0),
    ],
)  # fmt: skip
def test_through_and_back(name: str, dim: int, blocks: int, expected: int) -> None:
    of = module(LINES)
    written, operand = of.by_name[name], of.by_name["p"].shape
    assert through(written, operand, dim, blocks) == expected
    assert back(written, operand, expected, blocks) == dim


@pytest.mark.parametrize(("name", "dim"), [("r", 1), ("apart", 1), ("odd", 0), ("cut", 0), ("flat", 2)])
def test_blocks_that_come_apart(name: str, dim: int) -> None:
    of = module(LINES)
    with pytest.raises(Refusal):
        through(of.by_name[name], of.by_name["p"].shape, dim, 2)


def test_repeated_dimension_has_no_source() -> None:
    of = module(LINES)
    with pytest.raises(Refusal, match="repeats it"):
        back(of.by_name["bc"], of.by_name["p"].shape, 1, 5)


def test_scalars_beside_the_path() -> None:
    flow = Flow(module(LINES))
    by_name = flow.module.by_name
    assert is_scalar(flow, by_name["twice"].id)
    assert not is_scalar(flow, by_name["p"].id)
    assert path_operand(flow, by_name["scaled"]) == 1
    with pytest.raises(Refusal, match="several arrays"):
        path_operand(flow, by_name["sum"])


def test_bitcasts_follow_the_layout() -> None:
    of = module("""
  p = f32[4,6]{0,1} parameter(0)
  ROOT turned = f32[6,4]{1,0} bitcast(p)
""")
    written, operand = of.by_name["turned"], of.by_name["p"].shape
    assert through(written, operand, 0, 4) == 1
    assert back(written, operand, 0, 3) == 1
