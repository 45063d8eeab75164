"""Arguments that the caller gives away: on the device from the start, free after their last use, for all who count."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.hlo.reading import read_here
from engine.ir.graph import Ints
from engine.schedule.backward_guard import BackwardGuard
from engine.schedule.errors import Infeasible
from engine.schedule.forward_guard import ForwardGuard
from engine.schedule.instance import Instance
from engine.schedule.measure import broken_rule, live_memory, peak_memory
from engine.schedule.problem import Problem
from engine.schedule.programs import problem_of, schedule_program
from engine.schedule.registry import parse_scheduler
from engine.schedule.solving import solve
from engine.simulate.simulator import simulate

MIB = 1 << 20
SQUARE = "f32[512,512]"
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""Text drawn from random numbers does not become simpler by making the numbers smaller."""


def donating(random_: random.Random, *, late: bool) -> str:
    """A scheduled chain over arguments of 1 MiB, of which some are donated and one aliased; with `late`, `parameter`
    lines stand anywhere before their first reader."""
    count, steps = random_.randint(1, 5), random_.randint(1, 12)
    values = [f"p{k}" for k in range(count)]
    body: list[str] = []
    for step in range(steps):
        one, other = random_.choice(values), random_.choice(values)
        body.append(f"  v{step} = {SQUARE} multiply({one}, {other})")
        values.append(f"v{step}")
    body.append(f"  ROOT r = {SQUARE} add(v{steps - 1}, {random_.choice(values)})")
    given = random_.sample(range(count), random_.randint(0, count))
    places = [random_.random() for _ in range(count)]
    for k in range(count):
        first = next((at for at, line in enumerate(body) if f"p{k}," in line or f"p{k})" in line), len(body) - 1)
        body.insert(int(first * places[k]) if late else 0, f"  p{k} = {SQUARE} parameter({k})")
    alias = f", input_output_alias={{ {{}}: ({given[0]}, {{}}, may-alias) }}" if given else ""
    donors = ", ".join(f"({k}, {{}})" for k in given[1:])
    donor = f", buffer_donor={{ {donors} }}" if donors else ""
    return "\n".join([f"HloModule m, is_scheduled=true{alias}{donor}", "", "ENTRY e {", *body, "}"])


def loaded(text: str) -> Program:
    module = read_here(text.encode(), "donating.hlo")
    return prepare(module, machine_for(module, load_chip("tpu-v4")))


def peak(program: Program, scheduler: str) -> int:
    """Of the whole program in the simulator, checked against what schedulers reckon with."""
    entry = program.module.proto.entry_computation_id
    schedule = schedule_program(program, parse_scheduler(scheduler), Budget())
    simulated = simulate(program, schedule).runs[entry].peak
    assert simulated == peak_memory(entry_problem(program), schedule.orders[entry].nodes)
    return simulated


def entry_problem(program: Program, cap: int | None = None) -> Problem:
    return problem_of(program, program.module.proto.entry_computation_id, {}, Budget(), cap)


def loaded_order(problem: Problem) -> Ints:
    assert problem.graph.order is not None
    return problem.graph.order


CHAIN = """HloModule m, is_scheduled=true, buffer_donor={ (2, {}), (1, {}) }

ENTRY e {
  x = f32[1024,1024] parameter(0)
  a = f32[1024,1024] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[1024,1024] parameter(1)
  b = f32[1024,1024] dot(a, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[1024,1024] parameter(2)
  c = f32[1024,1024] dot(b, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT d = f32[1024,1024] dot(c, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize("scheduler", ["as-loaded", "memory", "bottom-up", "top-down"])
def test_arguments_are_there_before_their_lines(scheduler: str) -> None:
    assert peak(loaded(CHAIN), scheduler) == 20 * MIB


def test_a_donated_argument_is_free_after_its_last_reader() -> None:
    problem = entry_problem(loaded(CHAIN))
    assert (live_memory(problem, loaded_order(problem)) // MIB).tolist() == [12, 16, 16, 20, 12, 16, 12]


def test_a_donated_argument_that_nothing_reads_stays() -> None:
    problem = entry_problem(loaded(CHAIN.replace("dot(b, z)", "dot(b, b)")))
    assert (live_memory(problem, loaded_order(problem)) // MIB).tolist() == [12, 16, 16, 20, 12, 16, 16]


@settings(max_examples=80, deadline=None, phases=UNSHRUNK)
@given(st.integers(0, 10**6))
def test_where_a_parameter_stands_changes_no_peak(seed: int) -> None:
    late, early = (loaded(donating(random.Random(seed), late=late)) for late in (True, False))
    assert peak(late, "as-loaded") == peak(early, "as-loaded")
    assert peak(late, "memory") <= peak(late, "as-loaded")


@settings(max_examples=60, deadline=None, phases=UNSHRUNK)
@given(st.integers(0, 10**6))
def test_guards_count_as_the_simulator_does(seed: int) -> None:
    """From either end the order as loaded is let through at its own peak, and no order that is let through is above."""
    problem = entry_problem(loaded(donating(random.Random(seed), late=True)))
    order = loaded_order(problem)
    cap = peak_memory(problem, order)
    random_ = random.Random(seed)
    for guard_type in (ForwardGuard, BackwardGuard):
        instance = Instance.of(replace(problem, memory_cap=cap))
        guard = guard_type(instance, order.tolist())
        forward = guard_type is ForwardGuard
        needs = instance.predecessors if forward else instance.successors
        made: list[int] = []
        while len(made) < len(order):
            ready = [n for n in range(len(order)) if n not in made and all(k in made for k in needs[n])]
            random_.shuffle(ready)
            made.append(next(n for n in [*ready, guard.next] if guard.place(n)))
        assert peak_memory(problem, np.array(made if forward else made[::-1])) <= cap


@settings(max_examples=40, deadline=None, phases=UNSHRUNK)
@given(st.integers(0, 10**6), st.integers(2, 9))
@pytest.mark.parametrize("scheduler", ["memory", "bottom-up", "top-down", "improve{seconds=0.01}"])
def test_orders_keep_a_cap_and_refusals_are_met(scheduler: str, seed: int, cap: int) -> None:
    problem = entry_problem(loaded(donating(random.Random(seed), late=True)), cap * MIB)
    try:
        order = solve(problem, parse_scheduler(scheduler))
    except Infeasible as refusal:
        least = refusal.least_peak
    else:
        assert broken_rule(problem, order.nodes) is None
        return
    assert least is not None
    assert least > cap * MIB
    roomier = replace(problem, memory_cap=least)
    assert broken_rule(roomier, solve(roomier, parse_scheduler(scheduler)).nodes) is None
