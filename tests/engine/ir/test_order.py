"""Orders that are valid already stay as they are; others change only where they must."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.order import callees_first, operands_first


def instructions(waits_for: dict[int, list[int]]) -> dict[int, HloInstructionProto]:
    """By id; every second edge is a control edge."""
    return {
        id_: HloInstructionProto(id=id_, name=f"i{id_}", operand_ids=before[::2], control_predecessor_ids=before[1::2])
        for id_, before in waits_for.items()
    }


@st.composite
def acyclic(draw: st.DrawFn) -> dict[int, list[int]]:
    """What each of some instructions waits for: only those with a smaller number."""
    count = draw(st.integers(1, 12))
    return {k: draw(st.lists(st.integers(0, k - 1), unique=True, max_size=4)) if k else [] for k in range(count)}


@given(acyclic(), st.randoms(use_true_random=False))
def test_operands_come_first_from_any_order(waits_for: dict[int, list[int]], random: Random) -> None:
    given_order = list(waits_for)
    random.shuffle(given_order)
    place = {id_: k for k, id_ in enumerate(operands_first(given_order, instructions(waits_for)))}
    assert place.keys() == waits_for.keys()
    assert all(place[before] < place[id_] for id_, all_before in waits_for.items() for before in all_before)


@given(acyclic())
def test_a_valid_order_stays(waits_for: dict[int, list[int]]) -> None:
    assert operands_first(waits_for, instructions(waits_for)) == list(waits_for)


@given(acyclic(), st.randoms(use_true_random=False))
def test_what_did_not_change_need_not_be_looked_at(waits_for: dict[int, list[int]], random: Random) -> None:
    changed = {id_ for id_ in waits_for if random.random() < 0.5}
    for id_ in changed:  # the higher numbers come later, so that nothing waits for itself
        waits_for[id_] = random.sample(range(id_), min(id_, 3))
    given_order = sorted(waits_for, key=lambda id_: (id_ + 5 * random.random()) if id_ in changed else id_)
    there = [id_ for id_ in waits_for if id_ not in changed]
    suspects = {*changed, *(id_ for id_ in there if not _follows_all(id_, waits_for, given_order))}
    made = instructions(waits_for)
    assert operands_first(given_order, made, suspects) == operands_first(given_order, made)


def _follows_all(id_: int, waits_for: dict[int, list[int]], order: list[int]) -> bool:
    place = {other: k for k, other in enumerate(order)}
    return all(place[before] < place[id_] for before in waits_for[id_])


def test_what_waits_for_itself_is_named() -> None:
    with pytest.raises(ValueError, match="i1 waits for itself"):
        operands_first([0, 1, 2], instructions({0: [], 1: [2, 0], 2: [1]}))


def test_callees_come_right_before_their_first_caller() -> None:
    # 1 and 5 call 9, which calls 8; 5 calls 1 too.
    assert callees_first([1, 5], {1: [9], 5: [9, 1], 9: [8]}) == [8, 9, 1, 5]
