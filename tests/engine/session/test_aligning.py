"""A compiler's module beside the one that it was given: ids never meet, origins are the right ones."""

from __future__ import annotations

import gzip

import pytest

from engine.control import QUIET
from engine.cost.scheduled_module import read_scheduled_module
from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto
from engine.hlo.printing import print_here
from engine.hlo.reading import read_bytes, read_here
from engine.hlo.verifying import verify
from engine.ir.module import Module
from engine.ir.numbering import LOCAL_BITS
from engine.session.aligning import aligned
from engine.session.compiled import predicted_variant
from engine.session.matching import Match
from engine.session.plan import MachineSpec
from tests.places import COMPILED, PARTITIONED

NAME = "we_v4-4x4x4_2d_8x8_d8192_L2_scan"


@pytest.fixture(scope="module")
def loaded() -> Module:
    path = str(PARTITIONED / f"{NAME}.hlo.gz")
    return read_here(read_bytes(path), path, QUIET)


@pytest.fixture(scope="module")
def schedule() -> str:
    return gzip.decompress((COMPILED / f"{NAME}_default.schedule.txt.gz").read_bytes()).decode()


def test_a_compilers_module_gets_ids_of_its_own_and_origins(loaded: Module, schedule: str) -> None:
    compiled = read_scheduled_module(schedule, "schedule").module
    made = aligned(compiled, loaded)
    assert not set(made.instructions) & set(loaded.instructions)
    assert [i.name for i in made.instructions.values()] == [i.name for i in compiled.instructions.values()]
    verify(made.proto, "the aligned module")
    scheduled = [i for s in made.proto.schedule.sequences.values() for i in s.instruction_ids]
    assert set(scheduled) <= set(made.instructions)
    assert {origin for found in made.origins.values() for origin in found} <= set(loaded.instructions)
    einsums = [i for i in scheduled if made.instructions[i].opcode == "convolution"]
    for einsum in einsums:
        for origin in made.origins.get(einsum, ()):
            assert loaded.instructions[origin].opcode in ("dot", "convolution")


def test_xla_prints_it_in_no_more_memory_than_the_module_as_compiled(loaded: Module, schedule: str) -> None:
    """Of each computation XLA makes a table as long as its highest local id."""
    compiled = read_scheduled_module(schedule, "schedule").module
    made = aligned(compiled, loaded)
    most = max(i % (1 << LOCAL_BITS) for i in compiled.instructions)
    assert max(i % (1 << LOCAL_BITS) for i in made.instructions) == most
    assert print_here(made) == print_here(compiled)


def test_a_module_beside_itself(loaded: Module) -> None:
    made = aligned(loaded, loaded)
    assert not set(made.instructions) & set(loaded.instructions)
    fusions = {"fusion", "async-start"}
    assert all(
        made.origins_of(new.id) == (old.id,)
        for new, old in zip(made.instructions.values(), loaded.instructions.values(), strict=True)
        if old.opcode not in fusions
    )


def test_a_selection_goes_over_to_the_compilers_module_and_back(loaded: Module, schedule: str) -> None:
    variant = predicted_variant(read_scheduled_module(schedule, "schedule"), MachineSpec("tpu-v4"), loaded=loaded)
    module = variant.program.module
    permute = next(
        i for i in module.instructions.values() if i.opcode == "collective-permute-start" and i.id in module.origins
    )
    (back, *_) = module.origins_of(permute.id)
    assert permute.id in Match(variant, variant).counterparts((permute.id,)) | {permute.id}
    assert loaded.instructions[back].metadata.op_name == permute.metadata.op_name
    assert any("were found in the module as loaded" in note for note in variant.notes)


def module_of(*instructions: tuple[int, str, str, str]) -> Module:
    """(id, name, opcode, op_name) in one computation."""
    computation = HloComputationProto(id=1, name="main", root_id=instructions[-1][0])
    for number, name, opcode, op_name in instructions:
        made = HloInstructionProto(id=number, name=name, opcode=opcode)
        made.shape.element_type = hlo_pb2.F32
        made.metadata.op_name = op_name
        computation.instructions.append(made)
    return Module(HloModuleProto(name="m", entry_computation_id=1, computations=[computation]))


def origins(compiled: Module, loaded: Module) -> dict[str, list[str]]:
    made = aligned(compiled, loaded)
    return {
        made.instructions[id_].name: [loaded.instructions[origin].name for origin in found]
        for id_, found in made.origins.items()
    }


def test_names_come_first_then_op_names_that_are_clear() -> None:
    loaded = module_of((1, "dot.1", "dot", "f/a"), (2, "dot.2", "dot", "f/b"), (3, "gather.3", "all-gather", "f/b"))
    compiled = module_of(
        (1, "dot.2", "dot", "f/a"),  # its name says more than its op_name
        (2, "convolution.9", "convolution", "f/a"),
        (3, "permute.1", "collective-permute-start", "f/b"),
        (4, "permute.2", "collective-permute-start", "f/a"),
        (5, "add.1", "add", "f/a"),
        (6, "dot.7", "add", "f/c"),
    )
    assert origins(compiled, loaded) == {
        "dot.2": ["dot.2"],
        "convolution.9": ["dot.1"],
        "permute.1": ["gather.3"],
        "permute.2": ["dot.1"],
    }


def test_layers_that_are_alike_pair_in_their_order_or_not_at_all() -> None:
    layers = [(n, f"dot.{n}", "dot", "f/layer") for n in range(1, 7)]
    same = [(n, f"convolution.{n}", "convolution", "f/layer") for n in range(1, 7)]
    assert origins(module_of(*same), module_of(*layers)) == {f"convolution.{n}": [f"dot.{n}"] for n in range(1, 7)}
    assert origins(module_of(*same[:4]), module_of(*layers)) == {}
