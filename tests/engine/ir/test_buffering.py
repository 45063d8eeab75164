"""Buffers through aliases: who shares memory with whom, and for how long."""

from __future__ import annotations

import pytest

from engine.hlo.reading import read_here
from engine.ir.buffering import buffers_of
from engine.ir.buffers import Buffers
from engine.ir.graph import Graph
from engine.ir.graphs import graphs_of
from engine.ir.module import Module

MIB = 1 << 20


def loaded(body: str, *, before: str = "", header: str = "") -> tuple[Module, Graph, Buffers]:
    """The module's entry computation `body`, with other computations before it."""
    text = f"HloModule test{header}\n\n{before}\nENTRY main {{\n{body}\n}}\n"
    module = read_here(text.encode(), "test.hlo")
    graph = list(graphs_of(module).values())[-1]
    return module, graph, buffers_of(module, graph)


def defined(graph: Graph, buffers: Buffers, name: str) -> list[int]:
    """Buffers that the instruction defines."""
    return [b for b in range(len(buffers.size)) if graph.names[buffers.node[b]] == name]


def readers(graph: Graph, buffers: Buffers, buffer: int) -> set[str]:
    return {graph.names[r] for r in buffers.readers.of(buffer)}


def test_parameters_are_live_throughout_and_the_root_to_the_end() -> None:
    _, graph, buffers = loaded("  x = f32[1024,256] parameter(0)\n  ROOT y = f32[1024,256] negate(x)")
    (x,), (y,) = defined(graph, buffers, "x"), defined(graph, buffers, "y")
    assert buffers.size.tolist() == [MIB, MIB]
    assert (buffers.live_in[x], buffers.live_out[x]) == (True, False)
    assert (buffers.live_in[y], buffers.live_out[y]) == (False, True)
    assert readers(graph, buffers, x) == {"y"}


def test_a_donated_parameter_dies_with_its_last_reader() -> None:
    header = ", input_output_alias={ {}: (0, {}, may-alias) }"
    _, graph, buffers = loaded("  x = f32[8] parameter(0)\n  ROOT y = f32[8] negate(x)", header=header)
    assert not buffers.live_in[defined(graph, buffers, "x")[0]]


def test_tuples_elements_and_bitcasts_are_seen_through() -> None:
    _, graph, buffers = loaded(
        """  x = f32[8,4] parameter(0)
  a = f32[8,4] negate(x)
  b = f32[8,4] exponential(x)
  t = (f32[8,4], f32[8,4]) tuple(a, b)
  e = f32[8,4] get-tuple-element(t), index=1
  c = f32[32] bitcast(e)
  ROOT r = f32[32] negate(c)"""
    )
    (a,), (b,) = defined(graph, buffers, "a"), defined(graph, buffers, "b")
    assert readers(graph, buffers, b) == {"r"}
    assert readers(graph, buffers, a) == set()
    assert not defined(graph, buffers, "t")
    assert not defined(graph, buffers, "c")


def test_an_update_without_other_readers_is_in_place() -> None:
    _, graph, buffers = loaded(
        """  x = f32[2] parameter(0)
  i = s32[] parameter(1)
  zero = f32[] constant(0)
  z = f32[8] broadcast(zero), dimensions={}
  u = f32[8] dynamic-update-slice(z, x, i)
  ROOT v = f32[8] dynamic-update-slice(u, x, i)"""
    )
    (z,) = defined(graph, buffers, "z")
    assert readers(graph, buffers, z) == {"u", "v"}
    assert buffers.live_out[z]
    assert not defined(graph, buffers, "u")
    assert not defined(graph, buffers, "v")


def test_an_update_of_what_something_else_reads_is_a_copy() -> None:
    _, graph, buffers = loaded(
        """  x = f32[2] parameter(0)
  i = s32[] parameter(1)
  y = f32[8] parameter(2)
  z = f32[8] negate(y)
  u = f32[8] dynamic-update-slice(z, x, i)
  w = f32[8] add(z, u)
  ROOT v = f32[8] dynamic-update-slice(y, x, i)
"""
    )
    assert defined(graph, buffers, "u")
    assert defined(graph, buffers, "v"), "the caller's parameter must not be overwritten"
    assert buffers.overwrites is None


def test_a_scheduled_module_may_overwrite_what_was_read_before() -> None:
    _, graph, buffers = loaded(
        """  x = f32[2] parameter(0)
  i = s32[] parameter(1)
  y = f32[8] parameter(2)
  z = f32[8] negate(y)
  s = (f32[8], f32[8]) collective-permute-start(z), channel_id=1, source_target_pairs={{0,1},{1,0}}
  d = f32[8] collective-permute-done(s)
  u = f32[8] dynamic-update-slice(z, x, i)
  ROOT w = f32[8] add(d, u)""",
        header=", is_scheduled=true, num_partitions=2",
    )
    assert not defined(graph, buffers, "u")
    assert buffers.overwrites is not None
    names = {graph.names[k] for k in buffers.overwrites.of(graph.names.index("u"))}
    assert names == {"s", "d"}, "the transfer that reads the buffer must be over"


