"""Random programs give the same results after the pass, whatever their groups, tables, cases and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.ir.module import Module
from engine.passes.decompose.decompose import Decompose
from engine.passes.passes import Context
from tests.engine.passes.decompose.running import Array, reloaded, run
from tests.engine.passes.decompose.texts import ALL, machine, module

BATCHED = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"


@dataclass(frozen=True)
class Drawn:
    """A gather before an einsum before an element-wise middle before an einsum before a sliced all-reduce."""

    groups: tuple[tuple[int, ...], ...]
    kept: tuple[int, ...]
    """Block that each device keeps."""
    gathered: str
    """Dimension of the first einsum's left operand that is gathered: ``rows`` or ``depth``."""
    transposed: bool
    middle_read: bool

    @property
    def text(self) -> str:
        size, rows, depth = len(self.groups[0]), 2, 3
        lists = "{" + ",".join("{" + ",".join(map(str, g)) + "}" for g in self.groups) + "}"
        how = f"replica_groups={lists}, use_global_device_ids=true"
        all_rows = rows * size
        all_depth = depth * size if self.gathered == "depth" else depth
        shard = f"{all_rows},{depth}" if self.gathered == "depth" else f"{rows},{depth}"
        table = ",".join(str(rows * block) for block in self.kept)
        along = 1 if self.gathered == "depth" else 0
        which = ",".join(map(str, range(len(self.kept))))
        right = f"f32[4,{all_depth}]" if self.transposed else f"f32[{all_depth},4]"
        return f"""
  x = f32[{shard}] parameter(0)
  v = {right} parameter(1)
  w = f32[4,5] parameter(2)
  m = f32[{all_rows},4] parameter(3)
  g = f32[{all_rows},{all_depth}] all-gather(x), dimensions={{{along}}}, channel_id=1, {how}
  h = f32[{all_rows},4] dot(g, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{1 if self.transposed else 0}}}
  half = f32[] constant(0.5)
  halves = f32[{all_rows},4] broadcast(half), dimensions={{}}
  p = f32[{all_rows},4] multiply(h, halves)
  q = f32[{all_rows},4] add(p, m)
  y = f32[{all_rows},5] dot(q, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  z = f32[{size},{rows},5] reshape(y)
  r = f32[{size},{rows},5] all-reduce(z), to_apply=add, channel_id=2, {how}
  back = f32[{all_rows},5] reshape(r)
  d = u32[] partition-id()
  axis = s32[{len(self.kept)}] constant({{{which}}})
  starts = s32[{len(self.kept)}] constant({{{table}}})
  i = s32[1] dynamic-slice(axis, d), dynamic_slice_sizes={{1}}
  j = s32[] reshape(i)
  k = s32[1] dynamic-slice(starts, j), dynamic_slice_sizes={{1}}
  at = s32[] reshape(k)
  zero = s32[] constant(0)
  cut = f32[{rows},5] dynamic-slice(back, at, zero), dynamic_slice_sizes={{{rows},5}}
  ROOT out = (f32[{rows},5], f32[{all_rows},4]) tuple(cut, {"q" if self.middle_read else "m"})
"""


