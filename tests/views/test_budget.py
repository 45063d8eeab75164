"""The sentence over the chart of budgets holds whatever the curve does after its knee."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.views.synthetic import variant
from views.budget.budget import beyond, knee_of

MS = 1_000_000_000


@pytest.mark.parametrize(
    ("makespans", "knee", "said"),
    [
        ([20, 12, 10, 10, 10], 3, "more in flight gains under 1 %"),
        ([20, 12, 10, 11, 13], 3, "more in flight is slower, up to +30 % at 5 (13.0 ms)"),
        ([20, 12, 10, 13, 10], 3, "1 of 2 larger ones are slower, up to +30 % at 4 (13.0 ms)"),
        ([20, 18, 16, 14, 12], 5, "fewer in flight are slower"),
    ],
)
def test_what_is_said_of_budgets_above_the_knee(makespans: list[int], knee: int, said: str) -> None:
    metrics = variant().metrics
    found = [(n, replace(metrics, makespan=time * MS)) for n, time in enumerate(makespans, 1)]
    assert knee_of(found) == knee
    assert beyond(found, knee) == said