def test_a_transfer_holds_its_operand_and_its_result_until_it_is_done() -> None:
    _, graph, buffers = loaded(
        """  x = f32[8] parameter(0)
  a = f32[8] negate(x)
  s = (f32[8], f32[8], u32[], u32[]) collective-permute-start(a), channel_id=1, source_target_pairs={{0,1},{1,0}}
  d = f32[8] collective-permute-done(s)
  ROOT r = f32[8] negate(d)""",
        header=", num_partitions=2",
    )
    (a,) = defined(graph, buffers, "a")
    result = next(b for b in defined(graph, buffers, "s") if buffers.size[b] == 32)
    assert readers(graph, buffers, a) == {"s", "d"}
    assert readers(graph, buffers, result) == {"d", "r"}
    assert not defined(graph, buffers, "d")


LOOP = """
body {
  s = (f32[8], f32[8], s32[]) parameter(0)
  w = f32[8] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  i = s32[] get-tuple-element(s), index=2
  y = f32[8] multiply(w, x)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (f32[8], f32[8], s32[]) tuple(w, y, j)
}

condition {
  s = (f32[8], f32[8], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=2
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT
}
"""


def test_a_loop_works_in_the_buffers_of_its_initial_state() -> None:
    _, graph, buffers = loaded(
        """  w = f32[8] parameter(0)
  z = f32[8] negate(w)
  zero = s32[] constant(0)
  i = s32[] negate(zero)
  t = (f32[8], f32[8], s32[]) tuple(w, z, i)
  l = (f32[8], f32[8], s32[]) while(t), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(l), index=1""",
        before=LOOP,
    )
    assert not defined(graph, buffers, "l")
    (z,) = defined(graph, buffers, "z")
    assert buffers.live_out[z]
    assert readers(graph, buffers, z) == {"l"}


def test_a_loop_copies_state_that_something_else_reads() -> None:
    _, graph, buffers = loaded(
        """  w = f32[8] parameter(0)
  z = f32[8] negate(w)
  zero = s32[] constant(0)
  t = (f32[8], f32[8], s32[]) tuple(z, z, zero)
  l = (f32[8], f32[8], s32[]) while(t), condition=condition, body=body
  e = f32[8] get-tuple-element(l), index=1
  ROOT r = f32[8] add(e, z)""",
        before=LOOP,
    )
    copies = defined(graph, buffers, "l")
    assert sorted(buffers.size[copies].tolist()) == [4, 32], "the changed state and the counter, not the unchanged w"


@pytest.mark.parametrize("header", ["", ", is_scheduled=true"])
def test_elements_of_a_loop_s_state_have_places_of_their_own(header: str) -> None:
    """Moments of an optimiser begin as the same zeros, and do not stay the same. A scheduled module says it itself."""
    _, graph, buffers = loaded(
        """  p = f32[1024,256] parameter(0)
  zero = f32[] constant(0)
  z = f32[1024,256] broadcast(zero), dimensions={}
  t = (f32[1024,256], f32[1024,256], f32[1024,256], f32[1024,256]) tuple(z, z, p, p)
  l = (f32[1024,256], f32[1024,256], f32[1024,256], f32[1024,256]) while(t), condition=never, body=moments
  m = f32[1024,256] get-tuple-element(l), index=0
  v = f32[1024,256] get-tuple-element(l), index=1
  ROOT r = f32[1024,256] add(m, v)""",
        before="""
moments {
  s = (f32[1024,256], f32[1024,256], f32[1024,256], f32[1024,256]) parameter(0)
  m = f32[1024,256] get-tuple-element(s), index=0
  v = f32[1024,256] get-tuple-element(s), index=1
  a = f32[1024,256] get-tuple-element(s), index=2
  b = f32[1024,256] get-tuple-element(s), index=3
  n = f32[1024,256] add(m, a)
  w = f32[1024,256] multiply(v, b)
  ROOT t = (f32[1024,256], f32[1024,256], f32[1024,256], f32[1024,256]) tuple(n, w, a, b)
}

never {
  s = (f32[1024,256], f32[1024,256], f32[1024,256], f32[1024,256]) parameter(0)
  ROOT c = pred[] constant(false)
}
""",
        header=header,
    )
    made = [buffers.size[b] for b in defined(graph, buffers, "l")]
    assert made == ([] if header else [MIB]), "one of m and v in the zeros, and neither of a and b, which stay p"


