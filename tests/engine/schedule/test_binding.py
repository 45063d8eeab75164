"""What the budget keeps waiting: told as it is, and only where a place more would have let it start."""

from __future__ import annotations

import numpy as np
import pytest

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.hlo.reading import read_here
from engine.passes.passes import Context
from engine.passes.pipeline import Pipeline
from engine.schedule.binding import Held, held_back
from engine.schedule.measure import in_flight
from engine.schedule.problem import Order, Schedule
from engine.schedule.programs import problem_of, schedule_program
from engine.schedule.proof import proven_bound
from engine.schedule.registry import parse_scheduler
from engine.simulate.simulator import simulate_computations
from tests.places import PARTITIONED

LARGE = PARTITIONED / "we_v4-4x4x4_2d_8x8_d8192_L2_scan.hlo.gz"
PAIRS = "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}"

TWO = f"""HloModule two, is_scheduled=true, num_partitions=4
ENTRY e {{
  a = bf16[4096,4096] parameter(0)
  b = bf16[4096,4096] parameter(1)
  start.1 = (bf16[4096,4096], bf16[4096,4096]) collective-permute-start(a), channel_id=1, {PAIRS}
  first = bf16[4096,4096] dot(b, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  done.1 = bf16[4096,4096] collective-permute-done(start.1)
  start.2 = (bf16[4096,4096], bf16[4096,4096]) collective-permute-start(b), channel_id=2, {PAIRS}
  second = bf16[4096,4096] dot(done.1, first), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  done.2 = bf16[4096,4096] collective-permute-done(start.2)
  ROOT sum = bf16[4096,4096] add(second, done.2)
}}
"""


def program_of(text: bytes, name: str, passes: str = "") -> Program:
    module = read_here(text, name)
    machine = machine_for(module, load_chip("tpu-v4"))
    return prepare(Pipeline.parse(passes).run(module, Context(machine)).module if passes else module, machine)


def in_its_order(program: Program, budget: Budget) -> Schedule:
    """The order of the file, as one that a scheduler made."""
    orders = {c: Order(g.order if g.order is not None else np.arange(len(g))) for c, g in program.graphs.items()}
    return Schedule("by hand", budget, orders)


def held_in(program: Program, schedule: Schedule) -> dict[str, Held]:
    names = {int(i): n for graph in program.graphs.values() for i, n in zip(graph.ids, graph.names, strict=True)}
    found = held_back(program, schedule, simulate_computations(program, schedule))
    assert [h.wait for h in found] == sorted((h.wait for h in found), reverse=True)
    return {names[held.instruction]: held for held in found}


def test_a_start_that_found_the_budget_used_up_waited_since_it_was_ready() -> None:
    program = program_of(TWO.encode(), "two.hlo")
    schedule = in_its_order(program, Budget(1))
    (held,) = held_in(program, schedule).values()
    graph = program.graphs[program.module.proto.entry_computation_id]
    run = simulate_computations(program, schedule)[graph.computation]
    names = list(graph.names)
    assert held.instruction == int(graph.ids[names.index("start.2")])
    assert held.holders == (int(graph.ids[names.index("start.1")]),)
    assert (held.limit, held.counted) == (1, "operations")
    assert held.wait == int(run.reached[names.index("start.2")] - run.reached[names.index("start.1")])
    assert held.wait > 0


def test_a_limit_of_its_kind_is_named_and_room_or_the_loaded_order_keeps_nothing_waiting() -> None:
    program = program_of(TWO.encode(), "two.hlo")
    (held,) = held_in(program, in_its_order(program, Budget.parse("permute=1,total=5"))).values()
    assert (held.limit, held.counted) == (1, "permutes")
    assert not held_in(program, in_its_order(program, Budget(2)))
    assert not held_in(program, in_its_order(program, Budget()))
    as_loaded = schedule_program(program, parse_scheduler("as-loaded"), Budget(1))
    assert not held_in(program, as_loaded)


@pytest.mark.parametrize("budget", [1, 2, 4])
def test_whatever_waited_would_have_broken_the_budget(budget: int) -> None:
    program = program_of(LARGE.read_bytes(), LARGE.name, "decompose{gate=off},async-permute")
    schedule = schedule_program(program, parse_scheduler("bottom-up"), Budget(budget))
    runs = simulate_computations(program, schedule)
    found = held_back(program, schedule, runs)
    assert found or budget > 1
    for held in found:
        computation = program.module.computation_of[held.instruction]
        graph, order = program.graphs[computation], schedule.orders[computation]
        node = graph.ids.tolist().index(held.instruction)
        place = order.positions()
        _, total = in_flight(problem_of(program, computation, runs, schedule.budget), order.nodes)
        before = total[: place[node]]
        assert budget in before.tolist()
        assert len(held.holders) <= budget == held.limit
        assert held.wait <= runs[computation].makespan


def test_what_exact_proves_bounds_every_order_and_others_prove_nothing() -> None:
    pytest.importorskip("ortools")
    program = program_of(TWO.encode(), "two.hlo")
    bounds = {}
    for scheduler in ("exact{seconds=5}", "bottom-up", "memory"):
        schedule = schedule_program(program, parse_scheduler(scheduler), Budget(1))
        runs = simulate_computations(program, schedule)
        bounds[scheduler] = proven_bound(program, schedule, runs), runs[program.module.entry.id].makespan
    proven, best = bounds["exact{seconds=5}"]
    assert proven is not None
    assert all(proven <= makespan for _, makespan in bounds.values())
    assert proven == best
    assert bounds["bottom-up"][0] is bounds["memory"][0] is None


def test_a_proof_about_a_loop_counts_its_body_as_often_as_it_runs() -> None:
    pytest.importorskip("ortools")
    program = program_of(
        (PARTITIONED / "mlp_mega.hlo").read_bytes(), "mlp_mega.hlo", "decompose{gate=off,form=rolled},async-permute"
    )
    schedule = schedule_program(program, parse_scheduler("exact{seconds=4}"), Budget(4))
    runs = simulate_computations(program, schedule)
    proven = proven_bound(program, schedule, runs)
    assert proven is not None
    assert len(program.graphs) > 1
    makespan = runs[program.module.entry.id].makespan
    assert 0.5 * makespan < proven <= makespan
