"""Chains compute what they did in every form, and keep their middle in shards."""

from __future__ import annotations

from itertools import product
from typing import Literal

import numpy as np
import pytest

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.ir.edit import Editor
from engine.ir.module import Module
from engine.passes.decompose.emit.emit import emit, why_not
from engine.passes.decompose.rings.variants import Variant
from engine.passes.passes import Context
from engine.passes.pipeline import Pipeline
from tests.engine.passes.decompose.cases import CHAINS, FORMS, RINGS, UNROLLS, rings
from tests.engine.passes.decompose.chains import Block
from tests.engine.passes.decompose.programs import inputs_of, module, opcodes
from tests.engine.passes.decompose.running import reloaded, run

WIDTHS: tuple[Literal[1, 2, 4], ...] = (1, 2, 4)
QUICK = [(2, "one"), (3, "irregular"), (4, "strided"), (5, "one"), (8, "one")]
FULL = [pair for pair in product(range(2, 9), ("one", "irregular")) if pair not in QUICK]


def chain_variants() -> list[Variant]:
    return [
        Variant(form, unroll, ring, chains, shards, seconds)
        for form, unroll, ring, chains, shards, seconds in product(FORMS, UNROLLS, RINGS, CHAINS, WIDTHS, WIDTHS)
        if ring == "both" or chains == "stride"
    ]


def chained(count: int, kind: str, variant: Variant) -> tuple[Block, Module, Module | None]:
    """(the program, its module, the same chained; None where the form does not apply)."""
    groups, devices = rings(count, kind)
    block = Block(groups, devices)
    module = block.module()
    site, editor = block.site(module), Editor(module)
    if why_not(editor, site, variant) is not None:
        return block, module, None
    added = emit(editor, site, variant).added
    assert all(editor.users(i) or editor.is_root(i) for i in added)
    return block, module, editor.finish()


def check(count: int, kind: str, chosen: list[Variant]) -> int:
    done = 0
    for variant in chosen:
        block, _, after = chained(count, kind, variant)
        if after is None:
            continue
        done += 1
        inputs = block.inputs(np.random.default_rng(count))
        expected = block.reference(inputs)
        for outputs, want in zip(run(reloaded(after), inputs), expected, strict=True):
            assert np.abs(outputs[0] - want).max() <= 1e-5 * max(1.0, np.abs(want).max()), variant
    return done


@pytest.mark.parametrize(("count", "kind"), QUICK)
def test_chains_in_several_forms(count: int, kind: str) -> None:
    chosen = chain_variants()
    assert check(count, kind, chosen[::7])


@pytest.mark.full
@pytest.mark.parametrize(("count", "kind"), QUICK + FULL)
def test_chains_in_every_form(count: int, kind: str) -> None:
    assert check(count, kind, chain_variants())


@pytest.mark.parametrize(("count", "forms"), [(3, {"unrolled"}), (8, {"unrolled", "rolled"})])
def test_the_middle_stays_in_shards(count: int, forms: set[str]) -> None:
    made = [(variant, *chained(count, "one", variant)[1:]) for variant in chain_variants()]
    applied = [(variant, before, after) for variant, before, after in made if after is not None]
    assert {variant.form for variant, _, _ in applied} == forms
    for variant, before, after in applied:
        check_middle(count, variant, before, after)


def check_middle(count: int, variant: Variant, before: Module, after: Module) -> None:
    opcodes = [i.opcode for i in after.instructions.values()]
    assert not {"all-gather", "reduce-scatter", "dynamic-update-slice"} & set(opcodes), variant
    rows = max(before.by_name["masked"].shape.dimensions[0], 5)
    largest = max(i.shape.dimensions[0] for i in after.instructions.values() if len(i.shape.dimensions) == 2)
    assert largest < rows, variant
    if variant.form == "unrolled":
        halves = 2 if variant.chains == "halves" else 1
        assert opcodes.count("collective-permute") == 2 * (count - 1) * halves, variant


def test_einsum_widths() -> None:
    """Over eight positions, pairs of shards make four first einsums of eight, and so for the second."""
    for shards, seconds in product(WIDTHS, WIDTHS):
        _, _, after = chained(8, "one", Variant(ring="both", shards=shards, seconds=seconds))
        assert after is not None
        dots = sum(i.opcode == "dot" for i in after.instructions.values())
        assert dots == 2 * 8 // shards + 8 // seconds
    for width, turns in zip(WIDTHS, (7, 4, 2), strict=True):
        _, _, after = chained(8, "one", Variant(shards=width, seconds=width))
        assert after is not None
        dots = sum(i.opcode == "dot" for i in after.instructions.values())
        assert dots == 3 * (turns + 1)


@pytest.mark.parametrize(
    ("count", "variant", "reason"),
    [
        (2, Variant(ring="both"), "ring of 2"),
        (8, Variant("rolled", ring="both"), "needs chains=halves"),
        (3, Variant("rolled"), "no two equal rounds"),
        (8, Variant("rolled", shards=2), "need a loop unrolled"),
        (4, Variant(ring="both", shards=4), "nothing to overlap"),
    ],
)
def test_refusals(count: int, variant: Variant, reason: str) -> None:
    groups, devices = rings(count, "one")
    block = Block(groups, devices)
    module = block.module()
    said = why_not(Editor(module), block.site(module), variant)
    assert said is not None
    assert reason in said


@pytest.mark.parametrize("options", ["ring=one", "ring=both", "form=rolled,unroll=2,ring=both", "accumulate=f32"])
def test_a_chain_over_a_batch_dimension_that_the_finder_finds(options: str) -> None:
    """Both weights are cut by batch, and a table that is added in the middle too; the result passes a convert."""
    groups = "replica_groups={{0,1,2,3,4}}, use_global_device_ids=true"
    program = module(
        f"""
  x = f32[2,3,4] parameter(0)
  a = f32[10,4,5] parameter(1)
  b = f32[10,5,6] parameter(2)
  table = f32[10,3,5] parameter(3)
  g = f32[10,3,4] all-gather(x), channel_id=1, {groups}, dimensions={{0}}
  d = f32[10,3,5] dot(g, a), lhs_batch_dims={{0}}, rhs_batch_dims={{0}},
    lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
  t = f32[10,3,5] tanh(d)
  s = f32[10,3,5] add(t, table)
  e = f32[10,3,6] dot(s, b), lhs_batch_dims={{0}}, rhs_batch_dims={{0}},
    lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
  c = bf16[10,3,6] convert(e)
  w = f32[10,3,6] convert(c)
  ROOT y = f32[2,3,6] reduce-scatter(w), channel_id=2, {groups}, dimensions={{0}}, to_apply=add
""",
        devices="num_partitions=5",
    )
    machine = machine_for(program, load_chip("tpu-v4"))
    plan = Pipeline.parse(f"decompose{{gate=off,chain=on,{options}}}")
    result = plan.run(program, Context(machine))
    assert [c.chosen for c in result.candidates if c.kind == "chain"] == [True]
    assert not {"all-gather", "reduce-scatter", "dynamic-update-slice"} & set(opcodes(result.module))
    inputs = inputs_of(program)
    for was, now in zip(run(program, inputs), run(reloaded(result.module), inputs), strict=True):
        np.testing.assert_allclose(now[0], was[0], rtol=5e-2, atol=5e-2)
