from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem
from pytestqt.qtbot import QtBot

from engine.session import edits
from engine.session.plan import MachineSpec
from engine.timeline.timeline import Metrics
from tests.views.fake_host import FakeHost
from tests.views.synthetic import BEST, variant
from views.compare.compare import ComparePane
from views.compare.figures import all_plans, pareto
from views.filling import filling
from views.steps import round_steps
from views.theme import DARK


def test_a_visible_table_measures_its_columns_once_when_filled_again(qtbot: QtBot) -> None:
    class Measuring(QTableWidget):
        measured = 0

        def sizeHintForColumn(self, column: int) -> int:  # noqa: N802 # Qt's name
            self.measured += 1
            return super().sizeHintForColumn(column)

    def fill(text: str) -> None:
        table.setRowCount(50)
        for row in range(50):
            for column in range(3):
                table.setItem(row, column, QTableWidgetItem(text))
        QCoreApplication.processEvents()

    table = Measuring(0, 3)
    qtbot.addWidget(table)
    header = table.horizontalHeader()
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
    modes = [header.sectionResizeMode(column) for column in range(3)]
    table.show()
    fill("short")
    table.measured = 0
    with filling(table):
        fill("a text that is longer")
    QCoreApplication.processEvents()
    assert table.measured < 20
    assert [header.sectionResizeMode(column) for column in range(3)] == modes
    assert table.columnWidth(1) >= table.fontMetrics().horizontalAdvance("a text that is longer")
    table.hide()


def metrics(makespan: int, memory: int = 10**9) -> Metrics:
    return replace(variant(1).metrics, makespan=makespan, peak_memory=memory)


class TestCompare:
    def test_cells_take_the_colours_of_another_theme(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = ComparePane(host)
        qtbot.addWidget(pane)
        host.theme = DARK
        QCoreApplication.sendEvent(pane, QEvent(QEvent.Type.PaletteChange))
        item = pane.table.item(0, 1)
        assert item is not None
        assert item.foreground().color().name() == QColor(DARK.text).name()

    def test_what_failed_has_a_row_with_its_reason(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = ComparePane(host)
        qtbot.addWidget(pane)
        session = host.store.state
        why = "'banana' is no topology: 4x4x4 was expected"
        *others, last = session.entries
        failed = replace(last, error=why)
        host.store.reset(replace(session, entries=(*others, replace(failed, variant=None)), active=others[0].key))
        assert pane.table.rowCount() == len(session.entries)
        row = pane.table.rowCount() - 1
        texts = [item.text() for n in range(pane.table.columnCount()) if (item := pane.table.item(row, n)) is not None]
        assert texts[0] == last.key
        assert why in texts
        pane.table.cellClicked.emit(row, 0)
        assert host.store.state.active == last.key
        host.store.reset(replace(session, entries=tuple(replace(e, variant=None, error=why) for e in session.entries)))
        assert pane.table.rowCount() == len(session.entries)
        assert pane.text.text() == "No variant has a result."
        host.store.reset(session)
        assert pane.table.columnSpan(row, 6) == 1

    def test_the_best_of_each_column_is_marked(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = ComparePane(host)
        qtbot.addWidget(pane)
        texts = [item.text() for row in range(2) if (item := pane.table.item(row, 5)) is not None]
        assert not texts[0].startswith("✓")
        assert texts[1].startswith("✓")
        change = [item.text() for row in range(2) if (item := pane.table.item(row, 11)) is not None]
        assert change[0] == ""
        assert change[1].startswith("−")

    def test_figures_stand_right_of_the_name_and_long_names_are_told(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = ComparePane(host)
        qtbot.addWidget(pane)
        header = pane.table.horizontalHeader()
        titles = [pane.table.model().headerData(header.logicalIndex(n), Qt.Orientation.Horizontal) for n in range(6)]
        assert titles == ["", "module", "variant", "makespan", "change", "exposed"]
        last = pane.table.model().headerData(header.logicalIndex(header.count() - 1), Qt.Orientation.Horizontal)
        assert last == "passes"
        items = [pane.table.item(1, column) for column in range(pane.table.columnCount())]
        assert all(item.toolTip() for item in items if item is not None and item.text())

    @pytest.mark.parametrize("name", ["B", "a name that is longer than any column, and then some"])
    def test_where_it_is_narrow_what_matters_less_goes_and_nothing_scrolls_sideways(
        self, qtbot: QtBot, host: FakeHost, name: str
    ) -> None:
        host.store.settle(entries=edits.renamed(host.store.state, "B", name).entries)
        pane = ComparePane(host)
        qtbot.addWidget(pane)
        pane.chart.hide()
        pane.show()
        for width, missed in ((1800, set[str]()), (900, {"passes"}), (520, {"passes", "budget", "scheduler"})):
            pane.resize(width, 300)
            QCoreApplication.processEvents()
            titles = [
                pane.table.model().headerData(n, Qt.Orientation.Horizontal)
                for n in range(pane.table.columnCount())
                if not pane.table.isColumnHidden(n)
            ]
            assert not missed & set(titles)
            assert {"variant", "makespan", "change", "exposed", "peak memory"} <= set(titles)
            assert pane.table.horizontalScrollBar().maximum() == 0
            named = pane.table.item(1, 2)
            assert named is not None
            assert named.toolTip().startswith(name)
            assert ("passes: decompose" in named.toolTip()) == bool(missed)
        pane.close()

    def test_try_all_fills_as_results_come_and_a_tried_plan_can_be_added(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = ComparePane(host)
        qtbot.addWidget(pane)
        pane.try_all()
        assert len(host.wanted) == len(all_plans(BEST)) == 48
        plan = host.wanted[5].plan
        host.learn(host.wanted[5], metrics(10))
        host.learn(host.wanted[6], "no order fits")
        assert [line.key for line in pane.lines()] == ["A", "B", ""]
        item = pane.table.item(2, 1)
        assert item is not None
        pane.table.itemActivated.emit(item)
        added = host.store.state.active_entry
        assert added is not None
        assert (added.key, added.plan) == ("C", plan)

    def test_nothing_dominates_what_is_on_the_front(self) -> None:
        points = [(3.0, 1.0), (1.0, 3.0), (2.0, 2.0), (2.5, 2.5), (1.0, 4.0)]
        assert [points[n] for n in pareto(points)] == [(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]

    def test_ticks_are_round(self) -> None:
        assert round_steps(0.0, 10.0, 5) == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]

    def test_while_all_are_planned_anew_what_they_took_is_told_without_a_gain(
        self, qtbot: QtBot, host: FakeHost
    ) -> None:
        pane = ComparePane(host)
        qtbot.addWidget(pane)
        host.store.become("Chip", edits.on_machine(host.store.state, MachineSpec("b200")))
        assert pane.lines() == ()
        assert pane.text.text() == "Waiting for A, B."
        rows = [[item.text() for n in range(13) if (item := pane.table.item(row, n))] for row in range(2)]
        assert [row[0] for row in rows] == ["A", "B"]
        assert all("planning …" in row for row in rows)
        assert all(any(text.startswith("out of date: ") for text in row) for row in rows)
        assert not any("%" in text for row in rows for text in row)

    def test_a_file_that_could_not_be_read_is_not_waited_for(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = ComparePane(host)
        qtbot.addWidget(pane)
        entries = tuple(replace(e, variant=None) for e in host.store.state.entries)
        host.store.reset(replace(host.store.state, entries=entries))
        assert pane.text.text() == "Waiting for the first variant."
        host.store.settle(problem="no HLO")
        assert pane.text.text() == "The file could not be read."
