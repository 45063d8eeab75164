"""A module's instructions get their kinds, times, loads and origins; imports replace what they name."""

from __future__ import annotations

import gzip
import time

import numpy as np
import pytest

from engine.chips.budget import Kind
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.costs import Origin
from engine.cost.imports import ImportedCosts
from engine.cost.pricing import Pricing
from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.hlo.reading import read_here
from engine.ir.graphs import graphs_of
from engine.ir.module import Module
from tests.places import ROOT

TEXT = b"""HloModule m, num_partitions=8

body {
  state = (s32[], bf16[1024,1024]{1,0}, bf16[1024,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  shard = bf16[1024,1024]{1,0} get-tuple-element(state), index=1
  sum = bf16[1024,1024]{1,0} get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  start = (bf16[1024,1024]{1,0}, bf16[1024,1024]{1,0}) collective-permute-start(shard), channel_id=1,
    source_target_pairs={{0,7},{1,0},{2,1},{3,2},{4,3},{5,4},{6,5},{7,6}}
  product = bf16[1024,1024]{1,0} dot(shard, shard), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  total = bf16[1024,1024]{1,0} add(sum, product)
  done = bf16[1024,1024]{1,0} collective-permute-done(start)
  ROOT out = (s32[], bf16[1024,1024]{1,0}, bf16[1024,1024]{1,0}) tuple(next, done, total)
}

condition {
  state = (s32[], bf16[1024,1024]{1,0}, bf16[1024,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(8)
  ROOT less = pred[] compare(i, limit), direction=LT
}

ENTRY main {
  x = bf16[1024,1024]{1,0} parameter(0)
  zero = s32[] constant(0)
  gathered = bf16[8192,1024]{1,0} all-gather(x), channel_id=2, replica_groups=[1,8]<=[8], dimensions={0},
    use_global_device_ids=true
  init = (s32[], bf16[1024,1024]{1,0}, bf16[1024,1024]{1,0}) tuple(zero, x, x)
  loop = (s32[], bf16[1024,1024]{1,0}, bf16[1024,1024]{1,0}) while(init), condition=condition, body=body
  result = bf16[1024,1024]{1,0} get-tuple-element(loop), index=2
  ROOT both = (bf16[8192,1024]{1,0}, bf16[1024,1024]{1,0}) tuple(gathered, result)
}
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return read_here(TEXT)


def program(module: Module, *imports: ImportedCosts, chip: str = "tpu-v4", estimates: bool = True) -> Program:
    return prepare(module, machine_for(module, load_chip(chip)), imports, estimates=estimates)


def row(found: Program, name: str) -> dict[str, int]:
    """All of an instruction's columns."""
    for id_, graph in found.graphs.items():
        if name in graph.names:
            node, costs = graph.names.index(name), found.costs[id_]
            columns = ("compute", "transfer", "kind", "flops", "hbm_bytes", "origin")
            loads = costs.load_start[node + 1] - costs.load_start[node]
            return {column: int(getattr(costs, column)[node]) for column in columns} | {"loads": int(loads)}
    raise KeyError(name)


def test_kinds_times_and_loads(module: Module) -> None:
    found = program(module)
    assert [graph.name for graph in found.graphs.values()][-1] == "main"
    start, done = row(found, "start"), row(found, "done")
    assert start["kind"] == done["kind"] == Kind.PERMUTE
    assert start["transfer"] > 2 * 1024 * 1024 / 50e9 * 1e12
    assert start["loads"] > 0
    assert (done["transfer"], done["compute"], start["compute"]) == (0, 0, 0)
    gather = row(found, "gathered")
    assert (gather["kind"], gather["origin"]) == (Kind.ALL_GATHER, Origin.MODEL)
    assert gather["hbm_bytes"] == 9 * 2 * 1024 * 1024
    product = row(found, "product")
    assert product["flops"] == 2 * 1024**3
    assert product["compute"] >= 2 * 1024**3 / 275e12 * 1e12
    assert product["hbm_bytes"] == 3 * 2 * 1024 * 1024
    for name in ("x", "zero", "init", "result", "loop"):
        assert row(found, name)["origin"] == Origin.NONE
        assert row(found, name)["compute"] == 0
    assert found.trips == {module.by_name["loop"].id: 8}


def test_columns_are_read_only_and_of_the_graphs_length(module: Module) -> None:
    found = program(module)
    for id_, graph in found.graphs.items():
        costs = found.costs[id_]
        assert len(costs.load_start) == len(graph) + 1
        assert len(costs.load_link) == len(costs.load_bytes) == costs.load_start[-1]
        for column in (costs.compute, costs.transfer, costs.kind, costs.origin, costs.flops):
            assert len(column) == len(graph)
            assert not column.flags.writeable


