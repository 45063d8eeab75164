"""Policies over the same graphs: what joins what, what then waits, and how long everything takes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.programs import prepare
from engine.errors import UsageError
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.passes.fuse.fuse import Fuse
from engine.passes.passes import Context, Result
from engine.schedule.programs import schedule_program
from engine.schedule.registry import parse_scheduler
from engine.simulate.simulator import simulate
from engine.timeline.timeline import Metrics
from tests.engine.passes.fuse.figure_11 import FIGURE_11


def module_of(text: str) -> Module:
    return read_here(text.encode())


def metrics(module: Module) -> Metrics:
    program = prepare(module, machine_for(module, load_chip("tpu-v4")))
    return simulate(program, schedule_program(program, parse_scheduler("bottom-up"), Budget(4))).metrics


def makespan(module: Module) -> int:
    return metrics(module).makespan


def fused(module: Module, fuse: Fuse, trial: Callable[[Module], int] | None = makespan) -> Result:
    return fuse.apply(module, Context(machine_for(module, load_chip("tpu-v4")), trial=trial))


def inside(result: Result) -> dict[str, list[str]]:
    """Name of each fusion → opcodes inside, sorted; parameters left out."""
    return {i.name: opcodes(result.module, i) for i in result.module.entry.instructions if i.opcode == "fusion"}


def opcodes(module: Module, fusion: HloInstructionProto) -> list[str]:
    body = module.computations[fusion.called_computation_ids[0]].instructions
    return sorted(i.opcode for i in body if i.opcode != "parameter")


def test_figure_11a_default_fuses_the_add_with_the_nearer_einsum_and_exposes_the_transfer() -> None:
    result = fused(module_of(FIGURE_11), Fuse(policy="default"))
    (fusion,) = (f for f in result.fusions if f.kind)
    assert fusion.einsum == "einsum_0"
    assert fusion.foreign == ("done",)
    assert metrics(result.module).exposed > 0


def test_figure_11b_overlap_fuses_the_add_with_the_einsum_that_waits_anyway() -> None:
    result = fused(module_of(FIGURE_11), Fuse(policy="overlap"))
    (fusion,) = (f for f in result.fusions if f.kind)
    assert fusion.einsum == "einsum_1"
    assert fusion.foreign == ()
    assert metrics(result.module).exposed == 0


def test_auto_is_never_slower_than_either() -> None:
    module = module_of(FIGURE_11)
    times = {p: makespan(fused(module, Fuse(policy=p)).module) for p in ("default", "overlap", "auto", "none")}
    assert times["auto"] <= min(times["default"], times["overlap"])


def test_the_user_decides_over_the_policy() -> None:
    module = module_of(FIGURE_11)
    together = fused(module, Fuse(policy="overlap", together=("sum:einsum_0",)), trial=None)
    assert [f.einsum for f in together.fusions if f.kind] == ["einsum_0"]
    apart = fused(module, Fuse(policy="default", apart=("einsum_0", "einsum_1")))
    assert not inside(apart)


def test_alternatives_replay_as_options() -> None:
    module = module_of(FIGURE_11)
    (fusion,) = (f for f in fused(module, Fuse(policy="default")).fusions if f.kind)
    by_what = {a.what: a for a in fusion.alternatives}
    other = by_what["fuse sum with einsum_1"]
    assert other.option == "with"
    replayed = fused(module, Fuse(policy="default", together=(other.value,)))
    assert [f.einsum for f in replayed.fusions if f.kind] == ["einsum_1"]


@pytest.mark.parametrize(
    ("fuse", "said"),
    [
        (Fuse(together=("sum",)), "takes READER:EINSUM, but 'sum' came"),
        (Fuse(apart=("nothing",)), "no instruction 'nothing'"),
        (Fuse(unfuse=("sum",)), "the name of a fusion was expected, but the opcode of 'sum' is add"),
        (Fuse(unfuse=("nothing",)), "but 'nothing' names no instruction"),
    ],
)
def test_wrong_names_are_refused(fuse: Fuse, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        fused(module_of(FIGURE_11), fuse)


CHAIN = """HloModule chain

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (x: f32[64,64], w: f32[64,64]) -> (f32[64,64], f32[64], f32[64,64]) {
  %x = f32[64,64]{1,0} parameter(0)
  %w = f32[64,64]{1,0} parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[64,64]{1,0} broadcast(%zero), dimensions={}
  %y = f32[64,64]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %relu = f32[64,64]{1,0} maximum(%y, %zeros)
  %double = f32[64,64]{1,0} add(%relu, %relu)
  %total = f32[64]{0} reduce(%double, %zero), dimensions={1}, to_apply=%sum
  %e = f32[64,64]{1,0} exponential(%w)
  %p = f32[64,64]{1,0} multiply(%e, %x)
  %q = f32[64,64]{1,0} subtract(%e, %zeros)
  %r = f32[64,64]{1,0} add(%p, %q)
  ROOT %t = (f32[64,64]{1,0}, f32[64]{0}, f32[64,64]{1,0}) tuple(%double, %total, %r)
}
"""


def test_einsum_takes_its_epilogue_and_what_is_read_twice_is_computed_once() -> None:
    found = inside(fused(module_of(CHAIN), Fuse(policy="default")))
    assert found["double.fusion"] == ["add", "broadcast", "constant", "dot", "maximum", "reduce", "tuple"]
    assert found["r.fusion"] == ["add", "broadcast", "constant", "exponential", "multiply", "subtract"]


def test_every_elementwise_opcode_may_be_fused() -> None:
    found = inside(fused(module_of(CHAIN.replace("exponential(%w)", "sinh(%w)")), Fuse(policy="default")))
    assert any("sinh" in members for members in found.values())


def test_unfusing_gives_the_instructions_back() -> None:
    module = module_of(CHAIN)
    once = fused(module, Fuse(policy="default")).module
    names = tuple(i.name for i in once.entry.instructions if i.opcode == "fusion")
    again = fused(once, Fuse(policy="none", unfuse=names)).module
    counts = [
        sorted(i.opcode for i in m.entry.instructions if i.opcode not in ("constant", "broadcast"))
        for m in (module, again)
    ]
    assert counts[0] == counts[1]


def test_control_edges_and_in_place_updates_are_respected() -> None:
    text = """HloModule updates
ENTRY main {
  buffer = f32[8,64]{1,0} parameter(0)
  x = f32[2,64]{1,0} parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  old = f32[2,64]{1,0} dynamic-slice(buffer, at, zero), dynamic_slice_sizes={2,64}
  more = f32[2,64]{1,0} add(old, x)
  ROOT updated = f32[8,64]{1,0} dynamic-update-slice(buffer, more, at, zero)
}
"""
    found = inside(fused(module_of(text), Fuse(policy="default")))
    assert found == {"updated.fusion": ["add", "constant", "dynamic-update-slice"]}