@st.composite
def programs(draw: st.DrawFn) -> Drawn:
    size, count = draw(st.sampled_from([(2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (6, 1)]))
    order = draw(st.permutations(range(size * count)))
    groups = tuple(tuple(order[k * size : (k + 1) * size]) for k in range(count))
    kept = [0] * (size * count)
    same = draw(st.booleans())
    blocks = draw(st.permutations(range(size)))
    for group in groups:
        for member, block in zip(group, blocks if same else draw(st.permutations(range(size))), strict=True):
            kept[member] = block
    return Drawn(
        groups, tuple(kept), draw(st.sampled_from(["rows", "depth"])), draw(st.booleans()), draw(st.booleans())
    )


def inputs(of: Module) -> list[list[Array]]:
    parameters = sorted((i for i in of.entry.instructions if i.opcode == "parameter"), key=lambda i: i.parameter_number)
    random = np.random.default_rng(0)
    return [
        [random.standard_normal(tuple(p.shape.dimensions)).astype(np.float32) for p in parameters]
        for _ in range(of.header.devices)
    ]


FORMS = st.sampled_from(["auto", "rolled", "unrolled"])
UNROLLS = st.sampled_from(["auto", "1", "2"])
RINGS = st.sampled_from(["auto", "one", "both"])
PROGRAMS_AND_OPTIONS = given(
    drawn=programs(), form=FORMS, unroll=UNROLLS, ring=RINGS, chain=st.sampled_from(["on", "off"])
)


@PROGRAMS_AND_OPTIONS
@settings(max_examples=12, deadline=None)
def test_random_programs_stay_equal(drawn: Drawn, form: str, unroll: str, ring: str, chain: str) -> None:
    check(drawn, form, unroll, ring, chain)


@pytest.mark.full
@PROGRAMS_AND_OPTIONS
@settings(max_examples=200, deadline=None)
def test_many_random_programs_stay_equal(drawn: Drawn, form: str, unroll: str, ring: str, chain: str) -> None:
    check(drawn, form, unroll, ring, chain)


def check(drawn: Drawn, form: str, unroll: str, ring: str, chain: str) -> None:
    of = module(drawn.text, partitions=len(drawn.kept))
    decompose = Decompose(gate=False, form=form, unroll=unroll, ring=ring, chain=chain)  # type: ignore[arg-type] # drawn as str
    done = decompose.apply(of, Context(machine(of)))
    by_id = {c.id: c for c in done.candidates}
    size = len(drawn.groups[0])
    if form == "auto" and unroll == "auto" and (ring != "both" or size > 2):
        assert by_id["g"].chosen, by_id["g"].reason
        assert by_id["r"].chosen, by_id["r"].reason
    compare(of, done.module)


def compare(of: Module, done: Module) -> None:
    values = inputs(of)
    before, after = run(of, values), run(reloaded(done), values)
    for original, decomposed in zip(before, after, strict=True):
        for expected, found in zip(original, decomposed, strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * float(np.abs(expected).max()))


@pytest.mark.parametrize("form", ["rolled", "unrolled"])
def test_an_einsum_of_two_equal_gathers_reads_all_of_both(form: Literal["rolled", "unrolled"]) -> None:
    of = module(f"""
  x = f32[2,3] parameter(0)
  w = f32[3,5] parameter(1)
  g = f32[8,3] all-gather(x), dimensions={{0}}, {ALL}
  h = f32[8,3] all-gather(x), dimensions={{0}}, {ALL}
  both = f32[8,8] dot(g, h), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  one = f32[8,5] dot(h, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT out = (f32[8,8], f32[8,5]) tuple(both, one)
""")
    done = Decompose(gate=False, form=form).apply(of, Context(machine(of)))
    verdicts = {c.id: c for c in done.candidates}
    assert verdicts["g"].reason == (
        "read by no einsum that can work on shards: both operands of both are gathers of the same data"
    )
    assert verdicts["h"].chosen
    assert [of.instructions[e].name for e in verdicts["h"].einsums] == ["one"]
    compare(of, done.module)


@st.composite
def batched_all_reduces(draw: st.DrawFn) -> tuple[str, int]:
    """A batched einsum whose sum is added to a residual, and on how many devices it runs."""
    size, count = draw(st.sampled_from([(2, 1), (2, 2), (3, 1), (3, 2), (4, 2), (5, 1)]))
    order = draw(st.permutations(range(size * count)))
    groups = ",".join("{" + ",".join(map(str, order[k * size : (k + 1) * size])) + "}" for k in range(count))
    batch, rows, columns = draw(st.permutations([size * draw(st.integers(1, 3)), *draw(st.permutations([2, 3]))]))
    out = f"f32[{batch},{rows},{columns}]"
    text = f"""
  x = f32[{batch},{rows},4] parameter(0)
  w = f32[{batch},4,{columns}] parameter(1)
  before = {out} parameter(2)
  y = {out} dot(x, w), {BATCHED}
  r = {out} all-reduce(y), to_apply=add, channel_id=1, replica_groups={{{groups}}}, use_global_device_ids=true
  s = {out} add(before, r)
  ROOT out = ({out}, {out}) tuple(s, r)
"""
    return text, size * count


@given(drawn=batched_all_reduces(), form=FORMS, unroll=UNROLLS, ring=RINGS)
@settings(max_examples=8, deadline=None)
def test_all_reduces_that_are_read_whole_stay_equal(drawn: tuple[str, int], form: str, unroll: str, ring: str) -> None:
    text, devices = drawn
    of = module(text, partitions=devices)
    decompose = Decompose(force=("r",), form=form, unroll=unroll, ring=ring)  # type: ignore[arg-type] # drawn as str
    done = decompose.apply(of, Context(machine(of)))
    if form == "auto" and unroll == "auto" and ring != "both":
        assert done.candidates[0].chosen, done.candidates[0].reason
    compare(of, done.module)
