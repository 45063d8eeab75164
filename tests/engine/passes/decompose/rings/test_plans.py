"""The index arithmetic of the rings, checked by moving numbers around a ring."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from engine.passes.decompose.rings.plans import GatherPlan, ScatterPlan, Slot, gather_plan, scatter_plan
from engine.passes.decompose.rings.variants import link_load

SIZES = range(2, 17)
Values = npt.NDArray[np.int64]


def shifted(values: Values, hops: int) -> Values:
    """What every position holds after all have sent `hops` to their left."""
    return np.roll(values, -hops, axis=0)


def allowed(size: int, both: bool) -> bool:
    """Two positions have but one direction."""
    return size > 2 or not both


@pytest.mark.parametrize(
    ("size", "both", "unroll"), [case for case in product(SIZES, (False, True), (1, 2)) if allowed(*case[:2])]
)
def test_a_gather_shows_every_position_every_shard_once(size: int, both: bool, unroll: int) -> None:
    plan = gather_plan(size, both=both, unroll=unroll, rolled=True)
    held = [shifted(np.arange(size), hops) for hops in plan.entries]
    seen = np.zeros((size, size), np.int64)
    for number, slots in enumerate(plan.steps):
        for slot in slots:
            expected = (np.arange(size) + slot.offset) % size
            assert np.array_equal(held[slot.stream], expected)
            seen[np.arange(size), expected] += 1
        if number + 1 < len(plan.steps):
            for slot in slots:
                held[slot.stream] = shifted(held[slot.stream], plan.hops[slot.stream])
    assert (seen == 1).all()
    assert sum(count for _, count in plan.shifts()) == size - 1
    assert len(plan.steps) == ((size + 1) // 2 if both else size)


CHAINS = [(False, 1, 1), (False, 2, 1), (False, 1, 2), (True, 1, 1), (True, 2, 1)]
"""(both directions, chains a direction that take turns, parts of the result shard)."""
SCATTERS = [(size, chains) for size, chains in product(SIZES, CHAINS) if allowed(size, chains[0])]


@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize(("size", "chains"), SCATTERS)
def test_a_scatter_brings_every_partial_to_its_owner(size: int, chains: tuple[bool, int, int], rolled: bool) -> None:
    both, strides, lanes = chains
    plan = scatter_plan(size, both=both, strides=strides, lanes=lanes, rolled=rolled)
    partial = np.array(
        [[1 << (size * s + r) if size <= 7 else 1 + s + 31 * r for s in range(size)] for r in range(size)]
    )
    held: list[Values | None] = [None] * len(plan.hops)
    for number, slots in enumerate(plan.steps):
        assert len({plan.lane(slot.stream) for slot in slots}) == 1
        for slot in slots:
            value = partial[np.arange(size), (np.arange(size) + slot.offset) % size]
            chain, hops = held[slot.stream], plan.hops[slot.stream]
            early = slot.stream in plan.early
            if chain is not None:
                value = value + (chain if early else shifted(chain, hops))
            held[slot.stream] = shifted(value, hops) if early and not plan.is_last(number, slot.stream) else value
    for lane in range(lanes):
        there = [
            shifted(chain, plan.ends[k]) for k, chain in enumerate(held) if chain is not None and plan.lane(k) == lane
        ]
        assert np.array_equal(sum(there), partial.sum(axis=0))
    assert sum(count for _, count in plan.shifts()) == lanes * (size - 1)
    assert len(plan.steps) == ((size + 1) // 2 if both else lanes * size)


@pytest.mark.parametrize(("size", "chains"), SCATTERS)
def test_chains_of_a_loop_are_sent_while_the_others_compute(size: int, chains: tuple[bool, int, int]) -> None:
    """Where there are two sets of chains: one is sent before an iteration's last step, one after its first."""
    both, strides, lanes = chains
    plan = scatter_plan(size, both=both, strides=strides, lanes=lanes, rolled=True)
    assert not scatter_plan(size, both=both, strides=strides, lanes=lanes).early
    if not plan.early:
        sets = strides * lanes
        assert sets == 1 or (plan.size // 2 if both else len(plan.steps)) < 2 * sets + 1
        return
    first, second = plan.steps[plan.loop.first : plan.loop.first + 2]
    assert plan.loop.period == 2
    assert {slot.stream for slot in first} == plan.early
    assert plan.early.isdisjoint(slot.stream for slot in second)
    # What an early chain is sent for at the end of the last iteration is wanted.
    assert {slot.stream for slot in plan.steps[plan.loop.stop]} == plan.early


@pytest.mark.parametrize("size", SIZES)
def test_link_load(size: int) -> None:
    assert link_load(gather_plan(size)) == (size - 1, 0)
    assert link_load(scatter_plan(size)) == (size - 1, 0)
    assert link_load(scatter_plan(size, strides=2)) == (2 * size - 3, 0)
    assert link_load(scatter_plan(size, lanes=2)) == (2 * (size - 1), 0)  # of half shards
    if size > 2:
        left, right = size // 2, (size - 1) // 2
        assert sorted(link_load(gather_plan(size, both=True))) == sorted((left, right))
        assert link_load(scatter_plan(size, both=True)) == (left, right)


def loops(size: int) -> list[GatherPlan | ScatterPlan]:
    rings = (False,) if size == 2 else (False, True)
    found: list[GatherPlan | ScatterPlan] = []
    for both, twice in product(rings, (1, 2)):
        found.append(gather_plan(size, both=both, unroll=twice, rolled=True))
        found.append(scatter_plan(size, both=both, strides=twice, rolled=True))
    return [*found, scatter_plan(size, lanes=2, rolled=True)]


@pytest.mark.parametrize("size", SIZES)
def test_loops_repeat_themselves(size: int) -> None:
    for plan in loops(size):
        loop = plan.loop
        per_turn = loop.period if isinstance(plan, GatherPlan) else 1
        for step in range(loop.first, loop.stop - loop.period):
            for now, then in zip(plan.steps[step], plan.steps[step + loop.period], strict=True):
                assert then == Slot(now.stream, now.offset + plan.hops[now.stream] * per_turn)
        if isinstance(plan, ScatterPlan):
            before = {slot.stream for slots in plan.steps[: loop.first] for slot in slots}
            inside = {slot.stream for slots in plan.steps[loop.first : loop.stop] for slot in slots}
            assert inside <= before
        elif loop.trips:
            assert loop.stop < len(plan.steps)
