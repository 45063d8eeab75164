"""A copy is there when the next value of a loop's element cannot be written while the present one is still needed."""

from __future__ import annotations

import numpy as np
import pytest

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.hlo.reading import read_here
from engine.ir import aliasing
from engine.ir.edit import Editor
from engine.ir.graph import Graph
from engine.ir.graphs import graph_of
from engine.ir.loop_copies import loop_copies
from engine.ir.module import Module
from engine.passes.async_permute import AsyncPermute
from engine.passes.decompose.emit.emit import emit
from engine.passes.decompose.rings.variants import Variant
from engine.passes.passes import Context
from tests.engine.passes.decompose.cases import EINSUMS, module_of, rings, sized


def body_of(module: Module) -> Graph:
    (loop,) = [i for i in module.instructions.values() if i.opcode == "while"]
    return graph_of(module, loop.called_computation_ids[0])


def ordered(graph: Graph, first: list[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A topological order that takes the named nodes, in this order, as early as it can."""
    rank = {name: k for k, name in enumerate(first)}
    done: set[int] = set()
    order: list[int] = []

    def visit(node: int) -> None:
        if node not in done:
            done.add(node)
            for before in graph.predecessors.of(node).tolist():
                visit(before)
            order.append(node)

    for node in sorted(range(len(graph)), key=lambda k: (rank.get(graph.names[k], len(rank)), k)):
        visit(node)
    return np.array(order, np.int64)


def loop(state: str, body: str) -> Module:
    """A loop over (s32, `state`), whose body is `body` with the elements as v1, v2, … and the result `out`."""
    kinds = [kind.strip() for kind in state.split(";")]
    tuple_ = f"(s32[], {', '.join(kinds)})"
    elements = "\n".join(f"  v{k} = {kind} get-tuple-element(s), index={k}" for k, kind in enumerate(kinds, 1))
    parameters = "\n".join(f"  p{k} = {kind} parameter({k - 1})" for k, kind in enumerate(kinds, 1))
    return read_here(
        f"""HloModule m, num_partitions=2

body {{
  s = {tuple_} parameter(0)
  i = s32[] get-tuple-element(s), index=0
{elements}
{body}
}}

condition {{
  c = {tuple_} parameter(0)
  j = s32[] get-tuple-element(c), index=0
  limit = s32[] constant(3)
  ROOT less = pred[] compare(j, limit), direction=LT
}}

ENTRY main {{
  zero = s32[] constant(0)
{parameters}
  start = {tuple_} tuple(zero, {", ".join(f"p{k}" for k in range(1, len(kinds) + 1))})
  ROOT w = {tuple_} while(start), condition=condition, body=body
}}
""".encode()
    )


PERMUTE = "channel_id={k}, source_target_pairs={{{{0,1}},{{1,0}}}}"


def copies(module: Module, first: list[str] | None = None) -> list[tuple[int, int]]:
    graph = body_of(module)
    return [(c.element, c.bytes) for c in loop_copies(module, graph, ordered(graph, first or []))]


def test_unchanged_and_updated_in_place() -> None:
    module = loop(
        "f32[4]; f32[4]; f32[8]",
        """
  e = f32[4] exponential(v1)
  u = f32[8] dynamic-update-slice(v3, e, i)
  ROOT out = (s32[], f32[4], f32[4], f32[8]) tuple(i, e, v2, u)
""",
    )
    assert copies(module) == []


def test_an_update_of_what_is_read_later() -> None:
    module = loop(
        "f32[8]; f32[4]; f32[4]",
        """
  u = f32[8] dynamic-update-slice(v1, v2, i)
  t = f32[4] dynamic-slice(v1, i), dynamic_slice_sizes={4}
  ROOT out = (s32[], f32[8], f32[4], f32[4]) tuple(i, u, v2, t)
""",
    )
    assert copies(module, ["t"]) == []
    assert copies(module, ["u"]) == [(1, 32)]


def test_elements_that_change_places() -> None:
    module = loop("f32[4]; f32[4]", "  ROOT out = (s32[], f32[4], f32[4]) tuple(i, v2, v1)")
    assert copies(module) == [(1, 16), (2, 16)]


def test_a_permute_of_the_element_itself() -> None:
    module = loop(
        "f32[4]; f32[4]",
        f"""
  p = f32[4] collective-permute(v1), {PERMUTE.format(k=1)}
  n = f32[4] add(v2, v1)
  ROOT out = (s32[], f32[4], f32[4]) tuple(i, p, n)
""",
    )
    assert copies(module) == [(1, 16)]


def test_two_permutes_and_the_order_of_readers() -> None:
    """The second permute writes where the first one read: the reader of the old value must have gone before."""
    module = loop(
        "f32[4]; f32[4]",
        f"""
  p = f32[4] collective-permute(v1), {PERMUTE.format(k=1)}
  q = f32[4] collective-permute(p), {PERMUTE.format(k=2)}
  n = f32[4] add(v2, v1)
  ROOT out = (s32[], f32[4], f32[4]) tuple(i, q, n)
""",
    )
    assert copies(module, ["n"]) == []
    assert copies(module, ["q"]) == [(1, 16)]


def test_asynchronous_permutes_hold_their_operand_until_done() -> None:
    module = loop(
        "f32[4]; f32[4]",
        f"""
  a = f32[4] negate(v2)
  p = (f32[4], f32[4]) collective-permute-start(v2), {PERMUTE.format(k=1)}
  d = f32[4] collective-permute-done(p)
  ROOT out = (s32[], f32[4], f32[4]) tuple(i, d, a)
""",
    )
    assert copies(module, ["d"]) == []
    assert copies(module, ["p", "a"]) == [(2, 16)]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_gone_when_unrolled_by_two(asynchronous: bool) -> None:
    """A rolled gather copies its shard every iteration; with two buffers there is nothing to copy."""
    found = {}
    for unroll in (1, 2):
        groups, devices = rings(8, "one")
        program = sized(EINSUMS["contracting"], groups, devices)
        module = module_of([program])
        editor = Editor(module)
        emit(editor, program.site(module, 0), Variant("rolled", 1 if unroll == 1 else 2))
        module = editor.finish()
        if asynchronous:
            machine = machine_for(module, load_chip("tpu-v4"))
            module = AsyncPermute().apply(module, Context(machine)).module
        graph = body_of(module)
        dots = [name for name, opcode in zip(graph.names, graph.opcodes, strict=True) if opcode == "dot"]
        starts = [n for n, o in zip(graph.names, graph.opcodes, strict=True) if o == "collective-permute-start"]
        first = [name for pair in zip(starts or dots, dots, strict=True) for name in pair]
        found[unroll] = [c.bytes for c in loop_copies(module, graph, ordered(graph, first))]
    assert found == {1: [2 * 3 * 4], 2: []}


def test_scatters_need_none() -> None:
    groups, devices = rings(8, "one")
    program = sized(EINSUMS["scatter"], groups, devices)
    module = module_of([program])
    for variant in (Variant("rolled"), Variant("rolled", 2), Variant("rolled", 2, chains="halves")):
        editor = Editor(module)
        emit(editor, program.site(module, 0), variant)
        after = editor.finish()
        assert copies(after) == [], variant


def test_updates_that_follow_each_other_in_one_fusion_work_in_place() -> None:
    text = """HloModule m
%both (buffer: f32[8,64], a: f32[2,64], b: f32[2,64], at: s32[]) -> f32[8,64] {
  %buffer = f32[8,64]{1,0} parameter(0)
  %a = f32[2,64]{1,0} parameter(1)
  %b = f32[2,64]{1,0} parameter(2)
  %at = s32[] parameter(3)
  %zero = s32[] constant(0)
  %first = f32[8,64]{1,0} dynamic-update-slice(%buffer, %a, %at, %zero)
  ROOT %second = f32[8,64]{1,0} dynamic-update-slice(%first, %b, %zero, %zero)
}
ENTRY %main (buffer: f32[8,64], a: f32[2,64], b: f32[2,64], at: s32[]) -> f32[8,64] {
  %buffer = f32[8,64]{1,0} parameter(0)
  %a = f32[2,64]{1,0} parameter(1)
  %b = f32[2,64]{1,0} parameter(2)
  %at = s32[] parameter(3)
  ROOT %fused = f32[8,64]{1,0} fusion(%buffer, %a, %b, %at), kind=kLoop, calls=%both
}
"""
    module = read_here(text.encode())
    (fused,) = module.entry.instructions[-1].called_computation_ids
    assert aliasing.updated_in_place(module.computations[fused]) == {(): 0}


@pytest.mark.parametrize("opcode", ["acosh", "cosh", "erf", "popcnt", "real"])
def test_elementwise_results_are_written_over_their_operand(opcode: str) -> None:
    kind = "s32[4]" if opcode == "popcnt" else "f32[4]"
    module = loop(kind, f"  e = {kind} {opcode}(v1)\n  f = {kind} negate(e)\n  ROOT out = (s32[], {kind}) tuple(i, e)")
    assert copies(module) == []


def test_a_reversal_is_not_written_over_its_operand() -> None:
    module = loop("f32[4]", "  e = f32[4] reverse(v1), dimensions={0}\n  ROOT out = (s32[], f32[4]) tuple(i, e)")
    assert copies(module) == [(1, 16)]
