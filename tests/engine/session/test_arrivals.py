"""Modules come into a session in its order, in whatever order they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest

from engine.session import edits
from engine.session.arrivals import informed, plans_beside, taken_in, unread, unreadable
from engine.session.plan import AS_LOADED, MachineSpec, Plan
from engine.session.session import Facts, Session
from tests.views.synthetic import variant

BEST = Plan("decompose,async-permute", "bottom-up")
OTHER = Plan("decompose,async-permute,fuse", "memory")
MACHINE = MachineSpec("tpu-v5p")


def facts(name: str, plan: Plan = BEST) -> Facts:
    return Facts(name, 10, 1, 4, scheduled=False, sha256=name, plans=(("as loaded", AS_LOADED), ("", plan)))


FACTS = {"1": facts("one"), "2": facts("two", OTHER), "3": facts("three", OTHER)}


def read_in(order: Sequence[str]) -> Session:
    session = edits.begun("one.hlo", "two.hlo", "three.hlo")
    for count in range(1, len(order) + 1):
        session = taken_in(session, {key: FACTS[key] for key in order[:count]}, MACHINE)
    return session


@pytest.mark.parametrize("order", [*permutations("123")])
def test_the_order_of_reading_does_not_show(order: Sequence[str]) -> None:
    session = read_in(order)
    assert [(e.key, e.module, e.plan) for e in session.entries] == [
        ("A", "1", AS_LOADED),
        ("B", "1", BEST),
        ("C", "2", AS_LOADED),
        ("D", "2", BEST),
        ("E", "3", AS_LOADED),
        ("F", "3", BEST),
    ]
    assert (session.base, session.active) == ("A", "B")
    assert [module.facts for module in session.modules] == [*FACTS.values()]
    assert {entry.machine for entry in session.entries} == {MACHINE}


def test_a_module_waits_for_those_before_it() -> None:
    waiting = read_in("2")
    assert waiting.entries == ()
    assert [module.facts for module in waiting.modules] == [None, FACTS["2"], None]
    assert {entry.module for entry in read_in("21").entries} == {"1", "2"}


def test_nothing_new_is_the_same_session() -> None:
    session = read_in("123")
    assert taken_in(session, FACTS, MACHINE) is session
    assert informed(session, FACTS) is session


def test_beside_a_module_as_loaded_its_own_best_plan_is_shown() -> None:
    session = edits.activated(read_in("1"), "A")
    assert [*plans_beside(session, FACTS["2"])] == [("as loaded", AS_LOADED), ("", OTHER)]


def test_what_is_read_anew_keeps_its_plans_alone() -> None:
    session = read_in("12")
    for entry in session.entries:
        session = edits.arrived(session, entry.key, variant(plan=entry.plan, machine=entry.machine))
    again = unread(session, ["2"])
    assert [entry.plan for entry in again.entries] == [entry.plan for entry in session.entries]
    assert [entry.variant is None for entry in again.entries] == [False, False, True, True]
    assert [module.facts is None for module in again.modules] == [False, True, True]


def test_an_unreadable_module_fails_its_variants_or_goes() -> None:
    session = replace(read_in("12"), reading=False)
    failed = unreadable(session, "2", "no HLO")
    assert [entry.error for entry in failed.entries] == ["", "", "no HLO", "no HLO"]
    assert failed.modules == session.modules
    assert [module.key for module in unreadable(session, "3", "no HLO").modules] == ["1", "2"]
