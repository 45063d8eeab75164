"""Modules on their way between processes."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace

from engine.hlo.reading import read_here
from engine.ir.module import JobMesh, Module
from tests.places import SAMPLES

SAMPLE = SAMPLES / "mlp_fig2_forward_4_f32.hlo"


def sent(module: Module) -> Module:
    received = pickle.loads(pickle.dumps(module))
    assert isinstance(received, Module)
    return received


def test_a_module_arrives_as_it_was() -> None:
    read = read_here(SAMPLE.read_bytes(), str(SAMPLE)).with_notes("a note")
    job = JobMesh((("data", 2), ("model", 2)), "capture.json")
    module = replace(read, job_mesh=job, elided=frozenset({7}), origins={3: (1, 2)})
    for received in (sent(module), sent(sent(module))):
        assert received.proto == module.proto
        assert received.name == module.name
        assert (received.header, received.notes, received.source) == (module.header, module.notes, module.source)
        # Every field: one that is left behind is missed only in the window.
        for field in fields(Module):
            assert getattr(received, field.name) == getattr(module, field.name), field.name
        assert received.by_name.keys() == module.by_name.keys()


def test_a_received_module_is_parsed_when_it_is_looked_into_and_not_before() -> None:
    received = sent(read_here(SAMPLE.read_bytes(), str(SAMPLE)))
    again = sent(received)
    assert "proto" not in vars(received)
    assert again.entry.name
    assert "proto" in vars(again)


def test_another_proto_in_a_received_module_is_the_one_that_is_sent_on() -> None:
    received = sent(read_here(SAMPLE.read_bytes(), str(SAMPLE)))
    other = type(received.proto)()
    other.CopyFrom(received.proto)
    other.name = "another"
    assert sent(replace(received, proto=other)).name == "another"