def test_a_table_replaces_what_it_names(module: Module) -> None:
    table = ImportedCosts("mine.csv", Origin.TABLE, {"product": 5, "start": 7, "gathered": 9, "done": 11})
    found = program(module, table)
    assert (row(found, "product")["compute"], row(found, "product")["origin"]) == (5, Origin.TABLE)
    assert (row(found, "start")["transfer"], row(found, "start")["compute"]) == (7, 0)
    assert row(found, "gathered")["transfer"] == 9
    assert (row(found, "done")["transfer"], row(found, "done")["compute"]) == (0, 0)
    assert row(found, "total")["origin"] == Origin.MODEL


def test_the_compilers_schedule_keeps_transfers(module: Module) -> None:
    schedule = ImportedCosts("s.txt", Origin.COMPILER, {"product": 5, "start": 7, "done": 3, "x": 1}, on_stream=True)
    found = program(module, schedule)
    assert row(found, "start")["compute"] == 7
    assert row(found, "start")["transfer"] == row(program(module), "start")["transfer"]
    assert row(found, "done")["compute"] == 3
    assert row(found, "x")["compute"] == 1


def test_higher_origins_and_later_files_win(module: Module) -> None:
    table = ImportedCosts("t", Origin.TABLE, {"product": 1})
    measured = ImportedCosts("m", Origin.MEASURED, {"product": 2, "total": 2})
    later = ImportedCosts("l", Origin.MEASURED, {"total": 3})
    found = program(module, table, measured, later)
    assert row(found, "product")["compute"] == 1
    assert row(found, "total")["compute"] == 3


def test_names_that_do_not_match_are_listed(module: Module) -> None:
    names = {f"other.{k:02}": 1 for k in range(25)}
    table = ImportedCosts("mine.csv", Origin.TABLE, {**names, "loop": 3, "product": 1})
    assert table.unmatched(module) == tuple(sorted(names))
    notes = program(module, table).notes
    assert "Times of 1 instruction are given: mine.csv." in notes
    assert any("25 names match no instruction: other.00, other.01" in n and "and 5 more" in n for n in notes)
    assert any("1 names are loops, calls or conditionals" in n and "loop" in n for n in notes)


def test_the_compilers_estimates_come_first() -> None:
    path = "tests/data/tpu-compiler/a_v4-2x2x2_1d_1x8_d4096_L2_scan_off.hlo.gz"
    module = read_here(gzip.decompress((ROOT / path).read_bytes()), path)
    with_, without = program(module), program(module, estimates=False)
    counts = [
        sum(int(np.count_nonzero(costs.origin == Origin.COMPILER)) for costs in found.costs.values())
        for found in (with_, without)
    ]
    assert counts[0] > 80
    assert counts[1] == 0
    assert any("estimated_cycles at 1050 MHz" in note for note in with_.notes)
    assert not any("estimated_cycles" in note for note in program(module, chip="h100").notes)
    assert row(with_, "fusion.336")["compute"] == pytest.approx(4946e6, rel=1e-3)


BRANCHES = b"""HloModule m

yes {
  a = f32[8]{0} parameter(0)
  ROOT s = f32[8]{0} sine(a)
}

no {
  b = f32[8]{0} parameter(0)
  ROOT n = f32[8]{0} negate(b)
}

ENTRY main {
  p = pred[] parameter(0)
  x = f32[8]{0} parameter(1)
  ROOT c = f32[8]{0} conditional(p, x, x), true_computation=yes, false_computation=no
}
"""


def test_branches_without_weights_are_said() -> None:
    found = program(read_here(BRANCHES))
    assert "Branches are taken to be equally likely: c." in found.notes
    assert not found.weights


def test_branch_weights_come_from_a_table_or_a_profile() -> None:
    module = read_here(BRANCHES)
    id_ = module.by_name["c"].id
    profile = ImportedCosts("x.pb", Origin.MEASURED, {"s": 5}, counts={"s": 30, "n": 10})
    table = ImportedCosts("mine.toml", Origin.TABLE, {}, branches={"c": (1, 0), "d": (1, 1)})
    wrong = ImportedCosts("wrong.toml", Origin.TABLE, {}, branches={"c": (1, 2, 3)})
    assert program(module, profile).weights == {id_: (30, 10)}
    assert program(module, table, profile).weights == {id_: (1, 0)}
    assert table.unmatched(module) == ("d",)
    notes = program(module, wrong).notes
    assert "wrong.toml: c has 2 branches, but 3 weights came: not used." in notes
    assert "Branches are taken to be equally likely: c." in notes


