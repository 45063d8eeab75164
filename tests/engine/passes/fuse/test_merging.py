"""What joins the fusion of a result that others need too; expectations are what libtpu 0.0.51 makes of each program."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.passes.fuse import merging
from engine.passes.fuse.clusters import MOST_MEMBERS
from engine.passes.fuse.fuse import Fuse
from engine.passes.passes import Context
from tests.engine.passes.fuse.jobs import run

HEAD = """HloModule m

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY main {
  x = f32[16,8]{1,0} parameter(0)
  w = f32[8,32]{1,0} parameter(1)
  y = f32[16,32]{1,0} parameter(2)
  v = f32[32,8]{1,0} parameter(3)
  zero = f32[] constant(0)
  zeros = f32[16,32]{1,0} broadcast(zero), dimensions={}
"""


def dot(a: str, b: str, shape: str, name: str) -> str:
    return f"  {name} = {shape}{{1,0}} dot({a}, {b}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"


EINSUM = dot("x", "w", "f32[16,32]", "d")
INTO = "  q = f32[16,8]{1,0} dot(R, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
OTHER = "  p = f32[8,32]{1,0} dot(x, R), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
SHAPES = {"q": "f32[16,8]", "p": "f32[8,32]", "s": "f32[16]"}


def program(body: str, results: str) -> Module:
    names = results.split()
    shapes = ", ".join(SHAPES.get(name, "f32[16,32]") for name in names)
    return read_here(f"{HEAD}{body}  ROOT out = ({shapes}) tuple({', '.join(names)})\n}}\n".encode())


def fused(module: Module, fuse: Fuse | None = None) -> Module:
    context = Context(machine_for(module, load_chip("tpu-v4")))
    return (fuse or Fuse(policy="default")).apply(module, context).module


def contents(module: Module) -> list[str]:
    """What each fusion computes, in the module's order; shapes, constants and parameters left out."""
    found = []
    for instruction in module.entry.instructions:
        if instruction.opcode == "fusion":
            inside = module.computations[instruction.called_computation_ids[0]].instructions
            opcodes = sorted(i.opcode for i in inside if i.opcode not in ("parameter", "constant", "broadcast"))
            found.append(" ".join(opcodes))
    return found


def tanh(of: str, name: str = "r") -> str:
    return f"  {name} = f32[16,32]{{1,0}} tanh({of})\n"


def times(a: str, b: str, name: str) -> str:
    return f"  {name} = f32[16,32]{{1,0}} multiply({a}, {b})\n"


def total(of: str) -> str:
    return f"  s = f32[16]{{0}} reduce({of}, zero), dimensions={{1}}, to_apply=%sum\n"


CASES = {
    "an einsum's reader joins it, though it is needed itself": (EINSUM + tanh("d"), "d r", ["dot tanh tuple"]),
    "so do two readers of which each is needed": (
        EINSUM + tanh("d") + times("d", "y", "n"), "r n", ["dot multiply tanh tuple"]
    ),
    "and a reduction": (EINSUM + total("d"), "d s", ["dot reduce tuple"]),
    "and a reduction of what is made of it": (EINSUM + times("d", "y", "n") + total("n"), "d s", [
        "dot multiply reduce tuple"
    ]),
    "element-wise work joins element-wise work": (tanh("y") + times("r", "y", "n"), "r n", ["multiply tanh tuple"]),
    "and is done again for readers that cannot be one": (tanh("y") + total("r") + INTO.replace("R", "r"), "s q", [
        "reduce tanh", "dot tanh"
    ]),
    "for two einsums too": (tanh("y") + INTO.replace("R", "r") + OTHER.replace("R", "r"), "q p", [
        "dot tanh", "dot tanh"
    ]),
    "but not where an einsum makes it": (EINSUM + tanh("d") + INTO.replace("R", "r") + OTHER.replace("R", "r"), "q p", [
        "dot tanh"
    ]),
    "unless that einsum's result is needed": (EINSUM + tanh("d") + INTO.replace("R", "r"), "d q", ["dot tanh"]),
    "what reads a reduction comes after it": (
        EINSUM
        + total("d")
        + "  sb = f32[16,32]{1,0} broadcast(s), dimensions={0}\n"
        + "  n = f32[16,32]{1,0} subtract(d, sb)\n",
        "n", ["dot reduce tuple", "subtract"],
    ),
    "a reader that needs another einsum takes that one": (
        EINSUM + dot("x", "w", "f32[16,32]", "d2") + times("d", "d2", "n"),
        "d n", ["dot multiply"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_fusions_are_those_of_the_production_compiler(case: tuple[str, str, list[str]]) -> None:
    body, results, expected = case
    assert contents(fused(program(body, results))) == expected


def test_a_fusion_of_several_results_computes_all_of_them() -> None:
    body = EINSUM + times("d", "y", "n") + tanh("n") + total("n") + INTO.replace("R", "r")
    module = program(body, "d n s q r")
    made = fused(module)
    assert any("tuple" in inside for inside in contents(made))
    random = np.random.default_rng(1)
    given_ = [random.standard_normal(shape).astype(np.float32) for shape in ((16, 8), (8, 32), (16, 32), (32, 8))]
    expected, found = run([module, made], [given_, given_])
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_what_the_user_keeps_apart_stays_apart() -> None:
    module = program(EINSUM + tanh("d"), "d r")
    assert contents(fused(module, Fuse(policy="default", apart=("d",)))) == []
    assert contents(fused(module, Fuse(policy="default", apart=("r",)))) == []


def test_a_reader_that_waits_for_a_transfer_does_not_keep_an_einsum_waiting() -> None:
    start = (
        "  t = (f32[16,32], f32[16,32]) collective-permute-start(y), channel_id=1, source_target_pairs={{0,1},{1,0}}\n"
    )
    done = "  c = f32[16,32]{1,0} collective-permute-done(t)\n"
    assert contents(fused(program(EINSUM + start + done + times("d", "c", "n"), "d n"))) == []


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, str]:
    """Element-wise work, einsums and reductions over each other, in any order; and what of it is needed."""
    wide, lines = ["y", "zeros"], []
    for number in range(draw(st.integers(1, 12))):
        name = f"n{number}"
        a, b = draw(st.sampled_from(wide)), draw(st.sampled_from(wide))
        kind = draw(st.integers(0, 4))
        if kind == 0:
            lines.append(
                f"  {name} = f32[16,32]{{1,0}} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
            )
        elif kind == 1:
            lines.append(f"  {name}s = f32[16]{{0}} reduce({a}, zero), dimensions={{1}}, to_apply=%sum\n")
            lines.append(f"  {name} = f32[16,32]{{1,0}} broadcast({name}s), dimensions={{0}}\n")
        elif kind == 2:
            lines.append(dot(a, "v", "f32[16,8]", f"{name}p") + dot(f"{name}p", "w", "f32[16,32]", name))
        elif kind == 3:
            lines.append(tanh(a, name))
        else:
            lines.append(times(a, b, name))
        wide.append(name)
    made = [name for name in wide if name.startswith("n")]
    needed = draw(st.lists(st.sampled_from(made), min_size=1, max_size=4, unique=True))
    return "".join(lines), " ".join(dict.fromkeys([*needed, made[-1]]))


@given(bodies())
def test_operands_come_before_what_reads_them(drawn: tuple[str, str]) -> None:
    body, results = drawn
    made = fused(program(body, results))
    for computation in made.proto.computations:
        seen: set[int] = set()
        for instruction in computation.instructions:
            assert seen.issuperset(instruction.operand_ids), f"{instruction.name} of {computation.name}"
            seen.add(instruction.id)
    again = read_here(made.proto.SerializeToString())
    assert len(again.instructions) == len(made.instructions)
    with patch.object(merging, "_GAP", 2):  # what moves finds no room, and all is numbered anew
        assert fused(program(body, results)).proto.computations == made.proto.computations


def test_readers_that_nothing_reads_are_no_reason_to_stop() -> None:
    dead = dot("x", "w", "f32[16,32]", "n1") + times("y", "n1", "n2") + tanh("n1", "n3")
    made = fused(program(EINSUM + dead, "d"))
    assert read_here(made.proto.SerializeToString()).by_name.keys() == made.by_name.keys()


def test_a_chain_of_any_length_is_fused_to_the_limit() -> None:
    """Two einsums read its end: it is done again in both as far as one fusion goes."""
    length = 1_500
    chain = tanh("y", "n0") + "".join(tanh(f"n{k}", f"n{k + 1}") for k in range(length))
    einsums = INTO.replace("R", f"n{length}") + OTHER.replace("R", f"n{length}")
    sizes = [len(inside.split()) for inside in contents(fused(program(chain + einsums, "q p")))]
    assert max(sizes) == MOST_MEMBERS
    assert sum(sizes) >= length
