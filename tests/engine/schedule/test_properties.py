"""What must hold for any graph, control edges, costs, budget and cap: a valid schedule, or a refusal that is right."""

from __future__ import annotations

import random
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.chips.budget import Budget, Kind
from engine.errors import UnsupportedError
from engine.schedule.bounds import lower_bound
from engine.schedule.errors import Infeasible
from engine.schedule.instance import Instance
from engine.schedule.measure import broken_rule, in_flight, makespan, peak_memory
from engine.schedule.problem import Order, Problem
from engine.schedule.registry import parse_scheduler
from engine.schedule.solving import solve
from tests.engine.schedule.synthetic import Sketch

SCHEDULERS = (
    "memory",
    "bottom-up",
    "bottom-up{forward=off}",
    "bottom-up{aggressive=on,depth_over_stall=on}",
    "bottom-up{aggressive=on,release_starts=on,late_starts=on}",
    "top-down",
    "top-down{rebalance=off}",
    "improve{seconds=0.01}",
)


def sketch_of(seed: int, count: int) -> Sketch:
    """A computation of up to `count` instructions with control edges, transfers that must overlap, and holders."""
    rng = random.Random(seed)
    sketch = Sketch()
    open_starts: list[int] = []
    values: list[int] = []
    while len(sketch.operands) < count - 1 - len(open_starts):
        operands = rng.sample(values, min(len(values), rng.randint(0, 3)))
        before = list(range(len(sketch.operands)))
        controls = rng.sample(before, min(len(before), 1)) if rng.random() < 0.15 else []
        size = rng.choice((0, 1, 2, 5))
        draw = rng.random()
        if draw < 0.1:
            values.append(sketch.add(opcode="parameter", size=size))
        elif draw < 0.35:
            kind = rng.choice((Kind.PERMUTE, Kind.PERMUTE, Kind.ALL_GATHER))
            start = sketch.add(
                operands,
                opcode="collective-permute-start",
                kind=kind,
                transfer=rng.randint(0, 9),
                size=size,
                compute=rng.choice((0, 0, 1)),
                controls=controls,
            )
            open_starts.append(start)
        elif draw < 0.6 and open_starts:
            start = open_starts.pop(rng.randrange(len(open_starts)))
            values.append(sketch.finish(start, controls=controls, compute=rng.choice((0, 0, 1))))
        elif draw < 0.7:
            values.append(sketch.add(operands, opcode="all-reduce", kind=Kind.ALL_REDUCE, transfer=rng.randint(1, 9)))
        elif draw < 0.78:
            held = rng.randint(1, 2)
            values.append(sketch.add(operands, opcode="while", compute=rng.randint(0, 9), held=held, size=size))
        else:
            values.append(sketch.add(operands, compute=rng.randint(0, 9), size=size, controls=controls))
    values += [sketch.finish(start) for start in open_starts]
    used = {o for operands in sketch.operands for o in operands}
    sketch.add([k for k in values if k not in used], opcode="tuple", size=0)
    return sketch


def attempt(problem: Problem, text: str) -> Order | Infeasible:
    """The order that a scheduler finds, or its refusal."""
    try:
        return solve(problem, parse_scheduler(text))
    except Infeasible as refusal:
        return refusal


budgets = st.one_of(
    st.integers(1, 4).map(Budget),
    st.just(Budget()),
    st.tuples(st.integers(1, 3), st.integers(1, 2)).map(
        lambda b: Budget(b[0], ((Kind.PERMUTE, b[1]), (Kind.ALL_GATHER, 1)))
    ),
)


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 40), budgets, st.sampled_from((None, 4, 8, 16)))
@pytest.mark.parametrize("text", SCHEDULERS)
def test_a_schedule_is_valid_or_refused(text: str, seed: int, count: int, budget: Budget, cap: int | None) -> None:
    problem = sketch_of(seed, count).problem(budget, memory_cap=cap)
    order = attempt(problem, text)
    if isinstance(order, Infeasible):
        if order.smallest_budget is not None:
            relaxed = sketch_of(seed, count).problem(Budget.parse(order.smallest_budget))
        else:
            assert order.least_peak is not None
            assert cap is not None
            assert order.least_peak > cap
            relaxed = sketch_of(seed, count).problem(budget, memory_cap=order.least_peak)
        found = attempt(relaxed, text)
        assert isinstance(found, Order)
        assert broken_rule(relaxed, found.nodes) is None
        return
    assert broken_rule(problem, order.nodes) is None
    assert makespan(Instance.of(problem), order.nodes.tolist()) >= lower_bound(problem)
    if not text.startswith("improve"):
        again = solve(problem, parse_scheduler(text))
        assert np.array_equal(order.nodes, again.nodes)
    if order.decisions is not None:
        decisions = order.decisions
        assert all(column.shape == (len(problem.graph),) for column in (decisions.rule, decisions.beat))
        assert int(decisions.rule.max(initial=0)) < len(decisions.rules)
        assert int(decisions.beat.max(initial=-1)) < len(problem.graph)
        assert int(decisions.waited_for.max(initial=-1)) < len(problem.graph)


