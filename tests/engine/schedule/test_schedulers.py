"""Schedulers by name, and what each does on computations small enough to see through."""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from engine.chips.budget import Budget, Kind
from engine.control import QUIET, Cancelled, Control
from engine.errors import LapstrakeError, UnsupportedError, UsageError
from engine.schedule.bottom_up import BottomUp
from engine.schedule.bounds import critical_path, lower_bound
from engine.schedule.errors import Infeasible
from engine.schedule.improve import Improve
from engine.schedule.instance import Instance
from engine.schedule.measure import makespan, peak_memory
from engine.schedule.memory import METHODS, Memory
from engine.schedule.problem import Order, Problem
from engine.schedule.registry import SCHEDULERS, parse_scheduler, show_scheduler
from engine.schedule.sequencing import Sequencing
from engine.schedule.solving import solve
from engine.schedule.top_down import TopDown
from tests.engine.schedule.synthetic import Sketch, random_body


@pytest.mark.parametrize(
    "text",
    ["as-loaded", "memory", "bottom-up", "bottom-up{forward=off,aggressive=on}", "top-down{rebalance=off}",
     "improve{seconds=0.5}", "exact{seconds=5.0,workers=1}"],
)  # fmt: skip
def test_text_and_scheduler_are_inverse(text: str) -> None:
    assert show_scheduler(parse_scheduler(text)) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bottomup", "did you mean 'bottom-up'"),
        ("", "one scheduler was expected"),
        ("memory,bottom-up", "one scheduler was expected"),
        ("improve{second=2}", "did you mean 'seconds'"),
        ("improve{seconds=0}", "a number over 0"),
        ("improve{work=0}", "a number over 0"),
        ("exact{workers=0}", "numbers over 0"),
    ],
)
def test_what_is_no_scheduler_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_scheduler(text)


def test_every_scheduler_loads() -> None:
    for name in SCHEDULERS.names():
        assert parse_scheduler(name).name == name


def ring(steps: int, einsum: int, transfer: int) -> Problem:
    """A gather's loop, unrolled: in every step an einsum on the shard at hand, which is sent on meanwhile."""
    sketch = Sketch()
    shard = sketch.add(opcode="parameter", size=4)
    parts = []
    for step in range(steps):
        part = sketch.add([shard], compute=einsum, size=4)
        parts.append(part)
        if step + 1 < steps:
            shard = sketch.send([shard], transfer, size=4)[1]
    sketch.add(parts, opcode="tuple", size=0)
    return sketch.problem(Budget(1))


@pytest.mark.parametrize("name", ["bottom-up", "top-down", "improve", "exact"])
def test_a_ring_of_einsums_hides_its_transfers(name: str) -> None:
    problem = ring(4, einsum=10, transfer=8)
    order = solve(problem, parse_scheduler(name))
    assert makespan(Instance.of(problem), order.nodes.tolist()) == 40


@pytest.mark.parametrize("name", ["bottom-up", "top-down", "improve", "exact"])
def test_transfers_that_outlast_the_compute_are_exposed_by_the_difference(name: str) -> None:
    problem = ring(4, einsum=10, transfer=15)
    order = solve(problem, parse_scheduler(name))
    assert makespan(Instance.of(problem), order.nodes.tolist()) == 3 * 15 + 10 == lower_bound(problem)


def test_the_bound_knows_path_work_and_budget() -> None:
    assert critical_path(Instance.of(ring(4, 10, 8))) == 3 * 8 + 10
    assert lower_bound(ring(4, 10, 8)) == 40
    sketch = Sketch()
    dones = [sketch.send([], 10)[1] for _ in range(6)]
    sketch.add(dones, opcode="tuple")
    assert lower_bound(sketch.problem(Budget(2))) == 30


def test_as_loaded_is_the_modules_order_or_the_files() -> None:
    problem = ring(3, 10, 8)
    assert solve(problem, parse_scheduler("as-loaded")).nodes.tolist() == list(range(len(problem.graph)))


def wide(width: int) -> Sketch:
    """Chains that each make a large array and reduce it to a small one; the small ones are added up."""
    sketch = Sketch()
    larges = [sketch.add(size=100) for _ in range(width)]
    total = sketch.add(size=1)
    for large in larges:
        total = sketch.add([total, sketch.add([large], size=1)], size=1)
    sketch.add([total], opcode="tuple", size=0)
    return sketch


def test_memory_reduces_one_large_array_before_it_makes_the_next() -> None:
    problem = wide(8).problem()
    given = peak_memory(problem, np.arange(len(problem.graph)))
    found = peak_memory(problem, Memory().schedule(problem, QUIET).nodes)
    assert given > 800
    assert found < 110


@pytest.mark.parametrize("method", METHODS)
def test_memory_methods_give_topological_orders(method: object) -> None:
    assert callable(method)
    for seed in range(20):
        problem = random_body(seed)
        order = np.array(method(Instance.of(problem)), np.int64)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        owners = np.repeat(np.arange(len(order)), np.diff(problem.predecessors.starts))
        assert np.all(place[problem.predecessors.items] < place[owners])


def test_parameters_come_first() -> None:
    sketch = Sketch()
    a = sketch.add(compute=5)
    x = sketch.add(opcode="parameter")
    b = sketch.send([], 7)[1]
    sketch.add([a, x, b], opcode="tuple")
    for name in ("memory", "bottom-up", "top-down", "improve{seconds=0.05}", "exact"):
        assert solve(sketch.problem(), parse_scheduler(name)).nodes[0] == x


