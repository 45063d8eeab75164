"""Every rule of the priority list that applies here, in a case which it decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from engine.chips.budget import Budget
from engine.control import QUIET
from engine.schedule.bottom_up import BottomUp
from engine.schedule.instance import Instance
from engine.schedule.measure import broken_rule
from engine.schedule.problem import Hint, Hints, Problem
from engine.schedule.rules import (
    RULES,
    Policy,
    decrease_memory,
    decrease_over_cap,
    no_increase_over_cap,
    peak_over_cap,
)
from engine.schedule.state import State
from tests.engine.schedule.synthetic import Sketch

Case = tuple[Problem, BottomUp, int, int]
"""A problem, a scheduler, the node that a rule places first from the end, and the node that it beats."""

PLAIN = BottomUp(forward=False)
AGGRESSIVE = BottomUp(forward=False, aggressive=True)


def hinted(sketch: Sketch, flags: dict[int, Hint], priority: dict[int, int] | None = None) -> Problem:
    n = len(sketch.operands)
    columns = Hints(np.zeros(n, np.uint8), np.zeros(n, np.int64))
    for node, flag in flags.items():
        columns.flags[node] = flag
    for node, value in (priority or {}).items():
        columns.priority[node] = value
    return replace(sketch.problem(), hints=columns)


def two(compute_a: int = 5, compute_b: int = 5, size_a: int = 1, size_b: int = 1) -> tuple[Sketch, int, int]:
    """Two instructions that do not depend on each other, and their tuple."""
    sketch = Sketch()
    a = sketch.add(compute=compute_a, size=size_a)
    b = sketch.add(compute=compute_b, size=size_b)
    sketch.add([a, b], opcode="tuple", size=0)
    return sketch, a, b


def nop() -> Case:
    sketch, a, b = two(compute_a=0)
    return sketch.problem(), PLAIN, a, b


def force_early() -> Case:
    sketch, a, b = two()
    return hinted(sketch, {a: Hint.LATE}), PLAIN, a, b


def force_delay() -> Case:
    sketch, a, b = two()
    return hinted(sketch, {b: Hint.EARLY}), PLAIN, a, b


def force_delay_priority() -> Case:
    sketch, a, b = two()
    return hinted(sketch, {a: Hint.EARLY, b: Hint.EARLY}, {a: 1, b: 2}), PLAIN, a, b


def schedule_done() -> Case:
    sketch = Sketch()
    done = sketch.send([], 10)[1]
    b = sketch.add(compute=5)
    sketch.add([done, b], opcode="tuple", size=0)
    return sketch.problem(), PLAIN, done, b


def delay_done_of_force_delayed_start() -> Case:
    sketch = Sketch()
    done = sketch.send([], 10)[1]
    start, other = sketch.send([], 10)
    sketch.add([done, other], opcode="tuple", size=0)
    return hinted(sketch, {start: Hint.EARLY}), PLAIN, done, other


def delay_starts() -> Case:
    sketch = Sketch()
    start, done = sketch.send([], 0)
    a = sketch.add(compute=5)
    sketch.add([a, done], opcode="tuple", size=0)
    return sketch.problem(), replace(PLAIN, late_starts=True), a, start


def schedule_start() -> Case:
    sketch = Sketch()
    b = sketch.add(compute=5)
    start, done = sketch.send([], 0)
    c = sketch.add([b], compute=5)
    sketch.add([c, done], opcode="tuple", size=0)
    return sketch.problem(), replace(PLAIN, release_starts=True), start, c


def less_stall() -> Case:
    sketch = Sketch()
    start, done = sketch.send([], 10)
    a = sketch.add(compute=5)
    sketch.add([a, done], opcode="tuple", size=0)
    return sketch.problem(), PLAIN, a, start


def start_at_zero_depth() -> Case:
    sketch = Sketch()
    start, done = sketch.send([], 0)
    a = sketch.add(compute=5)
    sketch.add([a, done], opcode="tuple", size=0)
    return sketch.problem(), AGGRESSIVE, a, start


def start_at_zero_depth_before_stall() -> Case:
    problem, _, a, start = start_at_zero_depth()
    return problem, replace(AGGRESSIVE, depth_over_stall=True), a, start


def free_backed_up_resource() -> Case:
    sketch = Sketch()
    waiting = sketch.send([], 10)[1]
    before = sketch.add(compute=20)
    start, done = sketch.send([before], 0)
    long = sketch.add([sketch.add(compute=50)], compute=50)
    sketch.add([waiting, long, done], opcode="tuple", size=0)
    return sketch.problem(Budget(1)), PLAIN, start, long


def async_depth() -> Case:
    sketch = Sketch()
    done = sketch.send([], 10)[1]
    a = sketch.add([done], compute=5)
    before = sketch.add(compute=50)
    b = sketch.add([before], compute=5)
    sketch.add([a, b], opcode="tuple", size=0)
    return sketch.problem(), AGGRESSIVE, a, b


def avoid_waste() -> Case:
    sketch = Sketch()
    start, done = sketch.send([], 30)
    near = sketch.add(compute=29, size=0)
    far = sketch.add(compute=90, held=0, size=64)
    sketch.held[far] = 1
    sketch.add([near, far, done], opcode="tuple", size=0)
    assert start >= 0
    return sketch.problem(), AGGRESSIVE, near, far


def unlock_done() -> Case:
    sketch = Sketch()
    done = sketch.send([], 0)[1]
    a = sketch.add([done], compute=5)
    before = sketch.add(compute=50)
    b = sketch.add([before], compute=5)
    sketch.add([a, b], opcode="tuple", size=0)
    return sketch.problem(), PLAIN, a, b


def creates_more_ready_nodes() -> Case:
    sketch = Sketch()
    first, second = sketch.add(compute=1), sketch.add(compute=1)
    a = sketch.add([first, second], compute=5)
    b = sketch.add([first], compute=7)
    sketch.held[b] = 1
    sketch.add([a, b], opcode="tuple", size=0)
    return sketch.problem(), AGGRESSIVE, a, b


def longest_path() -> Case:
    sketch = Sketch()
    before = sketch.add(compute=50)
    a = sketch.add([before], compute=5)
    b = sketch.add(compute=5)
    sketch.add([a, b], opcode="tuple", size=0)
    return sketch.problem(), PLAIN, a, b


def original_order() -> Case:
    sketch, a, b = two()
    return sketch.problem(), PLAIN, b, a


CASES: dict[str, Callable[[], Case]] = {
    "a": nop,
    "1": force_early,
    "2": force_delay,
    "3": force_delay_priority,
    "8": delay_starts,
    "9": schedule_done,
    "10": delay_done_of_force_delayed_start,
    "12": schedule_start,
    "13": start_at_zero_depth_before_stall,
    "14": less_stall,
    "16": start_at_zero_depth,
    "17": free_backed_up_resource,
    "18": async_depth,
    "19": avoid_waste,
    "20": unlock_done,
    "23": creates_more_ready_nodes,
    "b": longest_path,
    "25": original_order,
}


@pytest.mark.parametrize("number", CASES)
def test_the_rule_decides(number: str) -> None:
    problem, scheduler, winner, loser = CASES[number]()
    order = scheduler.schedule(problem, QUIET)
    assert broken_rule(problem, order.nodes) is None
    place = {node: k for k, node in enumerate(order.nodes.tolist())}
    assert place[winner] > place[loser]
    assert order.decisions is not None
    decided = order.decisions.rules[int(order.decisions.rule[winner])]
    name = next(rule.name for rule in RULES if rule.number == number)
    assert (decided, int(order.decisions.beat[winner])) == (name, loser)


def candidates() -> tuple[State, int, int, int]:
    """Under a cap of 100 bytes: a node that makes 30 live bytes, one that reads 20 more, and the done of a transfer."""
    sketch = Sketch()
    large = sketch.add(size=20)
    frees = sketch.add(size=30)
    takes = sketch.add([large], size=5)
    done = sketch.send([large], 10, size=50)[1]
    sketch.add([takes, frees, done], opcode="tuple", size=0)
    instance = Instance.of(sketch.problem(memory_cap=100))
    state = State(instance, cap=100, live=80)
    state.alive = bytearray([0, 1, 1, 1])
    return state, frees, takes, done


def test_what_placing_changes_in_memory() -> None:
    state, frees, takes, done = candidates()
    assert (state.increase(frees), state.peak(frees)) == (-30, 0)
    assert (state.increase(takes), state.peak(takes)) == (20 - 5, 20)
    assert (state.increase(done), state.peak(done)) == (20 - 50, 20), "its start makes what it reads"


def test_memory_rules_hold_when_memory_is_short() -> None:
    state, frees, takes, _ = candidates()
    assert no_increase_over_cap(state, takes) == decrease_over_cap(state, takes) == 0, "80 of 100 bytes"
    assert (peak_over_cap(state, frees), peak_over_cap(state, takes)) == (0, 0)
    state.live = 90
    assert (peak_over_cap(state, frees), peak_over_cap(state, takes)) == (0, 1)
    state.live = 100
    assert (no_increase_over_cap(state, frees), no_increase_over_cap(state, takes)) == (0, 15)
    assert (decrease_over_cap(state, frees), decrease_over_cap(state, takes)) == (-30, 15)
    assert decrease_memory(state, frees) < decrease_memory(state, takes)


def test_a_memory_rule_decides_under_a_cap() -> None:
    sketch = Sketch()
    large = sketch.add(compute=60, size=40)
    takes = sketch.add([large], compute=9, size=10)
    frees = sketch.add(compute=5, size=20)
    sketch.add([sketch.add([takes, frees], size=1)], opcode="tuple", size=0)
    problem = sketch.problem(memory_cap=59)
    order = PLAIN.schedule(problem, QUIET)
    assert order.nodes.tolist()[:3] == [large, takes, frees]
    free = PLAIN.schedule(sketch.problem(), QUIET)
    assert free.nodes.tolist()[:3] == [frees, large, takes]
    assert order.decisions is not None
    rule = order.decisions.rules[int(order.decisions.rule[frees])]
    assert rule == "MemoryPeakOverLimit"


def test_every_rule_is_tried_or_says_why_it_does_not_apply() -> None:
    memory = {rule.number for rule in RULES if rule.policy is Policy.MEMORY}
    for rule in RULES:
        applies = rule.number in CASES or rule.number in memory
        assert applies != (rule.policy is Policy.NEVER), rule
        if rule.policy is Policy.NEVER:
            assert rule.meaning.startswith("not applicable: ")
    numbers = {rule.number.rstrip("ab'") for rule in RULES} - {""}
    assert numbers == {str(k) for k in range(1, 26)}