def test_transfers_that_wait_for_each_others_end_do_not_stop_the_walk() -> None:
    # Found at random: what the end of either of two transfers needs has room only after the end of the other.
    problem = sketch_of(188, 60).problem(Budget(2), memory_cap=55)
    order = attempt(problem, "top-down")
    assert isinstance(order, Order)
    assert broken_rule(problem, order.nodes) is None


def all_orders(problem: Problem) -> list[list[int]]:
    """Every topological order, parameters first."""
    instance = Instance.of(problem)
    first = instance.parameters
    found: list[list[int]] = []

    def extend(order: list[int], left: set[int]) -> None:
        if not left:
            found.append(order)
            return
        for node in sorted(left):
            if all(p in order for p in instance.predecessors[node]):
                extend([*order, node], left - {node})

    extend(list(first), set(range(len(instance))) - set(first))
    return found


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(1, 2), st.sampled_from((None, 3, 6)))
def test_refusals_are_right_by_brute_force(seed: int, count: int, total: int, cap: int | None) -> None:
    problem = sketch_of(seed, count).problem(Budget(total), memory_cap=cap)
    orders = [np.array(o, np.int64) for o in all_orders(problem)]
    within = [o for o in orders if int(in_flight(problem, o)[1].max(initial=0)) <= total]
    order = attempt(problem, "bottom-up")
    if isinstance(order, Infeasible):
        if within:
            assert order.least_peak == min(peak_memory(problem, o) for o in within)
        else:
            smallest = min(int(in_flight(problem, o)[1].max(initial=0)) for o in orders)
            assert order.smallest_budget == str(smallest)
        return
    assert any(np.array_equal(order.nodes, o) for o in orders)
    fastest = min(makespan(Instance.of(problem), o.tolist()) for o in within)
    assert lower_bound(problem) <= fastest <= makespan(Instance.of(problem), order.nodes.tolist())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(6, 30), budgets)
@pytest.mark.parametrize("text", ["memory", "bottom-up", "top-down", "improve{seconds=0.01}"])
def test_groups_stay_together(text: str, seed: int, count: int, budget: Budget) -> None:
    sketch = sketch_of(seed, count)
    rng = random.Random(seed)
    first = rng.randrange(len(sketch.operands))
    for node in range(first, min(first + 5, len(sketch.operands) - 1)):
        sketch.group[node] = 7
    for node, partner in enumerate(sketch.partner):
        if partner >= 0 and sketch.group[node] != sketch.group[partner]:
            sketch.group[node] = sketch.group[partner] = -1
    for node, opcode in enumerate(sketch.opcodes):
        if opcode == "parameter":
            sketch.group[node] = -1
    problem = sketch.problem(budget)
    try:
        order = attempt(problem, text)
    except UnsupportedError as refusal:
        refused = str(refusal)
    else:
        assert isinstance(order, Infeasible) or broken_rule(problem, order.nodes) is None
        return
    assert "cannot be kept together" in refused


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(1, 2), st.sampled_from((None, 6, 12)))
def test_exact_is_exact(seed: int, count: int, total: int, cap: int | None) -> None:
    pytest.importorskip("ortools")
    problem = sketch_of(seed, count).problem(Budget(total), memory_cap=cap)
    valid = [o for o in all_orders(problem) if broken_rule(problem, np.array(o, np.int64)) is None]
    scheduler = parse_scheduler("exact{seconds=4,workers=1}")
    if not valid:
        with pytest.raises(Infeasible):
            solve(problem, scheduler)
        return
    order = solve(problem, scheduler)
    fastest = min(makespan(Instance.of(problem), o) for o in valid)
    assert makespan(Instance.of(problem), order.nodes.tolist()) == fastest == order.bound


def test_the_brute_force_knows_every_order() -> None:
    sketch = Sketch()
    for _ in range(4):
        sketch.add()
    assert sorted(all_orders(sketch.problem())) == sorted(map(list, permutations(range(4))))
