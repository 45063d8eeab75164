"""What must hold for any graph, control edges, costs, budget and cap: a valid schedule, or a refusal that is right."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
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
from engine.schedule.problem import Hint, Hints, Loads, Order, Problem
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


def problem_of(seed: int, count: int, budget: Budget, cap: int | None = None, *, grouped: bool = False) -> Problem:
    """`sketch_of` with everything a problem may have besides: callees' memory, hints, shared links, and a group."""
    rng = random.Random(seed)
    sketch = sketch_of(seed, count)
    n = len(sketch.operands)
    if grouped:
        first = rng.randrange(n)
        for node in range(first, min(first + 5, n - 1)):
            sketch.group[node] = -1 if sketch.opcodes[node] == "parameter" else 7
    problem = sketch.problem(budget, memory_cap=cap)
    calls = np.array([opcode == "while" for opcode in sketch.opcodes])
    sends = np.array(sketch.transfer) > 0
    links = [rng.sample(range(3), rng.randint(0, 2)) if sends[node] else [] for node in range(n)]
    return replace(
        problem,
        callee_peak=np.where(calls, rng.choices((0, 2, 4), k=n), 0),
        hints=Hints(np.array(rng.choices((0, 0, 0, *Hint), k=n), np.uint8), np.array(rng.choices((0, 0, 1, -1), k=n))),
        loads=loads_of(links),
    )


def loads_of(links: Sequence[Sequence[int]]) -> Loads:
    """One byte on each of a node's links."""
    start = np.cumsum([0, *(len(own) for own in links)])
    link = np.array([link for own in links for link in own], np.int64)
    return Loads(start, link, np.ones_like(link))


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
    problem = problem_of(seed, count, budget, cap)
    order = attempt(problem, text)
    if isinstance(order, Infeasible):
        check_refusal(problem, order, text)
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


def check_refusal(problem: Problem, refusal: Infeasible, text: str) -> None:
    """What a refusal says would fit does."""
    if refusal.smallest_budget is not None:
        relaxed = replace(problem, budget=Budget.parse(refusal.smallest_budget), memory_cap=None)
    else:
        assert refusal.least_peak is not None
        assert problem.memory_cap is not None
        assert refusal.least_peak > problem.memory_cap
        relaxed = replace(problem, memory_cap=refusal.least_peak)
    found = attempt(relaxed, text)
    assert isinstance(found, Order)
    assert broken_rule(relaxed, found.nodes) is None


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
@given(st.integers(0, 10**6), st.integers(6, 30), budgets, st.sampled_from((None, 8, 16)))
@pytest.mark.parametrize("text", ["memory", "bottom-up", "top-down", "improve{seconds=0.01}"])
def test_groups_stay_together(text: str, seed: int, count: int, budget: Budget, cap: int | None) -> None:
    problem = problem_of(seed, count, budget, cap, grouped=True)
    try:
        order = attempt(problem, text)
    except UnsupportedError as refusal:
        refused = str(refusal)
    else:
        if isinstance(order, Infeasible):
            check_refusal(problem, order, text)
        else:
            assert broken_rule(problem, order.nodes) is None
        return
    assert "cannot be kept together" in refused


def test_a_start_whose_done_is_outside_its_group_is_not_kept_with_it() -> None:
    sketch = Sketch()
    start = sketch.add(opcode="collective-permute-start", kind=Kind.PERMUTE, transfer=10, group=1)
    members = [sketch.add(compute=5, group=1) for _ in range(2)]
    sketch.group[done := sketch.finish(start)] = -1
    sketch.add([*members, done], opcode="tuple")
    order = solve(sketch.problem(), parse_scheduler("bottom-up")).nodes.tolist()
    assert order[0] == start
    assert abs(order.index(members[0]) - order.index(members[1])) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 40), budgets)
@pytest.mark.parametrize(
    "text", ["bottom-up", "bottom-up{aggressive=on,depth_over_stall=on}", "bottom-up{forward=off}"]
)
def test_links_that_no_two_transfers_share_change_nothing(text: str, seed: int, count: int, budget: Budget) -> None:
    alone = replace(problem_of(seed, count, budget), loads=None)
    apart = replace(alone, loads=loads_of([[node] if time else [] for node, time in enumerate(alone.transfer)]))
    orders = attempt(alone, text), attempt(apart, text)
    if isinstance(orders[0], Order) and isinstance(orders[1], Order):
        assert np.array_equal(orders[0].nodes, orders[1].nodes)
    else:
        assert isinstance(orders[0], Infeasible)
        assert isinstance(orders[1], Infeasible)


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
