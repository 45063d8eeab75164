"""The search for plans: never worse than where it began, honest about what it tried, and stoppable."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.control import Cancelled, Control
from engine.hlo.reading import read_here
from engine.passes.rows import Row, rows_of
from engine.session.evaluation import Evaluator
from engine.session.plan import Plan
from engine.session.tuning import Choices, tune

FIG3 = Path(__file__).parents[2] / "data" / "partitioned" / "mlp_fig3.hlo"


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    return Evaluator(read_here(FIG3.read_bytes(), str(FIG3)))


def test_best_is_the_fastest_of_what_was_tried(evaluator: Evaluator) -> None:
    found = tune(evaluator, rounds=1)
    times = [t.makespan for t in found.trials if t.makespan is not None]
    assert found.finished
    assert found.best.metrics.makespan == min(*times, found.base.metrics.makespan)
    assert found.best.metrics.makespan < evaluator.evaluate(Choices().plan(None)).metrics.makespan
    assert len({t.plan for t in found.trials}) == len(found.trials)


def test_a_cancel_keeps_what_was_found(evaluator: Evaluator) -> None:
    steps = 0

    def stop() -> bool:
        nonlocal steps
        steps += 1
        return steps > 40

    found = tune(evaluator, control=Control(stop=stop))
    assert not found.finished
    assert found.best.metrics.makespan <= found.base.metrics.makespan


def test_a_cancel_before_anything_was_found_is_a_cancel(evaluator: Evaluator) -> None:
    with pytest.raises(Cancelled):
        tune(evaluator, control=Control(stop=lambda: True))


def test_plans_that_do_not_fit_are_listed_with_the_reason(evaluator: Evaluator) -> None:
    found = tune(evaluator, memory_cap=1 << 20, rounds=1)
    assert found.best is found.base
    assert all(t.makespan is None and "memory cap" in t.why_not for t in found.trials)


def test_turning_a_verdict_twice_gives_it_back_to_the_gate(evaluator: Evaluator) -> None:
    start = Choices()
    rows = [r for r in _rows(evaluator, start) if r.candidates[0].gate is not None]
    for row in rows:
        once = start.turned(row)
        (again,) = (r for r in _rows(evaluator, once) if r.key == row.key)
        assert again.candidates[0].chosen != row.candidates[0].chosen
        assert once.turned(again) == start


def _rows(evaluator: Evaluator, choices: Choices) -> tuple[Row, ...]:
    return rows_of(evaluator.transform(choices.plan(None)).candidates)


def test_plan_text_of_choices() -> None:
    choices = Choices().with_option("ring", "both").with_option("unroll", "2").with_option("ring", "auto")
    assert choices.plan(5) == Plan("decompose{unroll=2},async-permute,fuse{policy=overlap}", "bottom-up", None, 5)
