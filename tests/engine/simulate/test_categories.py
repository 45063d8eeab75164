"""What instructions are drawn as, and on which lane."""

from __future__ import annotations

import pytest

from engine.chips.budget import Kind
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.programs import prepare
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.hlo.reading import read_here
from engine.ir.module import Header, Module
from engine.simulate.categories import compute_categories, content_of, transfer_category, transfer_lane
from engine.simulate.work import work_of
from engine.timeline.timeline import Category
from tests.engine.simulate.synthetic import Sketch, assemble

TEXT = """HloModule kinds, num_partitions=2

einsum {
  a = bf16[128,128] parameter(0)
  b = f32[128,128] parameter(1)
  d = bf16[128,128] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[128,128] convert(d)
  ROOT e = f32[128,128] add(c, b)
}

move {
  a = bf16[128,128] parameter(0)
  t = bf16[128,128] transpose(a), dimensions={1,0}
  ROOT b = bf16[128,128] bitcast(t)
}

element {
  a = bf16[128,128] parameter(0)
  ROOT b = bf16[128,128] add(a, a)
}

ENTRY main {
  a = bf16[128,128] parameter(0)
  b = f32[128,128] parameter(1)
  einsum = f32[128,128] fusion(a, b), kind=kOutput, calls=einsum
  move = bf16[128,128] fusion(a), kind=kLoop, calls=move
  element = bf16[128,128] fusion(a), kind=kLoop, calls=element
  copy = bf16[128,128] copy(a)
  gemm = bf16[128,128] custom-call(a, a), custom_call_target="__cublas$gemm"
  other = bf16[128,128] custom-call(a), custom_call_target="Sharding"
  dot = bf16[128,128] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT out = (f32[128,128], bf16[128,128]) tuple(einsum, move)
}
"""


def test_categories_look_into_fusions() -> None:
    module = read_here(TEXT.encode())
    program = prepare(module, machine_for(module, load_chip("tpu-v4")))
    (graph,) = program.graphs.values()
    found = dict(zip(graph.names, compute_categories(module, graph).tolist(), strict=True))
    assert {name: Category(found[name]) for name in ("einsum", "move", "element", "copy", "gemm", "other", "dot")} == {
        "einsum": Category.EINSUM,
        "move": Category.COPY,
        "element": Category.ELEMENTWISE,
        "copy": Category.COPY,
        "gemm": Category.EINSUM,
        "other": Category.ELEMENTWISE,
        "dot": Category.EINSUM,
    }
    fusion = module.by_name["einsum"]
    assert content_of(module, fusion.called_computation_ids[0]).dtype == "bf16"


@pytest.mark.parametrize(
    ("kind", "category"),
    [(Kind.PERMUTE, Category.PERMUTE), (Kind.COPY, Category.COPY), (Kind.ALL_GATHER, Category.COLLECTIVE)],
)
def test_transfers_are_drawn_by_their_kind(kind: Kind, category: Category) -> None:
    assert transfer_category(kind) == category


@pytest.mark.parametrize(
    ("chip", "loads", "permute", "gather"),
    [
        ("tpu-v4", {0: 10_000_000, 3: 20_000_000}, "ICI y-", "all-gather x y"),
        ("tpu-v4", {}, "permute", "all-gather"),
        ("h100", {0: 20_000_000, 1: 10_000_000}, "NVLink out", "all-gather NVLink"),
    ],
)
def test_lanes_are_link_directions_for_permutes_and_axes_for_others(
    chip: str, loads: dict[int, int], permute: str, gather: str
) -> None:
    machine = machine_for(Module(HloModuleProto(name="none"), Header(num_partitions=8)), load_chip(chip))
    sketch = Sketch()
    start = sketch.start(1_000_000_000, loads=loads)
    sketch.done(start)
    blocking = sketch.collective(1_000_000_000, loads=loads)
    work = work_of(assemble([sketch], machine), 0)
    links = tuple(link.name for link in machine.links)
    assert transfer_lane(work, start, links) == permute
    assert transfer_lane(work, blocking, links) == gather
