"""Calls and idle copies are gone before anything fuses; copies that a compiler keeps stay, and so does every result."""

from __future__ import annotations

import pytest

from engine.execute.verifying import verify
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.passes.fuse.fuse import Fuse
from engine.passes.fuse.inlining import inline
from engine.passes.passes import Context
from engine.session.evaluation import Evaluator
from tests.places import SAMPLES


def module_of(text: str) -> Module:
    return read_here(text.encode())


def opcodes(module: Module) -> list[str]:
    return [i.opcode for i in module.entry.instructions]


SHARD_MAP = """HloModule m

inner {
  x = f32[64,64]{1,0} parameter(0)
  ROOT doubled = f32[64,64]{1,0} add(x, x)
}

body {
  x = f32[64,64]{1,0} parameter(0)
  w = f32[64,64]{1,0} parameter(1)
  half = f32[64,64]{1,0} call(x), to_apply=inner
  y = f32[64,64]{1,0} dot(half, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT both = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(y, half)
}

ENTRY main {
  a = f32[64,64]{1,0} parameter(0)
  b = f32[64,64]{1,0} parameter(1)
  in = f32[64,64]{1,0} copy(a)
  again = f32[64,64]{1,0} copy(in)
  region = (f32[64,64]{1,0}, f32[64,64]{1,0}) call(again, b), to_apply=body
  first = f32[64,64]{1,0} get-tuple-element(region), index=0
  second = f32[64,64]{1,0} get-tuple-element(region), index=1
  out = f32[64,64]{1,0} copy(first)
  sum = f32[64,64]{1,0} add(out, second)
  last = f32[64,64]{1,0} copy(sum)
  ROOT result = (f32[64,64]{1,0}) tuple(last)
}
"""


def test_a_shard_map_is_what_its_body_computes() -> None:
    module = module_of(SHARD_MAP)
    found = inline(module)
    assert opcodes(found) == ["parameter", "parameter", "add", "dot", "add", "tuple"]
    assert {"doubled", "y", "sum"} <= set(found.by_name)
    assert found.origins_of(found.by_name["y"].id)[0] == module.by_name["y"].id
    checked = verify(module, found)
    assert checked.equal, str(checked)


def test_what_is_called_twice_stays_called() -> None:
    module = module_of("""HloModule m

twice {
  x = f32[64]{0} parameter(0)
  ROOT y = f32[64]{0} add(x, x)
}

ENTRY main {
  a = f32[64]{0} parameter(0)
  b = f32[64]{0} call(a), to_apply=twice
  ROOT c = f32[64]{0} call(b), to_apply=twice
}
""")
    assert inline(module) is module


def test_a_call_that_says_how_to_run_it_stays() -> None:
    text = SHARD_MAP.replace("to_apply=body", 'to_apply=body, frontend_attributes={_xla_compute_type="host"}')
    assert "call" in opcodes(inline(module_of(text)))


@pytest.mark.parametrize(
    ("copied", "result", "stays"),
    [
        ("a", "f32[8,4]{1,0}", True),  # a result would be the argument itself
        ("n", "f32[8,4]{1,0}", False),
        ("n", "f32[8,4]{0,1}", True),  # another layout
    ],
)
def test_copies_that_a_compiler_keeps_stay(copied: str, result: str, stays: bool) -> None:
    module = module_of(f"""HloModule m

ENTRY main {{
  a = f32[8,4]{{1,0}} parameter(0)
  n = f32[8,4]{{1,0}} negate(a)
  c = {result} copy({copied})
  ROOT t = (f32[8,4]{{1,0}}, {result}) tuple(n, c)
}}
""")
    assert ("copy" in opcodes(inline(module))) is stays


def test_the_state_of_a_loop_is_kept_apart() -> None:
    module = module_of("""HloModule m

body {
  s = (s32[], f32[8]{0}, f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8]{0} get-tuple-element(s), index=1
  y = f32[8]{0} get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  kept = f32[8]{0} copy(x)
  ROOT r = (s32[], f32[8]{0}, f32[8]{0}) tuple(next, y, kept)
}

condition {
  s = (s32[], f32[8]{0}, f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  most = s32[] constant(4)
  ROOT less = pred[] compare(i, most), direction=LT
}

ENTRY main {
  a = f32[8]{0} parameter(0)
  zero = s32[] constant(0)
  b = f32[8]{0} copy(a)
  s = (s32[], f32[8]{0}, f32[8]{0}) tuple(zero, a, b)
  ROOT w = (s32[], f32[8]{0}, f32[8]{0}) while(s), condition=condition, body=body
}
""")
    assert inline(module) is module


def test_an_order_that_a_compiler_made_is_left_alone() -> None:
    scheduled = module_of(SHARD_MAP.replace("HloModule m", "HloModule m, is_scheduled=true"))
    assert inline(scheduled) is scheduled


@pytest.mark.parametrize("rewrites", [True, False])
def test_the_pass_inlines_where_it_rewrites(rewrites: bool) -> None:
    module = read_here((SAMPLES / "pipeline_forward_4_f32.hlo").read_bytes())
    assert any(i.opcode == "call" for i in module.instructions.values())
    made = Fuse(policy="default", rewrites=rewrites).apply(module, Context(Evaluator(module).machine)).module
    assert any(i.opcode == "call" for i in made.instructions.values()) is not rewrites
