"""How much a run computes at least: loops by their trips, of branches the cheapest, the shared as often as called."""

from __future__ import annotations

from engine.execute.effort import operations
from engine.hlo import hlo_pb2
from engine.hlo.reading import read_here

PROGRAM = """HloModule effort

product {
  a = f32[8,4] parameter(0)
  b = f32[4,8] parameter(1)
  ROOT d = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

small {
  s = (f32[8,4], f32[4,8]) parameter(0)
  a = f32[8,4] get-tuple-element(s), index=0
  b = f32[4,8] get-tuple-element(s), index=1
  ROOT c = f32[8,8] call(a, b), to_apply=product
}

large {
  s = (f32[8,4], f32[4,8]) parameter(0)
  a = f32[8,4] get-tuple-element(s), index=0
  b = f32[4,8] get-tuple-element(s), index=1
  c = f32[8,8] call(a, b), to_apply=product
  ROOT d = f32[8,8] dot(c, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

body {
  s = (s32[], f32[8,4], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[8,4] get-tuple-element(s), index=1
  b = f32[4,8] get-tuple-element(s), index=2
  c = f32[8,8] call(a, b), to_apply=product
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[8,4], f32[4,8]) tuple(j, a, b)
}

condition {
  s = (s32[], f32[8,4], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY main {
  p = pred[] parameter(0)
  a = f32[8,4] parameter(1)
  b = f32[4,8] parameter(2)
  zero = s32[] constant(0)
  t = (s32[], f32[8,4], f32[4,8]) tuple(zero, a, b)
  l = (s32[], f32[8,4], f32[4,8]) while(t), condition=condition, body=body
  s = (f32[8,4], f32[4,8]) tuple(a, b)
  ROOT c = f32[8,8] conditional(p, s, s), true_computation=large, false_computation=small
}
"""


def test_operations_are_no_more_than_a_run_needs() -> None:
    """Five trips of the loop and the smaller branch, all of which call one computation."""
    found = operations(read_here(PROGRAM.encode(), "effort.hlo"))
    assert dict(found) == {hlo_pb2.F32: (5 + 1) * 2 * 8 * 4 * 8}
