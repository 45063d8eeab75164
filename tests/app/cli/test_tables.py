"""What the tables say of a variant, whatever its name is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.cli.tables import show_trials, show_variants
from engine.cost.costs import Origin
from engine.session.plan import Plan
from engine.session.tuning import Trial, Tuning
from tests.views.synthetic import variant


@pytest.mark.parametrize(
    ("origin", "mark"), [(Origin.MODEL, ""), (Origin.COMPILER, " [compiler]"), (Origin.MEASURED, " [measured]")]
)
def test_a_row_says_where_its_times_come_from(origin: Origin, mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    base, other = variant(name="as loaded"), variant(name="with [red] brackets")
    show_variants([base, replace(other, timeline=replace(other.timeline, source=origin))])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "brackets" in line]
    assert row.strip().startswith(f"with [red] brackets{mark}  ")


def test_plans_of_one_time_share_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    base = variant(name="as loaded")
    slower = replace(base.metrics, makespan=3 * base.metrics.makespan)
    passes = "decompose{unroll=2},async-permute"
    trials = [Trial(Plan(passes, name), base.metrics) for name in ("bottom-up", "top-down")]
    show_trials(Tuning(base, base, (*trials, Trial(Plan("", "memory"), slower)), finished=True))
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "chip's" in line]
    assert [(row[0], row[-1]) for row in rows] == [("decompose{unroll=2},", "2"), ("–", "1")]
