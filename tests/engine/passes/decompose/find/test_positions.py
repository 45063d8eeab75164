"""Where slices start, evaluated on every device, and the position map that follows from it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.hlo.reading import read_here
from engine.ir.flow import Flow
from engine.ir.groups import Groups, Mode
from engine.ir.scalars import Scalars, UnknownValueError
from engine.passes.decompose.find.positions import NotByPositionError, kept_blocks, sliced_dim
from tests.engine.passes.decompose.texts import module


def on_devices(lines: str, partitions: int = 4, replicas: int = 1, before: str = "") -> list[int]:
    """The scalar ``x`` of an entry, on every device."""
    of = module(f"{lines}\n  ROOT out = s32[1] reshape(x)", before=before, partitions=partitions, replicas=replicas)
    return [int(value) for value in Scalars(Flow(of)).on_devices(of.by_name["x"].id)]


def test_ids() -> None:
    assert on_devices("  d = u32[] partition-id()\n  x = s32[] convert(d)", 3, 2) == [0, 1, 2, 0, 1, 2]
    assert on_devices("  d = u32[] replica-id()\n  x = s32[] convert(d)", 3, 2) == [0, 0, 0, 1, 1, 1]


ARITHMETIC = """
  d = u32[] partition-id()
  i = s32[] convert(d)
  three = s32[] constant(3)
  minus = s32[] constant(-2)
  two = s32[] constant(2)
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("multiply(i, three)", [0, 3, 6, 9]),
        ("subtract(i, three)", [-3, -2, -1, 0]),
        ("divide(minus, three)", [0] * 4),
        ("remainder(minus, three)", [-2] * 4),
        ("divide(i, two)", [0, 0, 1, 1]),
        ("remainder(i, two)", [0, 1, 0, 1]),
        ("clamp(two, i, three)", [2, 2, 2, 3]),
        ("maximum(i, two)", [2, 2, 2, 3]),
        ("minimum(i, two)", [0, 1, 2, 2]),
        ("and(i, two)", [0, 0, 2, 2]),
        ("or(i, two)", [2, 3, 2, 3]),
        ("xor(i, two)", [2, 3, 0, 1]),
        ("shift-left(i, two)", [0, 4, 8, 12]),
        ("shift-right-logical(i, two)", [0, 0, 0, 0]),
        ("shift-right-arithmetic(minus, two)", [-1] * 4),
        ("negate(i)", [0, -1, -2, -3]),
        ("abs(minus)", [2] * 4),
        ("sign(minus)", [-1] * 4),
        ("not(i)", [-1, -2, -3, -4]),
        ("copy(i)", [0, 1, 2, 3]),
    ],
)
def test_arithmetic(line: str, expected: list[int]) -> None:
    assert on_devices(f"{ARITHMETIC}  x = s32[] {line}") == expected


def test_select_and_compare() -> None:
    lines = f"""{ARITHMETIC}
  less = pred[] compare(i, two), direction=LT
  x = s32[] select(less, three, minus)"""
    assert on_devices(lines) == [3, 3, -2, -2]


def test_shifts_by_the_width_give_zero() -> None:
    lines = f"{ARITHMETIC}  w = s32[] constant(32)\n  x = s32[] shift-left(three, w)"
    assert on_devices(lines) == [0] * 4


def test_two_level_table_through_reshapes() -> None:
    lines = """
  axis = u32[4] constant({1, 0, 1, 0})
  starts = s32[2,1] constant({{0}, {8}})
  d = u32[] partition-id()
  one = u32[1] dynamic-slice(axis, d), dynamic_slice_sizes={1}
  at = u32[] reshape(one)
  zero = u32[] constant(0)
  two = s32[1,1] dynamic-slice(starts, at, zero), dynamic_slice_sizes={1,1}
  x = s32[] reshape(two)"""
    assert on_devices(lines) == [8, 0, 8, 0]


def test_arrays_of_positions() -> None:
    lines = """
  i = s32[4] iota(), iota_dimension=0
  d = u32[] partition-id()
  k = s32[] convert(d)
  b = s32[4] broadcast(k), dimensions={}
  sum = s32[4] add(i, b)
  t = s32[2,2] reshape(sum)
  u = s32[2,2] transpose(t), dimensions={1,0}
  j = s32[2,4] concatenate(u, t), dimensions={1}
  s = s32[1,1] slice(j), slice={[0:1], [1:2]}
  x = s32[] reshape(s)"""
    assert on_devices(lines) == [2, 3, 4, 5]


