"""Loop-carried copies are charged as the order of the body makes them necessary."""

from __future__ import annotations

import numpy as np
import pytest

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.export.hlo import with_schedule
from engine.hlo.printing import print_here
from engine.hlo.reading import read_here
from engine.schedule.problem import Order
from engine.session.evaluation import Evaluator
from engine.session.plan import AS_LOADED, Plan
from engine.simulate.copies import copy_time

SHARD = 2 * 1024 * 1024
LOOP = """HloModule m, num_partitions=2{header}
%body (s: (s32[], bf16[1024,1024])) -> (s32[], bf16[1024,1024]) {{
  %s = (s32[], bf16[1024,1024]{{1,0}}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = bf16[1024,1024]{{1,0}} get-tuple-element(%s), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %other = bf16[1024,1024]{{1,0}} collective-permute(%x), channel_id=1, source_target_pairs={{{{0,1}},{{1,0}}}}
  ROOT %t = (s32[], bf16[1024,1024]{{1,0}}) tuple(%next, %other)
}}
%condition (s: (s32[], bf16[1024,1024])) -> pred[] {{
  %s = (s32[], bf16[1024,1024]{{1,0}}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %limit = s32[] constant(5)
  ROOT %less = pred[] compare(%i, %limit), direction=LT
}}
ENTRY %main (x: bf16[1024,1024]) -> bf16[1024,1024] {{
  %x = bf16[1024,1024]{{1,0}} parameter(0)
  %zero = s32[] constant(0)
  %init = (s32[], bf16[1024,1024]{{1,0}}) tuple(%zero, %x)
  %loop = (s32[], bf16[1024,1024]{{1,0}}) while(%init), condition=%condition, body=%body
  ROOT %result = bf16[1024,1024]{{1,0}} get-tuple-element(%loop), index=1
}}
"""


def program(header: str = "") -> Program:
    module = read_here(LOOP.format(header=header).encode())
    return prepare(module, machine_for(module, load_chip("tpu-v4")))


def test_a_loop_that_permutes_its_state_copies_it_once_an_iteration() -> None:
    found = program()
    (body,) = found.loop_bodies
    copies = copy_time(found, body, Order(np.arange(len(found.graphs[body]))))
    assert copies >= 2 * SHARD / 1228e9 * 1e12
    assert all(copy_time(found, c, Order(np.arange(len(g)))) == 0 for c, g in found.graphs.items() if c != body)


def test_a_compiled_module_shows_its_copies_itself() -> None:
    found = program(", is_scheduled=true")
    (body,) = found.loop_bodies
    assert copy_time(found, body, Order(np.arange(len(found.graphs[body])))) == 0


@pytest.mark.parametrize(("unroll", "copied"), [("1", True), ("2", False)])
def test_copies_are_there_when_rolled_and_gone_when_unrolled_by_two(unroll: str, copied: bool) -> None:
    text = """HloModule m, num_partitions=8
ENTRY main {
  x = bf16[512,1024]{1,0} parameter(0)
  w = bf16[1024,2048]{1,0} parameter(1)
  g = bf16[4096,1024]{1,0} all-gather(x), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true
  ROOT y = bf16[4096,2048]{1,0} dot(g, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""  # noqa: E501  # one instruction a line, as HLO is printed
    passes = f"decompose{{gate=off,form=rolled,unroll={unroll},ring=one}},async-permute"
    variant = Evaluator(read_here(text.encode())).evaluate(Plan(passes, "bottom-up"))
    (body,) = variant.program.loop_bodies
    assert (copy_time(variant.program, body, variant.schedule.orders[body]) > 0) == copied


def test_a_plan_that_is_written_and_read_again_takes_as_long() -> None:
    module = program().module
    variant = Evaluator(module).evaluate(Plan("async-permute", "bottom-up"))
    written = print_here(with_schedule(variant.program.module, variant.schedule))
    again = Evaluator(read_here(written.encode())).evaluate(AS_LOADED)
    # Memory may be less: with an order, more updates are seen to be in place.
    assert again.metrics.makespan == variant.metrics.makespan
    assert again.metrics.exposed == variant.metrics.exposed
    assert again.metrics.peak_memory <= variant.metrics.peak_memory