def test_asynchronous_copies_stay_on_their_device() -> None:
    module = read_here(
        b"""HloModule m, is_scheduled=true

ENTRY main {
  x = f32[1048576]{0} parameter(0)
  s = (f32[1048576]{0:S(1)}, f32[1048576]{0}, u32[]{:S(2)}) copy-start(x)
  ROOT d = f32[1048576]{0:S(1)} copy-done(s)
}
"""
    )
    found = row(program(module), "s")
    assert found["kind"] == Kind.COPY
    assert found["loads"] == 0
    assert found["hbm_bytes"] == 4 << 20
    assert found["transfer"] == pytest.approx((4 << 20) / (1228e9 * 0.62) * 1e12, rel=1e-6)


def test_copies_to_the_host_go_at_its_rate() -> None:
    module = read_here(
        b"""HloModule m, is_scheduled=true

ENTRY main {
  x = f32[1048576]{0} parameter(0)
  s = (f32[1048576]{0:S(5)}, f32[1048576]{0}, u32[]{:S(2)}) copy-start(x)
  ROOT d = f32[1048576]{0:S(5)} copy-done(s)
}
"""
    )
    found = program(module)
    assert row(found, "s")["transfer"] == pytest.approx((4 << 20) / found.machine.chip.host_bandwidth * 1e12, rel=1e-6)


def test_asynchronous_updates_of_the_hosts_memory_move_the_update() -> None:
    module = read_here(
        b"""HloModule m, is_scheduled=true

wrapped {
  p = f32[4,1048576]{1,0:S(5)} parameter(0)
  u = f32[1,1048576]{1,0} parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT r = f32[4,1048576]{1,0:S(5)} dynamic-update-slice(p, u, i, j)
}

ENTRY main {
  x = f32[4,1048576]{1,0:S(5)} parameter(0)
  y = f32[1,1048576]{1,0} parameter(1)
  k = s32[] parameter(2)
  s = ((f32[4,1048576]{1,0:S(5)}, f32[1,1048576]{1,0}, s32[], s32[]), f32[4,1048576]{1,0:S(5)}, u32[])
    async-start(x, y, k, k), calls=wrapped
  ROOT d = f32[4,1048576]{1,0:S(5)} async-done(s), calls=wrapped
}
"""
    )
    found = program(module)
    assert row(found, "s")["kind"] == Kind.COPY
    assert row(found, "s")["transfer"] == pytest.approx((4 << 20) / found.machine.chip.host_bandwidth * 1e12, rel=1e-6)


def test_generic_asynchronous_collectives_are_priced_as_what_they_wrap() -> None:
    module = read_here(
        b"""HloModule m, num_partitions=8

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

wrapped {
  p = f32[8192]{0} parameter(0)
  ROOT r = f32[1024]{0} reduce-scatter(p), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0},
    use_global_device_ids=true, to_apply=sum
}

ENTRY main {
  x = f32[8192]{0} parameter(0)
  blocking = f32[1024]{0} reduce-scatter(x), channel_id=2, replica_groups=[1,8]<=[8], dimensions={0},
    use_global_device_ids=true, to_apply=sum
  s = ((f32[8192]{0}), f32[1024]{0}, s32[]) async-start(x), calls=wrapped
  d = f32[1024]{0} async-done(s), calls=wrapped
  ROOT t = (f32[1024]{0}, f32[1024]{0}) tuple(d, blocking)
}
"""
    )
    found = program(module)
    assert row(found, "s")["kind"] == row(found, "d")["kind"] == Kind.REDUCE_SCATTER
    assert row(found, "s")["transfer"] == row(found, "blocking")["transfer"] > 0


def test_pricing_takes_microseconds_an_instruction() -> None:
    """20,000 instructions in half a second at most: about five times what they take on an idle machine."""
    first = [f"  v{k} = f32[{64 + k},128]{{1,0}} parameter({k})" for k in range(50)]
    lines = [f"  v{k} = f32[{64 + k % 50},128]{{1,0}} negate(v{k - 50})" for k in range(50, 20_000)]
    text = "\n".join(["HloModule big", "", "ENTRY main {", *first, *lines, "  ROOT r = () tuple()", "}"])
    big = read_here(text.encode())
    graphs, machine = graphs_of(big), machine_for(big, load_chip("tpu-v4"))
    start = time.process_time()
    pricing = Pricing(big, machine)
    counts = [len(pricing.costs(graph).compute) for graph in graphs.values()]
    assert time.process_time() - start < 0.5
    assert counts == [20_001]
