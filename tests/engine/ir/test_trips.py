"""Trip counts, held against loops that are run in Python."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.hlo.hlo_pb2 import HloModuleProto
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.ir.trips import Trips, trips_of

COMPARE = {"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "NE": operator.ne}


def loop(
    init: str = "constant(0)",
    step: str = "add(i, one)",
    condition: str = "compare(j, limit), direction=LT",
    limit: str = "constant(5)",
    one: int = 1,
    attributes: str = "",
    barrier: bool = False,
) -> Module:
    behind, state = ("held = (s32[], f32[8], s32[]) opt-barrier(start)", "held") if barrier else ("", "start")
    return read_here(
        f"""HloModule m
body {{
  s = (s32[], f32[8], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[8] get-tuple-element(s), index=1
  n = s32[] get-tuple-element(s), index=2
  one = s32[] constant({one})
  next = s32[] {step}
  w = f32[8] negate(v)
  ROOT t = (s32[], f32[8], s32[]) tuple(next, w, n)
}}
condition {{
  s = (s32[], f32[8], s32[]) parameter(0)
  j = s32[] get-tuple-element(s), index=0
  k = s32[] get-tuple-element(s), index=2
  limit = s32[] {limit}
  ROOT c = pred[] {condition}
}}
ENTRY main {{
  p = f32[8] parameter(0)
  q = s32[] parameter(1)
  zero = s32[] {init}
  seven = s32[] constant(7)
  start = (s32[], f32[8], s32[]) tuple(zero, p, seven)
  {behind}
  ROOT loop = (s32[], f32[8], s32[]) while({state}), condition=condition, body=body{attributes}
}}
""".encode()
    )


def count(module: Module, loop: str = "loop") -> Trips:
    counts, notes = trips_of(module)
    return Trips(counts[module.by_name[loop].id], next((note for note in notes if f" of {loop} " in note), None))


def test_an_annotation_is_believed() -> None:
    assert count(loop(attributes=', backend_config={"known_trip_count":{"n":"126"},"x":1}')) == Trips(126)


@given(
    start=st.integers(-20, 20),
    limit=st.integers(-20, 20),
    step=st.integers(-4, 4),
    direction=st.sampled_from(list(COMPARE)),
)
def test_counted_loops(start: int, limit: int, step: int, direction: str) -> None:
    made = loop(
        f"constant({start})",
        limit=f"constant({limit})",
        one=step,
        condition=f"compare(j, limit), direction={direction}",
    )
    expected, i = 0, start
    while COMPARE[direction](i, limit) and expected <= 100:
        i, expected = i + step, expected + 1
    found = count(made)
    if expected > 100:
        assert found.count == 1
        assert found.note is not None
    else:
        assert found == Trips(expected)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (loop(step="subtract(i, one)", one=-2), 3),
        (loop(step="add(one, i)", one=2), 3),
        (loop(condition="compare(limit, j), direction=GT"), 5),
        (loop(condition="compare(j, k), direction=LT"), 7),
        (loop(limit="add(k, k)"), 14),
        (loop(init="constant(3)", limit="constant(3)"), 0),
        (loop(barrier=True), 5),
    ],
)
def test_forms_of_counting(module: Module, expected: int) -> None:
    assert count(module) == Trips(expected)


@pytest.mark.parametrize(
    "module",
    [
        loop(init="negate(q)"),
        loop(step="multiply(i, one)"),
        loop(one=0),
        loop(condition="constant(true)"),
        loop(one=-1),
        loop(attributes=', backend_config={"known_trip_count":{"m":"126"}}', step="multiply(i, one)"),
    ],
)
def test_what_cannot_be_told_is_one_and_said(module: Module) -> None:
    counts, notes = trips_of(module)
    assert list(counts.values()) == [1]
    assert notes == ("The trip count of loop is not known (neither annotated nor a counted loop): 1 is assumed.",)


def test_a_condition_inside_a_fusion_is_seen() -> None:
    """GPU compilers fuse the compare, TPU compilers the increment."""
    made = read_here(
        b"""HloModule m
fused_compare {
  a = s32[] parameter(0)
  b = s32[] constant(6)
  ROOT c = pred[] compare(a, b), direction=LT
}
fused_add {
  d = s32[] parameter(0)
  e = s32[] constant(2)
  ROOT f = s32[] add(d, e)
}
body {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[] get-tuple-element(s), index=1
  next = s32[] fusion(i), kind=kLoop, calls=fused_add
  copied = s32[] copy(next)
  ROOT t = (s32[], f32[]) tuple(copied, v)
}
condition {
  s = (s32[], f32[]) parameter(0)
  j = s32[] get-tuple-element(s), index=0
  ROOT w = pred[] fusion(j), kind=kLoop, calls=fused_compare
}
ENTRY main {
  p = f32[] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[]) tuple(zero, p)
  ROOT loop = (s32[], f32[]) while(start), condition=condition, body=body
}
"""
    )
    assert count(made) == Trips(3)


NESTED = """HloModule m
inner_body {
  s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], s32[]) tuple(next, n)
}
inner_condition {
  s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT c = pred[] compare(i, n), direction=LT
}
outer_body {
  s = (s32[], s32[], s32[]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  z = s32[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(k, one)
  start = (s32[], s32[]) tuple(z, n)
  inner = (s32[], s32[]) while(start), condition=inner_condition, body=inner_body
  ROOT t = (s32[], s32[], s32[]) tuple(next, n, z)
}
outer_condition {
  s = (s32[], s32[], s32[]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT c = pred[] compare(k, three), direction=LT
}
ENTRY main {
  zero = s32[] constant(0)
  two = s32[] constant(2)
  nine = s32[] constant(9)
  start = (s32[], s32[], s32[]) tuple(zero, nine, two)
  ROOT outer = (s32[], s32[], s32[]) while(start), condition=outer_condition, body=outer_body
}
"""


def test_limits_handed_through_an_outer_loop_are_found() -> None:
    made = read_here(NESTED.encode())
    assert count(made, "outer") == Trips(3)
    assert count(made, "inner") == Trips(7)


def test_limits_that_an_outer_loop_changes_are_not() -> None:
    made = read_here(NESTED.replace("tuple(next, n, z)", "tuple(next, next, z)").encode())
    assert count(made, "inner").note is not None


def test_damaged_loops_do_not_raise() -> None:
    made = loop()
    proto = HloModuleProto()
    proto.CopyFrom(made.proto)
    again = Module(proto)
    del again.by_name["loop"].called_computation_ids[:]
    assert trips_of(again)[0] == {again.by_name["loop"].id: 1}