def test_of_two_results_in_place_of_one_operand_one_is_a_copy() -> None:
    _, graph, buffers = loaded(
        """  x = f32[2] parameter(0)
  i = s32[] parameter(1)
  y = f32[8] parameter(2)
  z = f32[8] negate(y)
  f = (f32[8], f32[8]) fusion(z, x, i), kind=kLoop, calls=updates
  a = f32[8] get-tuple-element(f), index=0
  b = f32[8] get-tuple-element(f), index=1
  ROOT r = f32[8] add(a, b)""",
        before="""
updates {
  a = f32[8] parameter(0)
  b = f32[2] parameter(1)
  i = s32[] parameter(2)
  n = f32[2] negate(b)
  u = f32[8] dynamic-update-slice(a, b, i)
  v = f32[8] dynamic-update-slice(a, n, i)
  ROOT t = (f32[8], f32[8]) tuple(u, v)
}
""",
    )
    assert len(defined(graph, buffers, "f")) == 1


def test_in_place_fusions_and_declared_aliases() -> None:
    _, graph, buffers = loaded(
        """  x = f32[2] parameter(0)
  i = s32[] parameter(1)
  y = f32[8] parameter(2)
  z = f32[8] negate(y)
  f = f32[8] fusion(z, x, i), kind=kLoop, calls=update
  g = f32[8] custom-call(f), custom_call_target="in_place", output_to_operand_aliasing={{}: (0, {})}
  ROOT r = f32[8] negate(g)""",
        before="""
update {
  a = f32[8] parameter(0)
  b = f32[2] parameter(1)
  i = s32[] parameter(2)
  ROOT u = f32[8] dynamic-update-slice(a, b, i)
}
""",
    )
    (z,) = defined(graph, buffers, "z")
    assert not defined(graph, buffers, "f")
    assert not defined(graph, buffers, "g")
    assert readers(graph, buffers, z) == {"f", "g", "r"}


def test_touches_is_the_inverse_of_definitions_and_reads() -> None:
    _, graph, buffers = loaded("  x = f32[8] parameter(0)\n  a = f32[8] negate(x)\n  ROOT y = f32[8] add(a, x)")
    for node in range(len(graph)):
        expected = {b for b in range(len(buffers.size)) if buffers.node[b] == node or node in buffers.readers.of(b)}
        assert set(buffers.touches.of(node).tolist()) == expected


def test_other_memory_spaces_and_tokens_take_no_device_memory() -> None:
    _, graph, buffers = loaded(
        """  x = f32[8]{0} parameter(0)
  k = token[] after-all()
  a = f32[8]{0:S(1)} negate(x)
  ROOT y = f32[8]{0} negate(a)"""
    )
    assert not defined(graph, buffers, "a")
    assert not defined(graph, buffers, "k")


def test_an_all_reduce_start_works_in_its_operand_where_nobody_else_reads_it() -> None:
    add = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
    body = """  x = f32[1024,256] parameter(0)
  y = f32[1024,256] negate(x)
  start = f32[1024,256] all-reduce-start(y), replica_groups={{0,1}}, to_apply=add
  done = f32[1024,256] all-reduce-done(start)
  ROOT r = f32[1024,256] negate(done)"""
    header = ", replica_count=2"
    _, graph, buffers = loaded(body, before=add, header=header)
    (y,) = defined(graph, buffers, "y")
    assert defined(graph, buffers, "start") == []
    assert readers(graph, buffers, y) >= {"start", "done", "r"}
    also_read = body.replace("negate(done)", "add(done, y)")
    _, graph, buffers = loaded(also_read, before=add, header=header)
    assert len(defined(graph, buffers, "start")) == 1


def test_results_of_calls_and_branches_are_the_callers_memory() -> None:
    """A caller counts them where it calls: a callee that counted them too would take them twice."""
    module, _, _ = loaded(
        """  p = pred[] parameter(0)
  x = f32[1024,256] parameter(1)
  c = f32[1024,256] call(x), to_apply=called
  ROOT r = f32[1024,256] conditional(p, c, c), true_computation=one, false_computation=two""",
        before="\n\n".join(
            f"{name} {{\n  p = f32[1024,256] parameter(0)\n  a = f32[1024,256] negate(p)\n"
            "  ROOT b = f32[1024,256] add(a, p)\n}"
            for name in ("called", "one", "two")
        ),
    )
    *callees, entry = graphs_of(module).values()
    for graph in callees:
        buffers = buffers_of(module, graph)
        assert buffers.live_in[defined(graph, buffers, "b")].all()
        assert not buffers.live_in[defined(graph, buffers, "a")].any()
    buffers = buffers_of(module, entry)
    assert not buffers.live_in[defined(entry, buffers, "c") + defined(entry, buffers, "r")].any()
