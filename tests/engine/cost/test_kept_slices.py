"""An all-reduce is priced as a reduce-scatter where every device keeps its own slice of the sum, and only there."""

from __future__ import annotations

import pytest

from engine.chips.budget import Kind
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.kept_slices import kept_in_slices
from engine.cost.programs import prepare
from engine.hlo.reading import read_here
from engine.ir.flow import Flow
from engine.ir.module import Module
from engine.passes.passes import Context
from engine.passes.pipeline import Pipeline

SUM = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"
GROUPS = "channel_id=1, replica_groups=[1,4]<=[4], use_global_device_ids=true"
REDUCE = f"  r = f32[64,32] all-reduce(x), {GROUPS}, to_apply=add\n"
PLACE = "  p = u32[] partition-id()\n  k = u32[] constant(16)\n  at = u32[] multiply(p, k)\n  o = u32[] constant(0)\n"
ALONG = """  t = s32[4] constant({%s})
  q = s32[1] dynamic-slice(t, p), dynamic_slice_sizes={1}
  y = s32[] reshape(q)
  z = s32[] constant(0)
"""


def module(body: str) -> Module:
    text = f"HloModule m, num_partitions=4\n{SUM}ENTRY e {{\n  x = f32[64,32] parameter(0)\n{body}}}\n"
    return read_here(text.encode())


def sliced(size: str = "16,32", start: str = "at", of: str = "r") -> str:
    return f"dynamic-slice({of}, {start}, o), dynamic_slice_sizes={{{size}}}\n"


def pairs(table: str) -> str:
    """An all-reduce within pairs of four devices, of which each keeps the half that a table says."""
    reduce = REDUCE.replace("[1,4]<=[4]", "[2,2]<=[4]")
    return reduce + PLACE + ALONG % table + "  ROOT s = f32[32,32] " + sliced("32,32", "y").replace("o)", "z)")


def reshaped(shape: str, part: str, starts: str) -> str:
    """A sum that is reshaped before it is sliced."""
    cut = f"  ROOT s = f32[{part}] dynamic-slice(n, {starts}), dynamic_slice_sizes={{{part}}}\n"
    return REDUCE + PLACE + f"  n = f32[{shape}] reshape(r)\n" + cut


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (REDUCE + PLACE + "  ROOT s = f32[16,32] " + sliced(), True),
        (REDUCE + PLACE + "  ROOT s = f32[32,32] " + sliced("32,32"), False),
        (REDUCE + PLACE + "  ROOT s = f32[16,32] " + sliced(start="k"), False),
        (REDUCE + PLACE + "  s = f32[16,32] " + sliced() + "  ROOT t = (f32[16,32], f32[64,32]) tuple(s, r)\n", False),
        (
            REDUCE.replace("  r =", "  q =")
            + "  r = bf16[64,32] convert(q)\n"
            + PLACE
            + "  ROOT s = bf16[16,32] "
            + sliced(),
            False,
        ),
        (REDUCE + "  ROOT n = f32[64,32] negate(r)\n", False),
        (pairs("0,32,0,32"), True),
        (pairs("0,0,32,32"), False),
        (pairs("32,0,32,0"), False),
        (reshaped("64,4,8", "16,4,8", "at, o, o"), True),
        (reshaped("4,16,32", "1,16,32", "p, o, o"), False),
    ],
    ids=[
        "own slice",
        "half",
        "everybody the same",
        "also whole",
        "converted",
        "whole",
        "in pairs",
        "by the other axis",
        "in another order",
        "reshaped beside",
        "reshaped along",
    ],
)
def test_what_is_kept_in_slices(body: str, kept: bool) -> None:
    """What XLA's matcher takes, and what it leaves."""
    assert bool(kept_in_slices(Flow(module(body)))) is kept


@pytest.mark.parametrize(
    "passes", ["", "fuse{policy=default}", "async-permute{kinds=all}", "async-permute{kinds=all,form=generic}"]
)
def test_it_costs_what_a_reduce_scatter_costs(passes: str) -> None:
    """Before and after passes: what a variant leaves whole is priced as in the module as loaded."""
    slices = module(REDUCE + PLACE + "  s = f32[16,32] " + sliced() + "  ROOT n = f32[16,32] negate(s)\n")
    scatter = module(
        f"  s = f32[16,32] reduce-scatter(x), {GROUPS}, dimensions={{0}}, to_apply=add\n"
        "  ROOT n = f32[16,32] negate(s)\n"
    )
    machine = machine_for(slices, load_chip("tpu-v4"))
    changed = Pipeline.parse(passes).run(slices, Context(machine)).module
    found, expected = prepare(changed, machine), prepare(scatter, machine)
    times = [max(int(c.transfer.max()) for c in p.costs.values()) for p in (found, expected)]
    assert times[0] == times[1] > 0
    kinds = [{int(k) for c in p.costs.values() for k in c.kind[c.transfer > 0]} for p in (found, expected)]
    assert kinds == [{Kind.REDUCE_SCATTER}] * 2
    assert any("priced as the reduce-scatters" in note for note in found.notes)
    assert not any("priced as the reduce-scatters" in note for note in expected.notes)


@pytest.mark.parametrize(("chip", "splits"), [("tpu-v4", False), ("tpu-v7x", True), ("h100", True)])
def test_it_is_asynchronous_where_compilers_make_reduce_scatters_so(chip: str, splits: bool) -> None:
    slices = module(REDUCE + PLACE + "  s = f32[16,32] " + sliced() + "  ROOT n = f32[16,32] negate(s)\n")
    machine = machine_for(slices, load_chip(chip))
    changed = Pipeline.parse("async-permute{kinds=supported}").run(slices, Context(machine)).module
    opcodes = [i.opcode for i in changed.instructions.values()]
    assert ("all-reduce-start" in opcodes) == splits
    kinds = {int(k) for c in prepare(changed, machine).costs.values() for k in c.kind}
    assert Kind.ALL_REDUCE not in kinds
    assert Kind.REDUCE_SCATTER in kinds
