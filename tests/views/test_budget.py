"""The sentence over the chart of budgets holds whatever the curve does after its knee."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from tests.views.fake_host import host_of
from tests.views.synthetic import variant
from views.budget.budget import BudgetPane, beyond, knee_of, plans_over
from views.compare.compare import ComparePane
from views.inspector.sections import about_variant

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


def test_budgets_that_are_not_possible_are_said_and_not_waited_for(qtbot: QtBot) -> None:
    made = variant(name="one")
    host = host_of(made)
    pane = BudgetPane(host)
    qtbot.addWidget(pane)
    entry = host.store.state.entries[0]
    plans = plans_over(entry)
    for plan in plans[:4]:
        host.learn(entry.asking(plan), "no order fits the cap")
    assert "4 of 16 budgets predicted" in pane.text.text() or "Predicting" in pane.text.text()
    for plan in plans[4:]:
        host.learn(entry.asking(plan), made.metrics)
    assert "knee is at 5" in pane.text.text()
    assert pane.text.text().endswith("; 4 not possible: no order fits the cap")
    assert pane.again.isHidden()
    for plan in plans[4:]:
        host.learn(entry.asking(plan), "no order fits the cap")
    assert "no budget gives a schedule: no order fits the cap" in pane.text.text()


def test_without_transfers_there_is_no_knee(qtbot: QtBot) -> None:
    made = variant(name="one")
    metrics = replace(made.metrics, transfer_union=0, comm=0, exposed=0, makespan=3 * MS)
    host = host_of(replace(made, metrics=metrics))
    pane = BudgetPane(host)
    qtbot.addWidget(pane)
    for plan in plans_over(host.store.state.entries[0]):
        host.learn(host.store.state.entries[0].asking(plan), metrics)
    assert pane.text.text() == "A: no transfers, so nothing to overlap: 3.00 ms with any budget"
    said = about_variant(host.store.state)
    assert "no transfers to overlap" in said
    assert "100%" not in said


def test_combinations_that_are_not_possible_are_counted(qtbot: QtBot) -> None:
    made = variant(name="one")
    host = host_of(made)
    pane = ComparePane(host)
    qtbot.addWidget(pane)
    pane.try_all()
    asked = list(host.wanted)
    for one in asked[:3]:
        host.learn(one, "no order fits the cap")
    host.learn(asked[3], made.metrics)
    assert pane.text.text().startswith(
        f"4 of {len(asked)} combinations predicted, 3 of them not possible (no order fits the cap)"
    )
