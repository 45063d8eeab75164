"""What the plan line offers agrees with what the passes take."""

from __future__ import annotations

import pytest

from engine.options import fields_of
from engine.passes.pipeline import PASSES
from engine.session.plan import Plan
from views.plan.choices import CHOICES, OFF, Choice, enabled, value_of, with_value

EACH = pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.caption)


@EACH
def test_values_and_default_are_those_of_the_option(choice: Choice) -> None:
    (option,) = (f for f in fields_of(PASSES.load(choice.part)) if f.name == choice.option)
    assert tuple(v for v in choice.values if v != OFF) == option.choices
    assert choice.default == option.default


@EACH
def test_every_value_can_be_chosen_and_is_shown(choice: Choice) -> None:
    for value in choice.values:
        plan = with_value(Plan("decompose,async-permute,fuse"), choice, value)
        assert value_of(plan, choice) == value
        assert enabled(plan, choice)


def test_decomposing_makes_permutes_asynchronous() -> None:
    form = next(choice for choice in CHOICES if choice.caption == "decompose")
    assert with_value(Plan(), form, "rolled").passes == "decompose{form=rolled},async-permute"


def test_flattening_comes_before_decomposing() -> None:
    flatten = next(choice for choice in CHOICES if choice.caption == "flatten")
    plan = with_value(Plan("decompose,async-permute,fuse"), flatten, "contracting")
    assert plan.passes == "flatten,decompose,async-permute,fuse"
    assert with_value(plan, flatten, "all").passes == "flatten{indices=all},decompose,async-permute,fuse"
    assert with_value(plan, flatten, OFF).passes == "decompose,async-permute,fuse"
