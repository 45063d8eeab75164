"""What an einsum over two blocks takes into its fusion: what the TPU compiler (libtpu 0.0.51) does."""

from __future__ import annotations

import pytest

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.hlo.reading import read_here
from engine.passes.fuse.fuse import Fuse
from engine.passes.passes import Context

BLOCK, BOTH, ALL = "bf16[512,1024]{1,0}", "bf16[1024,1024]{1,0}", "bf16[4096,1024]{1,0}"
JOIN = f"%c = {BOTH} concatenate(%l, %r), dimensions={{0}}\n%d = {BOTH} dot(%c, %w), HOW"
PIECES = f"""%first = {BLOCK} slice(%d), slice={{[0:512],[0:1024]}}
%second = {BLOCK} slice(%d), slice={{[512:1024],[0:1024]}}"""
SUMS = f"%s = {BLOCK} add(%first, %x)\n%t = {BLOCK} add(%second, %y)\nROOT %o = ({BLOCK}, {BLOCK}) tuple(%s, %t)"
UPDATES = f"""%u = {ALL} dynamic-update-slice(%a, %first, %i, %z)
ROOT %v = {ALL} dynamic-update-slice(%u, %second, %j, %z)"""
GIVEN = f"%l = {BLOCK} copy(%x)\n%r = {BLOCK} copy(%y)"
CUT = "\n".join(
    f"%{n} = {BLOCK} dynamic-slice(%b, %{at}, %z), dynamic_slice_sizes={{512,1024}}" for n, at in ("li", "rj")
)
EACH = f"%first = {BLOCK} dot(%l, %w), HOW\n%second = {BLOCK} dot(%r, %w), HOW"


def fusions(*lines: str) -> list[str]:
    """What is in each fusion that is made, in order."""
    given = "\n".join(lines).replace("HOW", "lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    text = f"""HloModule m
ENTRY %main {{
%x = {BLOCK} parameter(0)
%y = {BLOCK} parameter(1)
%w = {BOTH} parameter(2)
%a = {ALL} parameter(3)
%i = s32[] parameter(4)
%j = s32[] parameter(5)
%b = {ALL} parameter(6)
%z = s32[] constant(0)
{given}
}}
"""
    module = read_here(text.encode())
    made = Fuse(policy="default").apply(module, Context(machine_for(module, load_chip("tpu-v4")))).module
    bodies = (made.computations[i.called_computation_ids[0]] for i in made.entry.instructions if i.opcode == "fusion")
    return [" ".join(i.opcode for i in b.instructions if i.opcode not in ("parameter", "constant")) for b in bodies]


@pytest.mark.parametrize(
    ("end", "each"), [(SUMS, "slice add"), (UPDATES, "slice dynamic-update-slice")], ids=["sums", "updates"]
)
def test_pieces_of_a_result_and_what_takes_them_stand_apart(end: str, each: str) -> None:
    assert fusions(GIVEN, JOIN, PIECES, end) == ["pad pad maximum dot", each, each]


def test_blocks_that_are_sliced_off_are_written_before_they_are_joined() -> None:
    assert fusions(CUT, JOIN, f"ROOT %o = {BOTH} negate(%d)") == ["pad pad maximum dot negate"]


@pytest.mark.parametrize(("end", "each"), [(SUMS, "add"), (UPDATES, "dynamic-update-slice")], ids=["sums", "updates"])
def test_an_einsum_for_each_takes_its_block_and_its_sum_or_update(end: str, each: str) -> None:
    assert fusions(CUT, EACH, end) == [f"dynamic-slice dot {each}"] * 2


def test_a_dynamic_slice_of_a_result_stands_apart() -> None:
    whole = f"%d = {ALL} dot(%a, %w), HOW"
    cut = f"%p = {BLOCK} dynamic-slice(%d, %i, %z), dynamic_slice_sizes={{512,1024}}\nROOT %o = {BLOCK} add(%p, %x)"
    assert fusions(whole, cut) == ["dynamic-slice add"]
