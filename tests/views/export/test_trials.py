"""Rows of what was tried stay under the mouse: nothing is put in order by a click, nor moved by what comes above."""

from __future__ import annotations

from dataclasses import replace

from pytestqt.qtbot import QtBot

from engine.chips.budget import Budget
from engine.session.plan import Plan
from engine.session.tuning import Trial
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.export.trials_table import TrialsTable


def trial(makespan_us: int) -> Trial:
    metrics = replace(variant(1).metrics, makespan=makespan_us * 1_000_000)
    return Trial(Plan("decompose", "bottom-up", Budget(makespan_us)), metrics)


def test_the_picked_row_stays_where_it_is_while_faster_plans_come(qtbot: QtBot) -> None:
    host: FakeHost = host_of(variant(1))
    table = TrialsTable(host)
    qtbot.addWidget(table)
    table.resize(700, 200)
    table.show()
    qtbot.waitExposed(table)
    found = tuple(trial(n) for n in range(100, 160))
    table.show_trials(found, None, None)
    table.selectRow(3)
    picked, place = table.plan, table.rowViewportPosition(3)
    table.show_trials((*found, trial(1), trial(2)), None, None)
    assert table.currentRow() == 5
    assert table.plan == picked
    assert table.rowViewportPosition(5) == place
    table.clearSelection()
    table.scrollToTop()
    table.show_trials((*found, trial(1), trial(2), trial(3)), None, None)
    assert table.verticalScrollBar().value() == 0
    table.close()
