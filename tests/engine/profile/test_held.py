"""The compiled module that a profile brings along."""

from __future__ import annotations

import json

import pytest

from engine.errors import InputError
from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto, HloProto
from engine.profile.held import held_module
from engine.profile.profile import PREDICTED
from engine.profile.xspace_pb2 import XPlane, XSpace


def program(name: str, op_name: str = "") -> HloProto:
    instruction = HloInstructionProto(name="dot.1", opcode="dot", id=1)
    instruction.metadata.op_name = op_name
    computation = HloComputationProto(id=1, name="main", root_id=1, instructions=[instruction])
    return HloProto(hlo_module=HloModuleProto(name=name, entry_computation_id=1, computations=[computation]))


def space_of(*programs: HloProto, ran: dict[str, int]) -> XSpace:
    """A TPU's profile with the programs beside it; `ran`: how many operations of each there are."""
    space = XSpace()
    held = space.planes.add(name="/host:metadata")
    for number, proto in enumerate(programs, start=1):
        held.event_metadata[number].id = number
        held.event_metadata[number].name = f"{proto.hlo_module.name}(1)"
        held.event_metadata[number].stats.add(metadata_id=1, bytes_value=proto.SerializeToString())
    tpu = space.planes.add(name="/device:TPU:0")
    modules, ops = tpu.lines.add(name="XLA Modules"), tpu.lines.add(name="XLA Ops")
    name_event(tpu, 1, "%dot.1 = f32[] dot()")
    at = 0
    for number, (name, count) in enumerate(ran.items(), start=2):
        name_event(tpu, number, f"{name}(1)")
        modules.events.add(metadata_id=number, offset_ps=at, duration_ps=10 * count)
        for _ in range(count):
            ops.events.add(metadata_id=1, offset_ps=at, duration_ps=10)
            at += 10
    return space


def name_event(plane: XPlane, number: int, name: str) -> None:
    plane.event_metadata[number].id = number
    plane.event_metadata[number].name = name


def test_the_program_that_ran_most_is_taken() -> None:
    space = space_of(program("init"), program("step"), ran={"init": 2, "step": 5})
    assert held_module(space.SerializeToString(), "p").hlo_module.name == "step"


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (XSpace(), "brings no module"),
        (space_of(ran={"step": 5}), "brings no module"),
        (space_of(program("other"), ran={"step": 5}), "brings no module"),
        (space_of(program("step", "f/dot lapstrake=dot.1"), ran={"step": 5}), "the plan was made of first"),
        (XSpace(warnings=[PREDICTED]), "predicted by Lapstrake"),
    ],
)
def test_what_cannot_be_opened_alone_says_why(space: XSpace, said: str) -> None:
    with pytest.raises(InputError, match=said):
        held_module(space.SerializeToString(), "p")


def test_a_trace_says_what_it_is_and_what_to_open_first() -> None:
    event = {"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 5, "name": "dot.1"}
    event |= {"args": {"hlo_op": "dot.1", "hlo_module": "jit_step"}}
    with pytest.raises(InputError) as raised:
        held_module(json.dumps({"traceEvents": [event]}).encode(), "run.trace.json")
    said = str(raised.value)
    assert "Chrome or Perfetto trace (JSON)" in said
    assert "Open the HLO of the module jit_step first" in said
    assert "protobuf" not in said.lower()


def test_what_is_no_profile_is_refused() -> None:
    with pytest.raises(InputError, match="was expected"):
        held_module(b"\xff\xff", "p")