LOOP = """
body {
  state = (s32[], u32[], s32[]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  d = u32[] get-tuple-element(state), index=1
  x = s32[] convert(d)
  ROOT out = (s32[], u32[], s32[]) tuple(next, d, x)
}
condition {
  state = (s32[], u32[], s32[]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(3)
  ROOT more = pred[] compare(n, limit), direction=LT
}
"""
CALLS_LOOP = """
  zero = s32[] constant(0)
  d = u32[] partition-id()
  start = (s32[], u32[], s32[]) tuple(zero, d, zero)
  loop = (s32[], u32[], s32[]) while(start), condition=condition, body=body
  after = u32[] get-tuple-element(loop), index=1
  ROOT y = s32[] convert(after)
"""


def test_values_that_loops_only_carry() -> None:
    of = module(CALLS_LOOP, before=LOOP)
    scalars = Scalars(Flow(of))
    assert scalars.on_devices(of.by_name["y"].id).tolist() == [0, 1, 2, 3]
    in_body = [i for i in of.instructions.values() if i.opcode == "convert" and of.computation_of[i.id] != of.entry.id]
    assert scalars.on_devices(in_body[0].id).tolist() == [0, 1, 2, 3]


def test_the_iteration_is_no_function_of_the_device() -> None:
    of = module(CALLS_LOOP, before=LOOP)
    number = next(i for i in of.instructions.values() if i.opcode == "add")
    with pytest.raises(UnknownValueError):
        Scalars(Flow(of)).on_devices(number.id)


def test_values_in_fusions_and_calls() -> None:
    before = """
inner {
  p = u32[] parameter(0)
  c = s32[] convert(p)
  two = s32[] constant(2)
  ROOT m = s32[] multiply(c, two)
}
outer {
  q = u32[] parameter(0)
  ROOT f = s32[] fusion(q), kind=kLoop, calls=inner
}
"""
    lines = "  d = u32[] partition-id()\n  x = s32[] call(d), to_apply=outer"
    of = module(f"{lines}\n  ROOT out = s32[1] reshape(x)", before=before)
    fused = next(i for i in of.instructions.values() if i.opcode == "fusion")
    assert Scalars(Flow(of)).on_devices(fused.id).tolist() == [0, 2, 4, 6]


SHARED = """
shared {
  p = u32[] parameter(0)
  ROOT c = s32[] convert(p)
}
"""


@pytest.mark.parametrize(
    "line",
    [
        "f = s32[] fusion({}), kind=kLoop, calls=shared\n  g = s32[] fusion({}), kind=kLoop, calls=shared",
        "f = s32[] call({}), to_apply=shared\n  g = s32[] fusion({}), kind=kLoop, calls=shared",
        "b = s32[] constant(0)\n  g = s32[] conditional(b, {}, {}), branch_computations={{shared, shared}}",
    ],
    ids=["fusions", "a call and a fusion", "branches of one conditional"],
)
def test_a_computation_that_several_run_is_known_where_they_agree(line: str) -> None:
    lines = "  d = u32[] partition-id()\n  one = u32[] constant(1)\n  e = u32[] add(d, one)\n"
    for second, known in (("d", True), ("e", False)):
        of = module(f"{lines}  {line.format('d', second)}\n  ROOT out = s32[1] reshape(g)", before=SHARED)
        inside = next(i for i in of.instructions.values() if i.opcode == "convert")
        if known:
            assert Scalars(Flow(of)).on_devices(inside.id).tolist() == [0, 1, 2, 3]
            continue
        with pytest.raises(UnknownValueError, match="p"):
            Scalars(Flow(of)).on_devices(inside.id)


SLICE = """
  p = f32[8,6] parameter(0)
  table = s32[4] constant({TABLE})
  d = u32[] partition-id()
  one = s32[1] dynamic-slice(table, d), dynamic_slice_sizes={1}
  at = s32[] reshape(one)
  zero = s32[] constant(0)
  ROOT cut = f32[2,6] dynamic-slice(p, at, zero), dynamic_slice_sizes={2,6}
"""
RING = Groups(((0, 1, 2, 3),), Mode.PARTITION)


