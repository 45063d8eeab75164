"""Pairs stand where the collective stood, reload, and compute the same."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.hlo import xla
from engine.hlo.printing import print_here
from engine.hlo.reading import read_here
from engine.ir.graphs import graph_of
from engine.ir.module import Module
from engine.ir.opcodes import COLLECTIVES
from engine.ir.shapes import text
from engine.passes.async_permute import AsyncPermute
from engine.passes.passes import Context, Result
from engine.passes.pipeline import Pipeline
from tests.engine.passes.decompose.running import run

GROUPS = "replica_groups={{0,1,2,3}}, use_global_device_ids=true"
TEXT = f"""HloModule m, num_partitions=4

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

body {{
  state = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  v = f32[8] get-tuple-element(state), index=1
  inner = f32[8] collective-permute(v), channel_id=7, source_target_pairs={{{{0,1}},{{1,0}}}}
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT out = (s32[], f32[8]) tuple(next, inner)
}}

condition {{
  state.1 = (s32[], f32[8]) parameter(0)
  i.1 = s32[] get-tuple-element(state.1), index=0
  limit = s32[] constant(3)
  ROOT less = pred[] compare(i.1, limit), direction=LT
}}

ENTRY main {{
  x = f32[8] parameter(0)
  before = f32[8] negate(x)
  p = f32[8] collective-permute(x), channel_id=1, source_target_pairs={{{{0,1}},{{1,2}}}},
    control-predecessors={{before}}, metadata={{op_name="model/p"}}, frontend_attributes={{mark="1"}}
  after = f32[8] exponential(before), control-predecessors={{p}}
  ag = f32[32] all-gather(p), channel_id=3, {GROUPS}, dimensions={{0}}
  ar = f32[8] all-reduce(after), channel_id=4, {GROUPS}, to_apply=add
  ag2 = (f32[32], f32[32]) all-gather(x, ar), channel_id=6, {GROUPS}, dimensions={{0}}
  rs = f32[2] reduce-scatter(x), channel_id=9, {GROUPS}, dimensions={{0}}, to_apply=add
  aa = f32[8] all-to-all(x), channel_id=10, replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}
  zero = s32[] constant(0)
  start = (s32[], f32[8]) tuple(zero, x)
  loop = (s32[], f32[8]) while(start), condition=condition, body=body
  looped = f32[8] get-tuple-element(loop), index=1
  ag20 = f32[32] get-tuple-element(ag2), index=0
  ag21 = f32[32] get-tuple-element(ag2), index=1
  ROOT t = (f32[32], f32[8], f32[32], f32[32], f32[2], f32[8], f32[8])
    tuple(ag, ar, ag20, ag21, rs, aa, looped)
}}
"""


@pytest.fixture
def module() -> Module:
    return read_here(TEXT.encode())


Kinds = Literal["permute", "supported", "all"]


def applied(module: Module, form: Literal["legacy", "generic"], kinds: Kinds, chip: str = "tpu-v4") -> Result:
    machine = machine_for(module, load_chip(chip))
    return AsyncPermute(form=form, kinds=kinds).apply(module, Context(machine))


def opcodes(module: Module) -> list[str]:
    return [i.opcode for c in module.proto.computations for i in c.instructions]


def test_permutes_become_pairs(module: Module) -> None:
    result = applied(module, "legacy", "permute")
    after = result.module
    assert opcodes(after).count("collective-permute-start") == opcodes(after).count("collective-permute-done") == 2
    assert "collective-permute" not in opcodes(after)
    assert {"all-gather", "all-reduce", "reduce-scatter", "all-to-all"} <= set(opcodes(after))
    start, done = after.by_name["p.start"], after.by_name["p.done"]
    assert text(start.shape) == "(f32[8], f32[8])"
    assert start.channel_id == 1
    assert start.metadata.op_name == done.metadata.op_name == "model/p"
    assert dict(done.frontend_attributes.map) == {"mark": "1"}
    assert after.origins_of(start.id) == after.origins_of(done.id) == (module.by_name["p"].id,)
    assert list(start.control_predecessor_ids) == [after.by_name["before"].id]
    assert list(after.by_name["after"].control_predecessor_ids) == [done.id]
    assert not result.notes


@pytest.mark.parametrize(
    ("chip", "whole"),
    [
        ("tpu-v3", {"all-gather", "reduce-scatter", "all-reduce", "all-to-all"}),
        ("tpu-v4", {"reduce-scatter", "all-reduce"}),
        ("tpu-v7x", {"all-reduce", "all-to-all"}),
        ("h100", set()),
    ],
)
def test_a_chip_says_what_its_compiler_supports(module: Module, chip: str, whole: set[str]) -> None:
    after = applied(module, "legacy", "supported", chip).module
    running = [i.opcode for c in after.proto.computations if not c.name.endswith("wrapped") for i in c.instructions]
    assert COLLECTIVES & set(running) == whole


def test_all_kinds_in_the_legacy_form(module: Module) -> None:
    after = applied(module, "legacy", "all").module
    found = opcodes(after)
    for opcode in ("collective-permute", "all-gather", "all-reduce"):
        assert found.count(f"{opcode}-start") == found.count(f"{opcode}-done") == 2 if opcode != "all-reduce" else 1
    assert found.count("async-start") == found.count("async-done") == 2
    graph = graph_of(after, after.entry.id)
    assert sum(graph.is_start(k) for k in range(len(graph))) == 6


def test_the_generic_form(module: Module) -> None:
    result = applied(module, "generic", "all")
    found = opcodes(result.module)
    assert found.count("async-start") == found.count("async-done") == 7
    assert not any(opcode.endswith("-start") and opcode != "async-start" for opcode in found)
    assert "legacy" in result.notes[0]
    start = result.module.by_name["ag2.start"]
    assert text(start.shape) == "((f32[8], f32[8]), (f32[32], f32[32]), u32[])"
    again = applied(result.module, "generic", "all")
    assert again.module is result.module


def test_nothing_to_do(module: Module) -> None:
    text = "HloModule m\n\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}\n"
    module = read_here(text.encode())
    assert applied(module, "legacy", "all").module is module


@pytest.mark.parametrize("form", ["legacy", "generic"])
@pytest.mark.parametrize("kinds", ["permute", "supported", "all"])
def test_it_reloads(module: Module, form: Literal["legacy", "generic"], kinds: Kinds) -> None:
    after = applied(module, form, kinds).module
    xla.check_proto(after.proto.SerializeToString())
    read_here(print_here(after).encode())
    if form == "generic" or kinds == "permute":  # StableHLO has no legacy pairs of several arrays
        xla.to_stablehlo(after.proto.SerializeToString())


def test_legacy_text_comes_back_as_it_was(module: Module) -> None:
    after = applied(module, "legacy", "permute").module
    again = read_here(print_here(after).encode())
    assert [i.opcode for i in again.entry.instructions] == [i.opcode for i in after.entry.instructions]


def test_results_stay(module: Module) -> None:
    inputs = [[np.arange(8, dtype=np.float32) + 10 * device] for device in range(4)]
    before = run(module, inputs)
    for form in ("legacy", "generic"):
        after = applied(module, form, "permute").module
        for was, now in zip(before, run(after, inputs), strict=True):
            for a, b in zip(was, now, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6)


def test_text_form_of_the_pass() -> None:
    written = "async-permute{form=generic,kinds=all}"
    assert str(Pipeline.parse(written)) == written
    assert str(Pipeline.parse("async-permute")) == "async-permute"
