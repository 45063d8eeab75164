"""All-reduces that compilers make reduce-scatters of are found, whatever our passes made of them, and said."""

from __future__ import annotations

import pytest

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.kept_slices import kept_in_slices
from engine.cost.programs import prepare
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.passes.passes import Context
from engine.passes.pipeline import Pipeline

SUM = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"
GROUPS = "channel_id=1, replica_groups=[1,4]<=[4], use_global_device_ids=true"
REDUCE = f"  r = f32[64,32] all-reduce(x), {GROUPS}, to_apply=add\n"
PLACE = "  p = u32[] partition-id()\n  k = u32[] constant(16)\n  at = u32[] multiply(p, k)\n  o = u32[] constant(0)\n"


def module(body: str) -> Module:
    text = f"HloModule m, num_partitions=4\n{SUM}ENTRY e {{\n  x = f32[64,32] parameter(0)\n{body}}}\n"
    return read_here(text.encode())


def sliced(size: str = "16,32", start: str = "at") -> str:
    return f"dynamic-slice(r, {start}, o), dynamic_slice_sizes={{{size}}}\n"


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
            True,
        ),
        (REDUCE + "  ROOT n = f32[64,32] negate(r)\n", False),
    ],
    ids=["own slice", "half", "everybody the same", "also whole", "converted", "whole"],
)
def test_what_is_kept_in_slices(body: str, kept: bool) -> None:
    assert bool(kept_in_slices(module(body))) is kept


@pytest.mark.parametrize(
    "passes", ["", "fuse{policy=default}", "async-permute{kinds=all}", "async-permute{kinds=all,form=generic}"]
)
def test_they_are_found_behind_passes_and_said(passes: str) -> None:
    slices = module(REDUCE + PLACE + "  s = f32[16,32] " + sliced() + "  ROOT n = f32[16,32] negate(s)\n")
    machine = machine_for(slices, load_chip("tpu-v4"))
    changed = Pipeline.parse(passes).run(slices, Context(machine)).module
    assert any("priced as written" in note for note in prepare(changed, machine).notes)
    whole = module(REDUCE + "  ROOT n = f32[64,32] negate(r)\n")
    assert not any("priced as written" in note for note in prepare(whole, machine).notes)