def overlapping() -> Sketch:
    """Two transfers that must overlap: each start comes before the other's done."""
    sketch = Sketch()
    first = sketch.add(opcode="collective-permute-start", kind=Kind.PERMUTE, transfer=5)
    second = sketch.add([first], opcode="collective-permute-start", kind=Kind.PERMUTE, transfer=5)
    a = sketch.finish(first, controls=[second])
    b = sketch.finish(second, controls=[a])
    sketch.add([a, b], opcode="tuple")
    return sketch


def test_a_budget_that_nothing_fits_is_refused_with_the_smallest_that_does() -> None:
    with pytest.raises(Infeasible, match="the smallest budget that an order fits is 2") as refusal:
        solve(overlapping().problem(Budget(1)), BottomUp())
    assert refusal.value.smallest_budget == "2"
    solve(overlapping().problem(Budget(2)), BottomUp())


def test_a_cap_that_nothing_fits_is_refused_with_the_least_peak() -> None:
    for scheduler in (BottomUp(), TopDown(), Memory()):
        with pytest.raises(Infeasible, match=r"the least peak found is 102 B \(102 bytes\)") as refusal:
            solve(wide(4).problem(memory_cap=50), scheduler)
        assert refusal.value.least_peak == 102
        solve(wide(4).problem(memory_cap=102), scheduler)


def test_under_a_cap_transfers_are_still_hidden_as_far_as_memory_goes() -> None:
    sketch = Sketch()
    parts = []
    for _ in range(6):
        shard = sketch.send([], 10, size=100)[1]
        parts.append(sketch.add([shard], compute=10, size=1))
    sketch.add(parts, opcode="tuple", size=0)
    times = {}
    for cap in (None, 310, 210):
        problem = sketch.problem(Budget(4), memory_cap=cap)
        order = solve(problem, BottomUp())
        assert cap is None or peak_memory(problem, order.nodes) <= cap
        times[cap] = makespan(Instance.of(problem), order.nodes.tolist())
    assert times[None] == times[310] == times[210] == 70, "two shards at a time are enough"


def test_improve_is_never_worse_than_the_others() -> None:
    for seed in range(4):
        problem = random_body(seed, "heavy", Budget(1))
        instance = Instance.of(problem)
        times = [
            makespan(instance, s.schedule(problem, QUIET).nodes.tolist())
            for s in (Improve(seconds=0.1), BottomUp(), TopDown())
        ]
        assert times[0] <= min(times[1:])


def test_improve_finds_the_same_order_again_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_body(1, "heavy", Budget(1))
    scheduler = Improve(work=60_000, seconds=1000)
    found = scheduler.schedule(problem, QUIET).nodes.tolist()
    slow = itertools.count(0, 1e-3)
    monkeypatch.setattr("engine.schedule.improve.monotonic", lambda: next(slow))
    assert scheduler.schedule(problem, QUIET).nodes.tolist() == found


def test_improve_ends_with_its_seconds() -> None:
    problem = random_body(1, "heavy", Budget(1))
    began = time.monotonic()
    Improve(work=10**12, seconds=0.05).schedule(problem, QUIET)
    assert time.monotonic() - began < 10


def test_a_sequence_waits_for_room_for_what_a_caller_holds() -> None:
    sketch = Sketch()
    start, done = sketch.send([], 10)
    caller = sketch.add(opcode="while", compute=5, held=1)
    sketch.add([done, caller], opcode="tuple")
    instance = Instance.of(sketch.problem(Budget(1)))
    decoded = Sequencing(instance, seed=0).decode([start], strict=True)
    assert decoded == [start, done, caller, 3]


def test_improve_asks_the_simulator_which_order_is_the_fastest() -> None:
    problem = ring(4, 10, 15)
    favourite = TopDown().schedule(problem, QUIET).nodes

    def simulated(nodes: object) -> int:
        return 0 if np.array_equal(np.asarray(nodes), favourite) else 1

    found = Improve(seconds=0.05).schedule(replace(problem, simulated=simulated), QUIET)
    assert np.array_equal(found.nodes, favourite)


@pytest.mark.parametrize("name", ["improve{seconds=30}", "exact{seconds=30}", "bottom-up", "top-down", "memory"])
def test_schedulers_can_be_cancelled(name: str) -> None:
    with pytest.raises(Cancelled):
        parse_scheduler(name).schedule(random_body(1, "heavy", Budget(1)), Control(stop=lambda: True))


def test_exact_without_ortools_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python.cp_model", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'lapstrake\[exact\]'"):
        solve(ring(3, 10, 8), parse_scheduler("exact"))


def test_a_scheduler_that_breaks_its_promise_is_named() -> None:
    class Backwards:
        name: ClassVar[str] = "backwards"

        def schedule(self, problem: Problem, control: Control) -> Order:
            return Order(np.arange(len(problem.graph))[::-1].copy())

    with pytest.raises(LapstrakeError, match="scheduler 'backwards' gave an order of synthetic that is not one"):
        solve(ring(3, 10, 8), Backwards())


def test_a_group_that_cannot_stay_together_is_refused() -> None:
    sketch = Sketch()
    a = sketch.add(group=3)
    between = sketch.add([a])
    b = sketch.add([between], group=3)
    sketch.add([b], opcode="tuple")
    with pytest.raises(UnsupportedError, match=r"cannot be kept together.*outside it lie on a path"):
        solve(sketch.problem(), BottomUp())


def test_a_group_is_placed_as_one() -> None:
    sketch = Sketch()
    start, done = sketch.send([], 10, group=1)
    inside = sketch.add(compute=10, group=1)
    outside = sketch.add(compute=10)
    sketch.add([done, inside, outside], opcode="tuple")
    order = solve(sketch.problem(), BottomUp()).nodes.tolist()
    first = order.index(start)
    assert order[first : first + 3] == [start, inside, done]
