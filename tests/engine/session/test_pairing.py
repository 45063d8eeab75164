from __future__ import annotations

from pathlib import Path

import pytest

from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.layout.outline import Side
from engine.layout.outlining import outline_of
from engine.session.pairing import are_apart, paired_names, pairs_of, renumbered
from tests.places import COMPILED, PARTITIONED, SAMPLES

NAME = "a_v4-2x2x2_1d_1x8_d4096_L2_scan"


def read(path: Path) -> Module:
    return read_here(path.read_bytes(), path.name)


def module(name: str) -> Module:
    return read(SAMPLES / name)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (module("mlp_fig2_forward_4_f32.hlo"), module("mlp_fig2_train_4_f32.hlo")),
        (
            read(PARTITIONED / f"{NAME}.hlo.gz"),
            read(COMPILED / f"{NAME}_off.hlo.gz"),
        ),
    ],
    ids=["forward and training", "before and after a compiler"],
)
def test_pairs_are_one_to_one_and_stand_in_paired_computations(before: Module, after: Module) -> None:
    computations, instructions = pairs_of(before, after)
    for pairs in (computations, instructions):
        assert len(set(pairs.values())) == len(pairs)
    assert computations[before.proto.entry_computation_id] == after.proto.entry_computation_id
    for one, two in instructions.items():
        assert computations[before.computation_of[one]] == after.computation_of[two]
    moved, old = renumbered(before, after)
    assert set(old.values()) == set(before.instructions)
    assert {old[i]: i for i in moved.instructions if i in after.instructions} == dict(instructions)
    for id_, instruction in moved.instructions.items():
        kept = before.instructions[old[id_]]
        assert [old[operand] for operand in instruction.operand_ids] == list(kept.operand_ids)
        assert (instruction.name, instruction.opcode) == (kept.name, kept.opcode)
    assert len(moved.instructions) == len(before.instructions)


def test_two_files_are_outlined_together_under_the_ids_of_the_later_one() -> None:
    before, after = module("mlp_fig2_forward_4_f32.hlo"), module("mlp_fig2_train_4_f32.hlo")
    assert are_apart(before, after)
    assert not are_apart(before, before)
    outline = outline_of(after, before)
    both = [n for n in range(len(outline)) if outline.instruction[n] >= 0 and outline.sides[n] == Side.BOTH]
    assert any(outline.names[n] == "all-gather" for n in both)
    seen = outline.seen_earlier.instruction
    for n in both:
        assert int(outline.instruction[n]) in after.instructions
        assert int(seen[n]) in before.instructions
    only = [n for n in range(len(outline)) if outline.instruction[n] >= 0 and outline.sides[n] == Side.AFTER]
    assert only
    assert not {int(seen[n]) for n in only} & set(before.instructions)
    assert outline_of(after).earlier == {}


def test_names_are_paired_where_both_have_the_instruction() -> None:
    before, after = module("mlp_fig2_forward_4_f32.hlo"), module("mlp_fig2_train_4_f32.hlo")
    names = paired_names(before, after)
    assert names["all-gather"] in after.by_name
    assert names[before.entry.name] == after.entry.name
