"""What the plan line offers agrees with what the passes take."""

from __future__ import annotations

import pytest

from engine.options import fields_of
from engine.passes.pipeline import PASSES
from views.plan.choices import CHOICES, OFF, Choice


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.caption)
def test_values_are_the_options_and_the_first_is_the_default(choice: Choice) -> None:
    (option,) = (f for f in fields_of(PASSES.load(choice.part)) if f.name == choice.option)
    values = [v for v in choice.values if v != OFF]
    assert sorted(values) == sorted(option.choices)
    assert values[0] == option.default
