"""What XLA's parser lets through is found before anything aborts on it, and named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import InputError
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.hlo.reading import read, read_here
from engine.hlo.verifying import problems, verify
from tests.engine.hlo.texts import GATHER, LOOP, SCHEDULED
from tests.places import SAMPLES

SAMPLE_FILES = sorted(SAMPLES.glob("*.hlo"))


@pytest.mark.parametrize("sample", SAMPLE_FILES, ids=lambda path: path.stem)
def test_samples_have_no_problems(sample: Path) -> None:
    module = read_here(sample.read_bytes(), sample.name)
    assert list(problems(module.proto)) == []


HEAD = "HloModule m\n"
ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("p = (f32[2], f32[3]) parameter(0)\n ROOT r = f32[3] get-tuple-element(p), index=7", "index=7 is outside"),
        (
            "p = (f32[2], f32[3]) parameter(0)\n ROOT r = f32[2] get-tuple-element(p), index=1",
            "element 1 of its operand",
        ),
        ("p = f32[2] parameter(0)\n ROOT r = f32[2] get-tuple-element(p), index=0", "expected a tuple"),
        (
            "p = f32[2,3] parameter(0)\n q = f32[4,5] parameter(1)\n"
            " ROOT r = f32[2,5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            r"contracting dimensions \[3\] and \[4\] differ",
        ),
        (
            "p = f32[2,3] parameter(0)\n q = f32[3,5] parameter(1)\n"
            " ROOT r = f32[2,5] dot(p, q), lhs_contracting_dims={7}, rhs_contracting_dims={0}",
            "are not distinct dimensions",
        ),
        (
            "p = f32[2,3] parameter(0)\n q = f32[3,5] parameter(1)\n"
            " ROOT r = f32[5,2] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            r"give dimensions \[2, 5\]",
        ),
        ("p = f32[2,3] parameter(0)\n ROOT r = f32[2,3] transpose(p), dimensions={1,0}", r"dimensions \[3, 2\]"),
        ("p = f32[2] parameter(0)\n ROOT r = f32[2,3] broadcast(p), dimensions={1}", "does not map"),
        ("p = f32[4] parameter(0)\n ROOT r = f32[9] slice(p), slice={[0:9]}", "is outside of"),
        ("p = f32[4] parameter(0)\n q = f32[3] parameter(1)\n ROOT r = f32[4] add(p, q)", "which does not fit"),
        ("p = f32[4] parameter(0)\n ROOT r = f32[9] concatenate(p, p), dimensions={0}", "have 8 along dimension 0"),
        (
            "p = f32[4] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[5] pad(p, z), padding=0_2",
            r"dimensions \[6\]",
        ),
        (
            "p = f32[4,5] parameter(0)\n z = f32[] constant(0)\n"
            " ROOT r = f32[4] reduce(p, z), dimensions={0}, to_apply=add",
            r"reduces to dimensions \[5\]",
        ),
        (
            "p = f32[4] parameter(0)\n i = s32[] constant(0)\n"
            " ROOT r = f32[6] dynamic-slice(p, i), dynamic_slice_sizes={6}",
            "is no slice of",
        ),
        (
            "p = f32[4] parameter(0)\n ROOT r = f32[9] all-gather(p), replica_groups={}, dimensions={0}",
            "do not fit along dimension 0",
        ),
        (
            "p = f32[4] parameter(0)\n ROOT r = f32[4] collective-permute(p), source_target_pairs={{0,1},{0,2}}",
            "device 0 is the source of more than one pair",
        ),
        ("p = f32[4] parameter(0)\n ROOT r = f32[4] copy-start(p)", "expected a tuple"),
    ],
)
def test_wrong_operands(body: str, message: str) -> None:
    text = f"{HEAD}{ADD}ENTRY main {{\n {body}\n}}\n"
    with pytest.raises(InputError, match=message) as caught:
        read(text.encode(), name="m.hlo")
    assert "m.hlo: the module is not valid HLO: r in main: " in str(caught.value)


FUSED = """HloModule m
fused {
  a = f32[4] parameter(0)
  ROOT n = f32[4] negate(a)
}
ENTRY main {
  p = f32[4] parameter(0)
  ROOT r = f32[4] fusion(p), kind=kLoop, calls=fused
}
"""


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (FUSED, "fusion(p)", "fusion(p, p)", "it passes 2 operands to fused, which takes 1"),
        (FUSED, "ROOT r = f32[4]", "ROOT r = f32[8]", "fused gives"),
        (FUSED, "p = f32[4]", "p = f32[8]", "but fused takes"),
        (
            LOOP,
            "constant(0)\n  start = (s32[], f32[8])",
            "constant(0)\n  start = (s32[], f32[9])",
            "element 1 of its shape",
        ),
        (LOOP, "again = (s32[], f32[8])", "again = (s32[], f32[9])", "is not that of its initial value"),
        (LOOP, "ROOT less = pred[]", "ROOT less = s32[]", "gives"),
        (GATHER, "f32[4,8]{1,0}, f32[8,16]{1,0})->", "f32[4,8]{1,0})->", "entry layout has 1 parameters"),
        (GATHER, "->f32[16,16]{1,0}}", "->f32[8,16]{1,0}}", "the result is"),
    ],
)
def test_wrong_calls(text: str, old: str, new: str, message: str) -> None:
    assert old in text
    with pytest.raises(InputError, match=message):
        read(text.replace(old, new).encode(), name="m.hlo")


def duplicate_id(proto: HloModuleProto) -> None:
    proto.computations[0].instructions[1].id = proto.computations[0].instructions[0].id


def missing_operand(proto: HloModuleProto) -> None:
    proto.computations[-1].instructions[-1].operand_ids[0] = 1 << 40


def late_operand(proto: HloModuleProto) -> None:
    instructions = proto.computations[-1].instructions
    instructions[1].operand_ids[:] = [instructions[-1].id]


def missing_root(proto: HloModuleProto) -> None:
    proto.computations[-1].root_id = 77


def missing_entry(proto: HloModuleProto) -> None:
    proto.entry_computation_id = 77


def wrong_layout(proto: HloModuleProto) -> None:
    proto.computations[-1].instructions[0].shape.layout.minor_to_major[:] = [5]


def deep_tuple(proto: HloModuleProto) -> None:
    shape = proto.computations[-1].instructions[0].shape
    for _ in range(70):
        inner = type(shape)()
        inner.CopyFrom(shape)
        shape.Clear()
        shape.element_type = 13  # type: ignore[assignment]  # the enum's number
        shape.tuple_shapes.append(inner)


def unknown_callee(proto: HloModuleProto) -> None:
    proto.computations[-1].instructions[-1].called_computation_ids[:] = [1 << 40]


def same_names(proto: HloModuleProto) -> None:
    for instruction in proto.computations[-1].instructions:
        instruction.name = "same"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (duplicate_id, "is taken"),
        (missing_operand, "does not exist"),
        (late_operand, "does not come before it"),
        (missing_root, "its root 77 does not exist"),
        (missing_entry, "its entry computation 77 does not exist"),
        (wrong_layout, "is no permutation"),
        (deep_tuple, "nests tuples more than 64 deep"),
        (unknown_callee, "does not exist or does not come before"),
        (same_names, "instructions have this name"),
    ],
)
def test_broken_structure(damage: Callable[[HloModuleProto], None], message: str) -> None:
    proto = read_here(SCHEDULED.encode()).proto
    damage(proto)
    with pytest.raises(InputError, match=message):
        verify(proto, "m.pb")


def test_an_order_must_hold_everything_in_a_legal_order() -> None:
    proto = read_here(SCHEDULED.encode()).proto
    sequence = proto.schedule.sequences[proto.entry_computation_id]
    sequence.instruction_ids[:] = list(sequence.instruction_ids)[::-1]
    with pytest.raises(InputError, match="places it before what it needs"):
        verify(proto, "m.pb")
    sequence.instruction_ids[:] = list(sequence.instruction_ids)[1:]
    with pytest.raises(InputError, match="it lists 4 instructions, the computation has 5"):
        verify(proto, "m.pb")


def test_more_problems_are_counted() -> None:
    proto = read_here(GATHER.encode()).proto
    for instruction in proto.computations[0].instructions:
        instruction.operand_ids[:] = [1 << 40]
    with pytest.raises(InputError, match=r"\(and \d+ more problems\)"):
        verify(proto, "m.pb")
