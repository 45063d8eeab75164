"""Graphs hold every edge once, in CSR form, and pair what belongs together."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from engine.hlo.hlo_pb2 import HloModuleProto
from engine.hlo.reading import read_here
from engine.ir.graphs import graph_of, graphs_of
from engine.ir.module import Module
from tests.engine.hlo.texts import LOOP, SCHEDULED
from tests.places import SAMPLES

SAMPLE_FILES = sorted(SAMPLES.glob("decoder*.hlo"))[:3]


def module(text: str) -> Module:
    return read_here(text.encode())


def named(made: Module, name: str = "main") -> int:
    return next(c.id for c in made.proto.computations if c.name == name)


def test_edges_of_a_small_computation() -> None:
    made = module(SCHEDULED)
    graph = graph_of(made, named(made))
    at = {name: k for k, name in enumerate(graph.names)}
    assert graph.opcodes[at["start"]] == "collective-permute-start"
    assert graph.operands.of(at["sum"]).tolist() == [at["done"], at["busy"]]
    assert graph.controls.of(at["done"]).tolist() == [at["busy"]]
    assert graph.predecessors.of(at["done"]).tolist() == sorted([at["start"], at["busy"]])
    assert graph.users.of(at["p"]).tolist() == sorted([at["start"], at["busy"]])
    assert graph.successors.of(at["busy"]).tolist() == sorted([at["done"], at["sum"]])
    assert graph.partner[at["start"]] == at["done"]
    assert graph.partner[at["done"]] == at["start"]
    assert graph.partner[at["p"]] == -1
    assert graph.is_start(at["start"])
    assert graph.root == at["sum"]
    assert graph.order is not None
    assert [graph.names[k] for k in graph.order] == ["p", "start", "busy", "done", "sum"]


def test_repeated_operands_are_operands_twice_and_users_once() -> None:
    made = module("HloModule m\nENTRY main {\n  p = f32[] parameter(0)\n  ROOT r = f32[] add(p, p)\n}\n")
    graph = graph_of(made, named(made))
    assert graph.operands.of(1).tolist() == [0, 0]
    assert graph.users.of(0).tolist() == [1]
    assert graph.predecessors.of(1).tolist() == [0]
    assert graph.order is None


def test_what_runs_as_a_sequence_comes_callees_first() -> None:
    made = module(LOOP)
    graphs = graphs_of(made)
    assert [graphs[id_].name for id_ in graphs][-1] == "main"
    assert {g.name for g in graphs.values()} == {"main", "body", "condition"}
    main = graphs[named(made)]
    again = main.names.index("again")
    assert main.called.of(again).tolist() == [named(made, "body"), named(made, "condition")]


BRANCHES = """HloModule m
negate_it {
  a = f32[4] parameter(0)
  ROOT n = f32[4] negate(a)
}
fused {
  e = f32[4] parameter(0)
  ROOT f = f32[4] negate(e)
}
keep {
  b = f32[4] parameter(0)
  c = f32[4] fusion(b), kind=kLoop, calls=fused
  ROOT d = f32[4] call(c), to_apply=negate_it
}
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
wrapped {
  w = f32[4] parameter(0)
  ROOT v = f32[4] all-reduce(w), replica_groups={}, to_apply=add
}
ENTRY main {
  p = f32[4] parameter(0)
  i = s32[] parameter(1)
  t = ((f32[4]), f32[4], u32[]) async-start(p), calls=wrapped
  u = ((f32[4]), f32[4], u32[]) async-update(t)
  q = f32[4] async-done(u)
  ROOT r = f32[4] conditional(i, q, q), branch_computations={negate_it, keep}
}
"""


def test_branches_and_calls_are_sequences_fusions_reducers_and_wrappers_are_not() -> None:
    made = module(BRANCHES)
    names = [g.name for g in graphs_of(made).values()]
    assert sorted(names) == ["keep", "main", "negate_it"]
    assert names.index("negate_it") < names.index("keep") < names.index("main")


def test_updates_between_start_and_done_are_passed_through() -> None:
    made = module(BRANCHES)
    graph = graph_of(made, named(made))
    at = {name: k for k, name in enumerate(graph.names)}
    assert graph.partner[at["t"]] == at["q"]
    assert graph.partner[at["u"]] == -1


@pytest.mark.parametrize("sample", SAMPLE_FILES, ids=lambda path: path.stem)
def test_csr_is_consistent_and_topological(sample: Path) -> None:
    made = read_here(sample.read_bytes())
    for graph in graphs_of(made).values():
        count = len(graph)
        instructions = [made.instructions[int(id_)] for id_ in graph.ids]
        for node in range(count):
            operands = [int(graph.ids[k]) for k in graph.operands.of(node)]
            assert operands == list(instructions[node].operand_ids)
            assert all(k < node for k in graph.predecessors.of(node))
        edges = {(int(p), n) for n in range(count) for p in graph.predecessors.of(node=n)}
        assert edges == {(n, int(s)) for n in range(count) for s in graph.successors.of(n)}
        assert not graph.ids.flags.writeable
        assert not graph.predecessors.items.flags.writeable


def test_ten_times_the_instructions_take_little_more_than_ten_times_as_long() -> None:
    times: list[float] = []
    for count in (10_000, 100_000):
        proto = HloModuleProto(name="m", entry_computation_id=1)
        computation = proto.computations.add(id=1, name="main", root_id=count)
        for k in range(1, count + 1):
            operands = [k - 1, max(1, k - 37)] if k > 1 else []
            computation.instructions.add(id=k, name=f"p{k}", opcode="add", operand_ids=operands)
        made = Module(proto)
        started = time.process_time()
        graph = graphs_of(made)[1]
        times.append(time.process_time() - started)
    assert times[1] < 40 * times[0]
    assert len(graph) == 100_000
    assert np.array_equal(graph.operands.of(50_000), [49_999, 49_963])
