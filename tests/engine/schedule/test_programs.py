"""Whole programs: callees before callers, what the simulator makes of it, and explanations."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
import pytest

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.control import Control
from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.cost.scheduled_module import read_scheduled_module
from engine.errors import UsageError
from engine.hlo.reading import read_here
from engine.passes.candidate import Candidate
from engine.passes.passes import Context
from engine.passes.pipeline import Pipeline
from engine.schedule.as_loaded import AsLoaded
from engine.schedule.bottom_up import BottomUp
from engine.schedule.errors import Infeasible
from engine.schedule.explaining import explain
from engine.schedule.exposure import Cause
from engine.schedule.instance import Instance
from engine.schedule.measure import broken_rule, in_flight, makespan, peak_memory
from engine.schedule.problem import Hint, Order, Problem, Schedule
from engine.schedule.programs import problem_of, schedule_program
from engine.schedule.registry import parse_scheduler
from engine.schedule.sharing import shared_makespan
from engine.simulate.replay import price
from engine.simulate.simulator import SimulationOptions, simulate_computations
from tests.places import COMPILED, PARTITIONED

PERMUTE = "channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}"
DIMENSIONS = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
ALONE = SimulationOptions(sharing=False)


@cache
def program_of(name: str, passes: str = "decompose{gate=off},async-permute") -> Program:
    path = PARTITIONED / name
    module = read_here(path.read_bytes(), name)
    machine = machine_for(module, load_chip("tpu-v4"))
    return prepare(Pipeline.parse(passes).run(module, Context(machine)).module, machine)


def from_text(text: str) -> Program:
    module = read_here(text.encode(), "test.hlo")
    return prepare(module, machine_for(module, load_chip("tpu-v4")))


def scheduled(program: Program, scheduler: str = "bottom-up", budget: int = 4, cap: int | None = None) -> Schedule:
    return schedule_program(program, parse_scheduler(scheduler), Budget(budget), memory_cap=cap)


LARGE = "we_v4-4x4x4_2d_8x8_d8192_L2_scan.hlo.gz"
MODULES = ("mlp_fig3.hlo", "mlp_mega.hlo", LARGE)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("scheduler", ["memory", "bottom-up", "top-down"])
def test_our_measures_are_the_simulators(name: str, scheduler: str) -> None:
    program = program_of(name)
    schedule = schedule_program(program, parse_scheduler(scheduler), Budget(4), sharing=False)
    runs = simulate_computations(program, schedule, ALONE)
    for computation, run in runs.items():
        problem = problem_of(program, computation, runs, Budget(4))
        order = schedule.orders[computation].nodes
        assert makespan(Instance.of(problem), order.tolist()) == run.makespan
        assert int(in_flight(problem, order)[1].max(initial=0)) == run.in_flight <= 4
        assert peak_memory(problem, order) == run.peak
        assert broken_rule(problem, order) is None


def test_even_sharing_of_links_is_close_to_the_simulators_fair_one() -> None:
    program = program_of(LARGE)
    schedule = scheduled(program)
    runs = simulate_computations(program, schedule)
    for computation, run in runs.items():
        problem = problem_of(program, computation, runs, Budget(4))
        assert problem.loads is not None
        order = schedule.orders[computation].nodes.tolist()
        shared = shared_makespan(Instance.of(problem), order, problem.loads)
        assert makespan(Instance.of(problem), order) <= shared <= run.makespan * 1.05


def test_bottom_up_hides_most_of_what_the_memory_order_exposes() -> None:
    program = program_of(LARGE)
    exposed = {}
    for scheduler in ("memory", "bottom-up", "top-down"):
        runs = simulate_computations(program, scheduled(program, scheduler))
        exposed[scheduler] = list(runs.values())[-1].totals.exposed
    assert exposed["bottom-up"] < exposed["top-down"] < exposed["memory"] / 2


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("scheduler", ["bottom-up", "top-down"])
def test_the_cap_holds_for_the_whole_program(name: str, scheduler: str) -> None:
    program = program_of(name)
    small = list(simulate_computations(program, scheduled(program, "memory")).values())[-1]
    cap = int(small.peak * 1.05)
    run = list(simulate_computations(program, scheduled(program, scheduler, cap=cap)).values())[-1]
    free = list(simulate_computations(program, scheduled(program, scheduler)).values())[-1]
    assert run.peak <= cap
    assert small.makespan - run.makespan >= (small.makespan - free.makespan) / 2
    with pytest.raises(Infeasible, match="the least peak found is"):
        scheduled(program, scheduler, cap=small.peak // 4)


BODY = """
NAME {
  s = (f32[64], s32[]) parameter(0)
  x = f32[64] get-tuple-element(s), index=0
  i = s32[] get-tuple-element(s), index=1
  y = f32[64] negate(x)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (f32[64], s32[]) tuple(y, j)
}
"""

TWO_LOOPS = """
condition {
  s = (f32[64], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=1
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[64] parameter(0)
  zero = s32[] constant(0)
  t = (f32[64], s32[]) tuple(x, zero)
  a = (f32[64], s32[]) while(t), condition=condition, body=first
  ROOT b = (f32[64], s32[]) while(a), condition=condition, body=second
}
"""


def test_computations_that_are_alike_are_scheduled_once() -> None:
    bodies = BODY.replace("NAME", "first") + BODY.replace("NAME", "second")
    program = from_text("HloModule test\n" + bodies + TWO_LOOPS)
    orders = scheduled(program).orders
    first, second = (orders[c] for c, graph in program.graphs.items() if graph.name in ("first", "second"))
    assert first is second


HINTED = """
HloModule test, num_partitions=4

ENTRY main {
  x = f32[512,512] parameter(0)
  s = (f32[512,512], f32[512,512]) collective-permute-start(x), channel_id=1, source_target_pairs={{0,1},{1,0}}
  d = f32[512,512] collective-permute-done(s)
  a = f32[512,512] dot(x, x), DIMENSIONS, frontend_attributes={_scheduling_group_id="7"}
  b = f32[512,512] negate(x), frontend_attributes={_scheduling_group_id="7"}
  c = f32[512,512] exponential(x), frontend_attributes={scheduler_hint="force_delay",scheduler_delay_priority="3"}
  e = f32[512,512] add(a, b)
  ROOT r = (f32[512,512], f32[512,512], f32[512,512]) tuple(d, e, c)
}
"""


def test_groups_and_hints_come_from_frontend_attributes() -> None:
    program = from_text(HINTED.replace("DIMENSIONS", DIMENSIONS))
    (computation,) = program.graphs
    problem = problem_of(program, computation, {}, Budget(4))
    names = list(program.graphs[computation].names)
    assert problem.group is not None
    assert problem.group[names.index("a")] == problem.group[names.index("b")] >= 0
    assert problem.group[names.index("c")] == -1
    assert problem.hints is not None
    assert problem.hints.flags[names.index("c")] == Hint.EARLY
    assert problem.hints.priority[names.index("c")] == 3
    for scheduler in ("memory", "bottom-up", "top-down"):
        place = np.argsort(scheduled(program, scheduler).orders[computation].nodes)
        assert abs(int(place[names.index("a")]) - int(place[names.index("b")])) == 1
    order = scheduled(program).orders[computation].nodes.tolist()
    assert order.index(names.index("c")) < order.index(names.index("a"))


def module(body: str, before: str = "") -> Program:
    """A module of four partitions whose entry computation is `body`."""
    text = f"HloModule test, num_partitions=4\n{before}\nENTRY main {{\n{body}\n}}\n"
    text = text.replace("PERMUTE", PERMUTE).replace("DIMENSIONS", DIMENSIONS)
    return from_text(text.replace("GLOBAL", "use_global_device_ids=true"))


def causes(program: Program, schedule: Schedule, name: str, candidates: tuple[Candidate, ...] = ()) -> dict[Cause, str]:
    found = explain(program, schedule, name, candidates=candidates)
    assert str(found) == "\n\n".join(reason.text for reason in found.reasons)
    return {reason.cause: reason.text for reason in found.reasons}


CHAIN = """  x = bf16[4096,4096] parameter(0)
  a = bf16[4096,4096] dot(x, x), DIMENSIONS
  s = (bf16[4096,4096], bf16[4096,4096]) collective-permute-start(a), PERMUTE
  d = bf16[4096,4096] collective-permute-done(s)
  ROOT b = bf16[4096,4096] dot(d, x), DIMENSIONS"""

HIDDEN = """  x = bf16[4096,4096] parameter(0)
  y = bf16[16384,4096] parameter(1)
  a = bf16[4096,4096] dot(x, x), DIMENSIONS
  s = (bf16[4096,4096], bf16[4096,4096]) collective-permute-start(a), PERMUTE
  d = bf16[4096,4096] collective-permute-done(s)
  b = bf16[4096,4096] dot(d, x), DIMENSIONS
  big = bf16[16384,4096] dot(y, x), DIMENSIONS
  ROOT t = (bf16[4096,4096], bf16[16384,4096]) tuple(b, big)"""

BUSY = """  x = bf16[4096,4096] parameter(0)
  first = (bf16[4096,4096], bf16[4096,4096]) collective-permute-start(x), PERMUTE
  a = bf16[4096,4096] dot(x, x), DIMENSIONS
  arrived = bf16[4096,4096] collective-permute-done(first)
  second = (bf16[4096,4096], bf16[4096,4096]) collective-permute-start(x), PERMUTE
  d = bf16[4096,4096] collective-permute-done(second)
  ROOT t = (bf16[4096,4096], bf16[4096,4096], bf16[4096,4096]) tuple(a, arrived, d)"""


def test_a_chain_is_exposed_for_want_of_independent_compute() -> None:
    program = module(CHAIN)
    found = causes(program, scheduled(program), "d")
    assert "There is no compute in main" in found[Cause.NO_INDEPENDENT_COMPUTE]
    assert "It lies on the longest chain" in found[Cause.DEPENDENCY]
    assert "(a)" in found[Cause.DEPENDENCY]
    assert causes(program, scheduled(program), "s").keys() >= {Cause.NO_INDEPENDENT_COMPUTE, Cause.DEPENDENCY}
    assert explain(program, scheduled(program), "d").exposed > 0
    assert "The scheduler's rule" in found[Cause.DECISION]


def test_a_hidden_transfer_is_said_to_be() -> None:
    program = module(HIDDEN)
    text = str(explain(program, scheduled(program), "d"))
    assert "Its transfer is hidden: nothing waits at d." in text


def test_the_budget_is_named_with_what_holds_it() -> None:
    program = module(BUSY)
    found = causes(program, scheduled(program, "as-loaded", 1), "d")
    assert "The budget 1 keeps second from starting earlier" in found[Cause.BUDGET]
    assert "first is in flight there" in found[Cause.BUDGET]
    assert Cause.BUDGET not in causes(program, scheduled(program, "as-loaded", 2), "d")


def test_compute_that_runs_elsewhere_is_named() -> None:
    program = module(HIDDEN)
    found = causes(program, scheduled(program, "memory"), "d")
    assert "big" in found[Cause.ELSEWHERE]


def test_a_memory_cap_that_leaves_no_room_is_named() -> None:
    program = module(BUSY)
    loaded = scheduled(program, "as-loaded", 2)
    run = list(simulate_computations(program, loaded).values())[-1]
    capped = replace(loaded, memory_caps={run.computation: 112 << 20})
    found = causes(program, capped, "d")
    assert "The memory cap of 112 MiB leaves no room for its 32.0 MiB" in found[Cause.MEMORY_CAP]
    assert "96.0 MiB are live at" in found[Cause.MEMORY_CAP]


def test_what_a_callee_needs_counts_for_the_memory_cap() -> None:
    program = module(
        """  x = bf16[4096,4096] parameter(0)
  c = bf16[4096,4096] call(x), to_apply=inner
  s = (bf16[4096,4096], bf16[4096,4096]) collective-permute-start(x), PERMUTE
  d = bf16[4096,4096] collective-permute-done(s)
  ROOT t = (bf16[4096,4096], bf16[4096,4096]) tuple(c, d)""",
        before="""
inner {
  p = bf16[4096,4096] parameter(0)
  a = bf16[4096,4096] dot(p, p), DIMENSIONS
  b = bf16[4096,4096] dot(p, p), DIMENSIONS
  ROOT e = bf16[4096,4096] dot(a, b), DIMENSIONS
}
""",
    )
    loaded = scheduled(program, "as-loaded")
    run = list(simulate_computations(program, loaded).values())[-1]
    capped = replace(loaded, memory_caps={run.computation: run.peak})
    assert "128 MiB are live at c." in causes(program, capped, "d")[Cause.MEMORY_CAP]


def test_a_fusion_that_waits_with_its_einsum_is_named() -> None:
    program = module(
        """  x = bf16[4096,4096] parameter(0)
  s = (bf16[4096,4096], bf16[4096,4096]) collective-permute-start(x), PERMUTE
  d = bf16[4096,4096] collective-permute-done(s)
  ROOT f = bf16[4096,4096] fusion(x, d), kind=kOutput, calls=einsum_and_add""",
        before="""
einsum_and_add {
  p = bf16[4096,4096] parameter(0)
  q = bf16[4096,4096] parameter(1)
  einsum = bf16[4096,4096] dot(p, p), DIMENSIONS
  ROOT sum = bf16[4096,4096] add(einsum, q)
}
""",
    )
    schedule = scheduled(program)
    assert "f reads what arrives, and holds einsum" in causes(program, schedule, "d")[Cause.FUSION]
    inside = causes(program, schedule, "einsum")
    assert inside[Cause.PLACE]
    assert "einsum is part of f, which runs as one." in str(explain(program, schedule, "einsum"))


def test_a_blocking_collective_and_its_verdict() -> None:
    program = module(
        """  x = bf16[4096,4096] parameter(0)
  g = bf16[16384,4096] all-gather(x), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, GLOBAL
  ROOT y = bf16[16384,4096] negate(g)"""
    )
    verdict = Candidate(
        id="g",
        kind="other",
        collective=program.module.by_name["g"].id,
        einsums=(),
        group_size=4,
        case=None,
        chosen=False,
        reason="no einsum reads the result",
    )
    found = causes(program, scheduled(program), "g", (verdict,))
    assert "It is blocking" in found[Cause.BLOCKING]
    assert found[Cause.GATE] == "g was not decomposed: no einsum reads the result."


def test_a_name_that_is_not_there_is_refused_with_those_like_it() -> None:
    program = module(CHAIN)
    with pytest.raises(UsageError, match="has no instruction called 'dd'"):
        explain(program, scheduled(program), "dd")
    with pytest.raises(UsageError, match="no instruction with id 12345"):
        explain(program, scheduled(program), 12345)
    assert explain(program, scheduled(program), "%a").name == "a"


ACROSS = """
HloModule test, num_partitions=4

body {
  s = (f32[4096,4096], f32[4096,4096], s32[]) parameter(0)
  x = f32[4096,4096] get-tuple-element(s), index=0
  y = f32[4096,4096] get-tuple-element(s), index=1
  i = s32[] get-tuple-element(s), index=2
  p = (f32[4096,4096], f32[4096,4096]) collective-permute-start(x), PERMUTE
  q = (f32[4096,4096], f32[4096,4096]) collective-permute-start(y), PERMUTE
  px = f32[4096,4096] collective-permute-done(p)
  qy = f32[4096,4096] collective-permute-done(q)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (f32[4096,4096], f32[4096,4096], s32[]) tuple(px, qy, j)
}

condition {
  s = (f32[4096,4096], f32[4096,4096], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=2
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[4096,4096] parameter(0)
  y = f32[4096,4096] parameter(1)
  zero = s32[] constant(0)
  t = (f32[4096,4096], f32[4096,4096], s32[]) tuple(x, y, zero)
  s = (f32[4096,4096], f32[4096,4096]) collective-permute-start(x), PERMUTE
  l = (f32[4096,4096], f32[4096,4096], s32[]) while(t), condition=condition, body=body, control-predecessors={s}
  d = f32[4096,4096] collective-permute-done(s), control-predecessors={l}
  ROOT r = ((f32[4096,4096], f32[4096,4096], s32[]), f32[4096,4096]) tuple(l, d)
}
""".replace("PERMUTE", PERMUTE)


def test_a_callee_leaves_room_for_what_must_be_in_flight_across_it() -> None:
    program = from_text(ACROSS)
    body = next(c for c, graph in program.graphs.items() if graph.name == "body")
    for scheduler in ("bottom-up", "top-down", "memory"):
        for budget, inside in ((3, 2), (2, 1)):
            runs = simulate_computations(program, scheduled(program, scheduler, budget))
            assert runs[body].in_flight <= inside
            assert list(runs.values())[-1].in_flight <= budget
        with pytest.raises(Infeasible, match="the smallest budget that an order fits is 2"):
            scheduled(program, scheduler, 1)


def test_an_order_is_never_worse_than_the_compilers() -> None:
    path = COMPILED / "we_v4-4x4x4_2d_8x8_d8192_L2_scan_default.schedule.txt.gz"
    predicted = read_scheduled_module(gzip.decompress(path.read_bytes()).decode(), path.name)
    program = price(predicted, machine_for(predicted.module, load_chip("tpu-v4")))
    runs = {
        name: simulate_computations(
            program, schedule_program(program, parse_scheduler(name), Budget(4), sharing=False), ALONE
        )
        for name in ("as-loaded", "bottom-up", "top-down")
    }
    for computation in program.graphs:
        ours = min(runs[name][computation].makespan for name in ("bottom-up", "top-down"))
        assert ours <= runs["as-loaded"][computation].makespan, program.graphs[computation].name


OVERWRITTEN = """
HloModule test, is_scheduled=true, num_partitions=4

ENTRY main {
  x = f32[256,4096] parameter(0)
  i = s32[] parameter(1)
  y = f32[4096,4096] parameter(2)
  z = f32[4096,4096] negate(y)
  s = (f32[4096,4096], f32[4096,4096]) collective-permute-start(z), PERMUTE
  d = f32[4096,4096] collective-permute-done(s)
  u = f32[4096,4096] dynamic-update-slice(z, x, i, i)
  a = f32[4096,4096] dot(y, y), DIMENSIONS
  ROOT w = (f32[4096,4096], f32[4096,4096], f32[4096,4096]) tuple(d, u, a)
}
""".replace("PERMUTE", PERMUTE).replace("DIMENSIONS", DIMENSIONS)


@pytest.mark.parametrize("scheduler", ["memory", "bottom-up", "top-down", "improve{seconds=0.1}", "exact"])
def test_nothing_overwrites_what_a_transfer_in_flight_reads(scheduler: str) -> None:
    program = from_text(OVERWRITTEN)
    (graph,) = program.graphs.values()
    order = [graph.names[k] for k in scheduled(program, scheduler).orders[graph.computation].nodes.tolist()]
    assert order.index("d") < order.index("u"), "u writes into the buffer of z, which s sends until d"


@dataclass(frozen=True)
class Waiting:
    """Puts every done right behind its start: valid, and hides nothing."""

    name: ClassVar[str] = "waiting"

    def schedule(self, problem: Problem, control: Control) -> Order:
        loaded = AsLoaded().schedule(problem, control).nodes.tolist()
        graph = problem.graph
        pairs = [pair for n in loaded if graph.is_start(n) for pair in (n, int(graph.partner[n]))]
        first = [n for n in loaded if graph.opcodes[n] == "parameter"] + pairs
        return Order(np.array([*first, *(n for n in loaded if n not in first)], np.int64))


SQUARE = "bf16[1024,1024]{1,0}"
CARRIED = """HloModule m, num_partitions=2, is_scheduled=true

ENTRY e {
  p = bf16[1024,1024]{1,0} parameter(0)
  start = (bf16[1024,1024]{1,0}, bf16[1024,1024]{1,0}) collective-permute-start(p), channel_id=1, source_target_pairs={{0,1},{1,0}}
  y = bf16[1024,1024]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  done = bf16[1024,1024]{1,0} collective-permute-done(start)
  ROOT out = (bf16[1024,1024]{1,0}, bf16[1024,1024]{1,0}) tuple(y, done)
}
"""  # noqa: E501  # one instruction a line, as HLO is printed


def test_an_order_that_a_module_carries_is_kept_where_the_schedulers_is_slower() -> None:
    program = from_text(CARRIED)
    entry = program.module.entry.id
    loaded = schedule_program(program, AsLoaded(), Budget(4)).orders[entry].nodes.tolist()
    kept = schedule_program(program, Waiting(), Budget(4), keep=True)
    assert kept.kept == {entry}
    assert kept.orders[entry].nodes.tolist() == loaded
    given = schedule_program(program, Waiting(), Budget(4))
    assert not given.kept
    assert given.orders[entry].nodes.tolist() != loaded
    # Equally fast orders are the scheduler's; a module without an order has none to keep.
    assert not schedule_program(program, BottomUp(), Budget(4), keep=True).kept
    loose = from_text(CARRIED.replace(", is_scheduled=true", ""))
    assert not schedule_program(loose, Waiting(), Budget(4), keep=True).kept


def test_an_order_over_the_budget_is_not_kept() -> None:
    start = next(line for line in CARRIED.split("\n  ") if line.startswith("start"))
    again = start.replace("start =", "again =").replace("channel_id=1", "channel_id=2")
    text = CARRIED.replace(start, f"{start}\n  {again}").replace(
        "  ROOT", "  twice = bf16[1024,1024]{1,0} collective-permute-done(again)\n  ROOT"
    )
    text = text.replace("bf16[1024,1024]{1,0}) tuple(y, done)", f"{SQUARE}, {SQUARE}) tuple(y, done, twice)")
    program = from_text(text)
    assert schedule_program(program, Waiting(), Budget(2), keep=True).kept
    assert not schedule_program(program, Waiting(), Budget(1), keep=True).kept
