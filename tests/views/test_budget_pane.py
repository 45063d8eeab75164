from __future__ import annotations

from dataclasses import replace

from pytestqt.qtbot import QtBot

from engine.timeline.timeline import Metrics
from tests.views.fake_host import FakeHost, active_plan
from tests.views.synthetic import variant
from views.budget.budget import BUDGETS, BudgetPane, knee_of, plans_over


def metrics(makespan: int, memory: int = 10**9) -> Metrics:
    return replace(variant(1).metrics, makespan=makespan, peak_memory=memory)


class TestBudget:
    def test_the_knee_is_the_smallest_budget_that_is_nearly_best(self) -> None:
        found = [(1, metrics(2000)), (2, metrics(1009)), (3, metrics(1000)), (4, metrics(1001))]
        assert knee_of(found) == 2
        assert knee_of([]) is None

    def test_it_measures_when_it_is_looked_at_and_takes_a_clicked_budget(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = BudgetPane(host)
        qtbot.addWidget(pane)
        assert not host.wanted
        pane.show()
        pane.came_into_view()
        assert len(host.wanted) == len(BUDGETS)
        entry = host.store.state.active_entry
        assert entry is not None
        for budget, plan in zip(BUDGETS, plans_over(entry), strict=True):
            host.learn(entry.asking(plan), metrics(2000 // min(budget, 4)))
        assert "knee is at 4" in pane.text.text()
        pane.chart.clicked.emit(3)
        chosen = active_plan(host).budget
        assert chosen is not None
        assert chosen.total == 3
        pane.close()
