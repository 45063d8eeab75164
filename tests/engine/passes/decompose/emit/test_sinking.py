"""Element-wise neighbours of an einsum move onto the block at hand where that is right, and only there."""

from __future__ import annotations

import pytest

from engine.ir.module import Module
from engine.passes.decompose.rings.variants import Variant
from tests.engine.passes.decompose.programs import ADD, DOT, EVERYBODY, module, opcodes, same_results

FORMS = [Variant(), Variant("rolled", 2), Variant(unroll=2, chains="halves")]
GATHER = f"""
  x = f32[2,6] parameter(0)
  a = f32[6,3] parameter(1)
  g = f32[8,6] all-gather(x), {EVERYBODY}, dimensions={{0}}
  d = f32[8,3] dot(g, a), {DOT}
"""


def sizes(module: Module, opcode: str) -> set[tuple[int, ...]]:
    """Shapes that instructions of this opcode give."""
    return {tuple(i.shape.dimensions) for i in module.instructions.values() if i.opcode == opcode}


def test_bias_and_activation_follow() -> None:
    program = module(
        GATHER
        + """
  bias = f32[3] parameter(2)
  wide = f32[8,3] broadcast(bias), dimensions={1}
  s = f32[8,3] add(d, wide)
  t = f32[8,3] tanh(s)
  ROOT c = bf16[8,3] convert(t)
"""
    )
    for after in same_results(program, FORMS, expect=1, tolerance=1e-2):
        assert sizes(after, "tanh") == sizes(after, "convert") - {()} == {(2, 3)}
        updates = [i for i in after.instructions.values() if i.opcode == "dynamic-update-slice"]
        assert {u.shape.element_type for u in updates} == {16}


def test_two_einsums_that_meet_make_one_result() -> None:
    """silu(gate) * up: only the product is written."""
    program = module(
        GATHER
        + f"""
  b = f32[6,3] parameter(2)
  e = f32[8,3] dot(g, b), {DOT}
  l = f32[8,3] logistic(d)
  s = f32[8,3] multiply(d, l)
  ROOT p = f32[8,3] multiply(s, e)
"""
    )
    for after in same_results(program, [Variant()], expect=1):
        assert opcodes(after).count("dynamic-update-slice") == 4
        assert sizes(after, "multiply") - {()} == {(2, 3)}
    same_results(program, FORMS, expect=1)


def test_what_is_read_by_others_is_not_followed() -> None:
    program = module(
        GATHER
        + """
  t = f32[8,3] tanh(d)
  ROOT both = (f32[8,3], f32[8,3]) tuple(t, d)
"""
    )
    for after in same_results(program, FORMS, expect=1):
        assert sizes(after, "tanh") == {(8, 3)}


def test_what_waits_for_the_whole_einsum_does_not_move() -> None:
    """A softmax: the maximum over all rows is read by the subtraction."""
    program = module(
        GATHER
        + """
  low = f32[] constant(-1e30)
  m = f32[3] reduce(d, low), dimensions={0}, to_apply=larger
  wide = f32[8,3] broadcast(m), dimensions={1}
  s = f32[8,3] subtract(d, wide)
  ROOT e = f32[8,3] exponential(s)
""",
        ADD
        + """
larger {
  l.1 = f32[] parameter(0)
  r.1 = f32[] parameter(1)
  ROOT m.1 = f32[] maximum(l.1, r.1)
}
""",
    )
    for after in same_results(program, FORMS, expect=1):
        assert sizes(after, "exponential") == {(8, 3)}


def test_a_scalar_that_waits_for_the_einsum() -> None:
    program = module(
        GATHER
        + """
  zero = f32[] constant(0)
  n = f32[] reduce(d, zero), dimensions={0,1}, to_apply=add
  wide = f32[8,3] broadcast(n), dimensions={}
  ROOT s = f32[8,3] subtract(d, wide)
"""
    )
    for after in same_results(program, FORMS, expect=1, tolerance=1e-5):
        assert sizes(after, "subtract") - {()} == {(8, 3)}


@pytest.mark.parametrize("read", [False, True])
def test_producers_of_a_scattered_operand(read: bool) -> None:
    """An activation before the einsum is made slice by slice, unless it is kept for others."""
    root = "ROOT both = (f32[2,4], f32[8,6]) tuple(y, h)" if read else "ROOT only = (f32[2,4]) tuple(y)"
    program = module(f"""
  z = f32[8,6] parameter(0)
  u = f32[8,6] parameter(1)
  w = f32[6,4] parameter(2)
  scale = f32[] parameter(3)
  wide = f32[8,6] broadcast(scale), dimensions={{}}
  n = f32[8,6] negate(z)
  l = f32[8,6] logistic(n)
  k = f32[8,6] multiply(n, l)
  m = f32[8,6] multiply(k, wide)
  h = f32[8,6] multiply(m, u)
  d = f32[8,4] dot(h, w), {DOT}
  y = f32[2,4] reduce-scatter(d), {EVERYBODY}, dimensions={{0}}, to_apply=add
  {root}
""")
    for after in same_results(program, FORMS, expect=1):
        assert sizes(after, "logistic") == ({(8, 6)} if read else {(2, 6)})


def test_producers_of_the_other_operand() -> None:
    program = module(f"""
  x = f32[6,2] parameter(0)
  w = bf16[8,4] parameter(1)
  g = f32[6,8] all-gather(x), {EVERYBODY}, dimensions={{1}}
  c = f32[8,4] convert(w)
  t = f32[8,4] tanh(c)
  ROOT d = f32[6,4] dot(g, t), {DOT}
""")
    for after in same_results(program, FORMS, expect=1):
        assert sizes(after, "tanh") == {(2, 4)}
