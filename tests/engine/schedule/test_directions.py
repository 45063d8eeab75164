"""Permutes that go the same way after each other, whatever the order was before."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.hlo.reading import read_here
from engine.ir import graphs
from engine.ir.graph import Graph, Ints
from engine.ir.module import Module
from engine.schedule.directions import Lengths, most_each_way, one_each_way, ways

START = "(f32[8], f32[8], u32[], u32[]) collective-permute-start"
LEFT, RIGHT = "{{0,1},{1,0}}", "{{0,0},{1,1}}"


def program(permutes: list[tuple[bool, int | None]]) -> Module:
    """Permutes by (whether to the left, of which earlier one's result, else the parameter), each with one use."""
    lines = ["p = f32[8] parameter(0)"]
    for k, (left, source) in enumerate(permutes):
        operand = "p" if source is None else f"done{source}"
        lines.append(
            f"start{k} = {START}({operand}), channel_id={k + 1}, source_target_pairs={LEFT if left else RIGHT}"
        )
        lines.append(f"done{k} = f32[8] collective-permute-done(start{k})")
        lines.append(f"use{k} = f32[8] negate(done{k})")
    results = ", ".join(f"use{k}" for k in range(len(permutes)))
    shapes = ", ".join(["f32[8]"] * len(permutes))
    lines.append(f"ROOT t = ({shapes}) tuple({results})")
    body = "\n".join(f"  {line}" for line in lines)
    return read_here(f"HloModule m, num_partitions=2\n\nENTRY e {{\n{body}\n}}\n".encode())


def graph_of(module: Module) -> Graph:
    return graphs.graph_of(module, module.proto.entry_computation_id)


def is_topological(graph: Graph, order: Ints) -> bool:
    place = np.empty(len(graph), np.int64)
    place[order] = np.arange(len(graph))
    return all(place[p] < place[n] for n in range(len(graph)) for p in graph.predecessors.of(n).tolist())


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[bool, int | None]]:
    count = draw(st.integers(1, 7))
    return [(draw(st.booleans()), draw(st.none() | st.integers(0, k - 1)) if k else None) for k in range(count)]


@settings(max_examples=40)
@given(permutes=programs(), seed=st.integers(0, 999))
def test_any_order_becomes_one_with_one_permute_each_way(permutes: list[tuple[bool, int | None]], seed: int) -> None:
    module = program(permutes)
    graph = graph_of(module)
    way = ways(module, graph)
    assert len(way) == len(permutes)
    order = shuffled(graph, seed)
    kept = one_each_way(graph, order, way)
    assert sorted(kept.tolist()) == list(range(len(graph)))
    assert is_topological(graph, kept)
    assert most_each_way(graph, kept, way) == 1
    assert one_each_way(graph, kept, way).tolist() == kept.tolist()


@settings(max_examples=40)
@given(permutes=programs(), seed=st.integers(0, 999), transfer=st.integers(0, 40))
def test_with_lengths_too(permutes: list[tuple[bool, int | None]], seed: int, transfer: int) -> None:
    module = program(permutes)
    graph = graph_of(module)
    way = ways(module, graph)
    kept = one_each_way(graph, shuffled(graph, seed), way, lengths_of(graph, transfer))
    assert sorted(kept.tolist()) == list(range(len(graph)))
    assert is_topological(graph, kept)
    assert most_each_way(graph, kept, way) == 1


def lengths_of(graph: Graph, transfer: int) -> Lengths:
    """Uses take 10, every permute `transfer`, all else nothing."""
    stream = [10 if opcode == "negate" else 0 for opcode in graph.opcodes]
    return Lengths(np.array(stream, np.int64), np.full(len(graph), transfer, np.int64))


def test_a_permute_is_done_once_it_has_arrived_where_another_is_held_by_it() -> None:
    module = program([(True, None), (True, None), (False, None), (False, 2), (False, 3)])
    graph = graph_of(module)
    number = {name: node for node, name in enumerate(graph.names)}
    compute = ["start2", "done2", "use2", "start3", "done3", "use3", "start4", "done4", "use4"]
    written = ["p", "start0", "start1", *compute, "done0", "use0", "done1", "use1", "t"]
    order = np.array([number[name] for name in written], np.int64)
    kept = one_each_way(graph, order, ways(module, graph), lengths_of(graph, 5))
    names = [graph.names[n] for n in kept.tolist()]
    assert names[:6] == ["p", "start0", "start2", "done2", "done0", "start1"]
    assert names.index("done1") > names.index("use4")
    never = one_each_way(graph, order, ways(module, graph), lengths_of(graph, 1000))
    assert [graph.names[n] for n in never.tolist()][:3] == ["p", "start0", "start2"]


def shuffled(graph: Graph, seed: int) -> Ints:
    """A topological order chosen at random."""
    random = np.random.default_rng(seed)
    left = {n: set(graph.predecessors.of(n).tolist()) for n in range(len(graph))}
    made: list[int] = []
    while left:
        ready = sorted(n for n, before in left.items() if not before)
        node = int(random.choice(ready))
        made.append(node)
        del left[node]
        for before in left.values():
            before.discard(node)
    return np.array(made, np.int64)


def test_a_start_is_held_until_the_one_before_it_is_done() -> None:
    module = program([(True, None), (True, None), (False, None)])
    graph = graph_of(module)
    number = {name: node for node, name in enumerate(graph.names)}
    written = ["p", "start0", "start1", "start2", "done0", "use0", "done2", "use2", "done1", "use1", "t"]
    order = np.array([number[name] for name in written], np.int64)
    assert most_each_way(graph, order, ways(module, graph)) == 2
    kept = one_each_way(graph, order, ways(module, graph))
    assert [graph.names[n] for n in kept.tolist()] == [
        "p",
        "start0",
        "start2",
        "done0",
        "start1",
        "use0",
        "done2",
        "use2",
        "done1",
        "use1",
        "t",
    ]


def test_what_needs_a_held_permute_waits_for_those_before_it() -> None:
    module = program([(True, None), (True, None)])
    graph = graph_of(module)
    number = {name: node for node, name in enumerate(graph.names)}
    written = ["p", "start0", "start1", "done1", "use1", "done0", "use0", "t"]
    kept = one_each_way(graph, np.array([number[name] for name in written], np.int64), ways(module, graph))
    assert [graph.names[n] for n in kept.tolist()] == ["p", "start0", "done0", "start1", "done1", "use1", "use0", "t"]