def kept(table: str, groups: Groups = RING, **header: int) -> tuple[Groups, tuple[int, ...]]:
    of = module(SLICE.replace("TABLE", table), before="", **header)
    flow = Flow(of)
    return kept_blocks(of.by_name["cut"], 0, 8, groups, of.header, Scalars(flow))


def test_identity_and_other_orders() -> None:
    assert kept("0,2,4,6") == (RING, (0, 1, 2, 3))
    assert kept("6,4,2,0") == (RING, (3, 2, 1, 0))


def test_starts_clamp() -> None:
    assert kept("-5,2,4,99") == (RING, (0, 1, 2, 3))


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("0,0,4,6", "two positions of a group keep the same block"),
        ("0,2,6,99", "two positions of a group keep the same block"),
        ("0,3,4,6", "slices of 2 start at 3, not at a multiple of it"),
    ],
)
def test_no_bijection(table: str, reason: str) -> None:
    with pytest.raises(NotByPositionError, match=reason):
        kept(table)


def test_slices_that_do_not_match_the_groups() -> None:
    pairs = Groups(((0, 1), (2, 3)), Mode.PARTITION)
    with pytest.raises(NotByPositionError, match="slices of 2 of 8 elements do not match groups of 2"):
        kept("0,2,4,6", pairs)


@given(st.permutations(range(4)), st.permutations(range(4)))
@settings(max_examples=20)
def test_groups_that_keep_blocks_in_different_orders_are_reordered(first: list[int], second: list[int]) -> None:
    order = [2 * b for b in first] + [2 * b for b in second]
    lines = SLICE.replace("s32[4]", "s32[8]").replace("TABLE", ",".join(map(str, order)))
    of = module(lines, before="", partitions=8)
    groups = Groups(((0, 1, 2, 3), (4, 5, 6, 7)), Mode.PARTITION)
    found, positions = kept_blocks(of.by_name["cut"], 0, 8, groups, of.header, Scalars(Flow(of)))
    blocks = np.array(order) // 2
    for members in found.members:
        assert [blocks[m] for m in members] == list(positions)
    if first == second:
        assert found == groups


def test_blocks_that_differ_between_replicas_are_refused() -> None:
    lines = """
  p = f32[4,6] parameter(0)
  d = u32[] partition-id()
  r = u32[] replica-id()
  s = u32[] xor(d, r)
  two = u32[] constant(2)
  at = u32[] multiply(s, two)
  zero = u32[] constant(0)
  ROOT cut = f32[2,6] dynamic-slice(p, at, zero), dynamic_slice_sizes={2,6}
"""
    of = module(lines, before="", partitions=2, replicas=2)
    groups = Groups(((0, 1),), Mode.PARTITION)
    with pytest.raises(NotByPositionError, match="differ from replica to replica"):
        kept_blocks(of.by_name["cut"], 0, 4, groups, of.header, Scalars(Flow(of)))


def test_left_out_tables_are_taken_to_hold_positions() -> None:
    text = "HloModule m, num_partitions=4\nENTRY e {" + SLICE.replace("{TABLE}", "{...}") + "}"
    of = read_here(text.encode())
    assert kept_blocks(of.by_name["cut"], 0, 8, RING, of.header, Scalars(Flow(of)))[1] == (0, 1, 2, 3)


def test_starts_that_depend_on_data() -> None:
    lines = """
  p = f32[8,6] parameter(0)
  at = s32[] parameter(1)
  zero = s32[] constant(0)
  ROOT cut = f32[2,6] dynamic-slice(p, at, zero), dynamic_slice_sizes={2,6}
"""
    of = module(lines, before="")
    with pytest.raises(NotByPositionError, match="it depends on at"):
        kept_blocks(of.by_name["cut"], 0, 8, RING, of.header, Scalars(Flow(of)))


def test_sliced_dimension() -> None:
    of = module(SLICE.replace("TABLE", "0,2,4,6"), before="")
    assert sliced_dim(of.by_name["cut"], (8, 6)) == 0
    with pytest.raises(NotByPositionError, match="whole array"):
        sliced_dim(of.by_name["cut"], (2, 6))
    with pytest.raises(NotByPositionError, match="2 dimensions"):
        sliced_dim(of.by_name["cut"], (8, 12))
