"""How the window says that a search ended."""

from __future__ import annotations

from app.exporting import Found
from app.outcomes import nothing_faster
from engine.session.plan import Plan
from engine.session.tuning import Trial
from views.export.port import Progress


def test_a_search_without_a_possible_plan_has_no_best() -> None:
    trials = (Trial(Plan("decompose"), None, "it cannot be"),)
    outcome = nothing_faster(Progress(trials=trials), Found(None, finished=True, dimensions=()), None)
    assert not outcome.good
    assert outcome.said == "Nothing to tune: no plan that was tried is possible; no bundle was written."
    assert "bundle a plan" not in outcome.way_out
