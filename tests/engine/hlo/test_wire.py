from __future__ import annotations

import pickle

import pytest

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto
from engine.hlo.reading import read_here
from engine.hlo.wire import places_in
from engine.ir.module import Module
from tests.places import SAMPLES


@pytest.mark.parametrize("name", ["mlp_fig3.hlo", "mlp_fig2_train_4_f32.hlo"])
def test_a_module_that_was_sent_gives_single_instructions_without_being_parsed(name: str) -> None:
    module = read_here((SAMPLES / name).read_bytes(), name)
    for sent in (pickle.loads(pickle.dumps(module)), pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(module))))):
        for computation in module.proto.computations:
            assert sent.computation_at(computation.id) == computation
            for position, instruction in enumerate(computation.instructions):
                assert sent.instruction_at(computation.id, position) == instruction
        assert "proto" not in sent.__dict__
        assert sent.proto == module.proto
        assert sent.instruction_at(module.entry.id, 0) == module.entry.instructions[0]


def test_places_in_a_module_with_large_ids_and_nothing_else() -> None:
    made = HloInstructionProto(id=(7 << 32) | 300, name="x" * 300, opcode="add", operand_ids=[1 << 40, 2])
    empty = HloComputationProto(id=9, name="empty")
    holding = HloComputationProto(id=1 << 35, name="main", instructions=[made, HloInstructionProto(id=2)], root_id=2)
    proto = HloModuleProto(name="m", id=-1, computations=[empty, holding], entry_computation_id=1 << 35)
    data = proto.SerializeToString()
    places = places_in(data)
    assert places.computation.tolist() == [9, 1 << 35]
    assert places.read(data, 1 << 35, 0) == made
    assert places.read(data, 1 << 35, 1).id == 2
    assert places.read_computation(data, 9) == empty
    assert len(places_in(HloModuleProto().SerializeToString()).begin) == 0
    assert pickle.loads(pickle.dumps(Module(proto))).entry == holding
