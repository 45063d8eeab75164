from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QHeaderView, QLabel, QPushButton, QTableWidget, QTableWidgetItem
from pytestqt.qtbot import QtBot

from engine.chips.budget import Budget, Kind
from engine.passes.fusion import Alternative, Fusion
from engine.quantities import parse_bytes
from engine.session import edits
from engine.session.lookup import lookup
from engine.session.plan import AS_LOADED, Plan
from engine.session.session import Session
from engine.timeline.timeline import Category, Metrics
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.budget.budget import BUDGETS, BudgetPane, knee_of, plans_over
from views.candidates.collectives import Collectives
from views.candidates.rows import Verdict, override_of, rows_of_sites
from views.compare.compare import ComparePane
from views.compare.differences import DifferencePane
from views.compare.figures import all_plans, pareto
from views.filling import filling
from views.fusion.harm import fusion_rows, taken
from views.fusion.pane import FusionPane
from views.guide import Guide
from views.hlo_text.folds import Folds
from views.hlo_text.lines import MOST_DIFFED, Printed, definitions, pieces, printed
from views.hlo_text.pane import HloPane
from views.hlo_text.steps import DifferenceSteps
from views.inspector.facts import exposed_by, selected_instruction, times_of, why_exposed
from views.inspector.inspector import Inspector
from views.jobs.log import JobLog
from views.palette import match
from views.plan.plan_line import PlanLine
from views.ports import JobState
from views.status import StatusBar
from views.steps import round_steps
from views.theme import DARK
from views.timeline.accessible import description_of
from views.timeline.table import SliceModel, TablePane
from views.welcome import Problem, Welcome

BEST = Plan("decompose,async-permute", "bottom-up")


@pytest.fixture
def host() -> FakeHost:
    return host_of(variant(1, plan=AS_LOADED, name="as loaded"), variant(1, overlap=True, plan=BEST, name="decomposed"))


def active_plan(host: FakeHost) -> Plan:
    entry = host.store.state.active_entry
    assert entry is not None
    return entry.plan


class TestPlanLine:
    def test_a_choice_is_one_undoable_step(self, qtbot: QtBot, host: FakeHost) -> None:
        line = PlanLine(host)
        qtbot.addWidget(line)
        box = line.choices["ring"]
        box.setCurrentText("both")
        box.activated.emit(box.currentIndex())
        assert active_plan(host).passes == "decompose{ring=both},async-permute"
        assert host.store.undo() == "Ring both"
        assert box.currentText() == "auto"

    def test_dragging_the_budget_is_one_step(self, qtbot: QtBot, host: FakeHost) -> None:
        line = PlanLine(host)
        qtbot.addWidget(line)
        for value in (3, 2, 1):
            line.budget.setValue(value)
        assert active_plan(host).budget is not None
        assert line.budget_text.text().startswith("1")
        host.store.undo()
        assert active_plan(host).budget is None
        assert "chip's" in line.budget_text.text()

    def test_limits_by_kind_stay_when_the_total_changes(self, qtbot: QtBot, host: FakeHost) -> None:
        line = PlanLine(host)
        qtbot.addWidget(line)
        by_kind = Budget(total=8, by_kind=((Kind.PERMUTE, 2),))
        state = edits.planned(host.store.state, "B", replace(BEST, budget=by_kind))
        host.store.become("Budget", state)
        line.budget.setValue(3)
        assert active_plan(host).budget == replace(by_kind, total=3)

    def test_another_total_is_what_the_command_line_means_by_a_number(self, qtbot: QtBot, host: FakeHost) -> None:
        line = PlanLine(host)
        qtbot.addWidget(line)
        line.budget.setValue(3)
        entry = host.store.state.active_entry
        assert entry is not None
        assert entry.plan.budget == Budget(3)
        assert str(entry.budget) == "permute=4,gather=2,total=3"
        assert str(entry.budget) in line.budget_text.toolTip()

    def test_options_of_a_pass_that_is_off_cannot_be_chosen(self, qtbot: QtBot, host: FakeHost) -> None:
        line = PlanLine(host)
        qtbot.addWidget(line)
        host.store.become("Activate A", edits.activated(host.store.state, "A"))
        assert line.choices["decompose"].currentText() == "off"
        assert not line.choices["unroll"].isEnabled()
        box = line.choices["decompose"]
        box.setCurrentText("rolled")
        box.activated.emit(box.currentIndex())
        assert active_plan(host).passes == "decompose{form=rolled},async-permute"
        assert line.choices["unroll"].isEnabled()

    def test_an_empty_window_has_no_budget(self, qtbot: QtBot, host: FakeHost) -> None:
        line = PlanLine(FakeHost())
        qtbot.addWidget(line)
        assert not line.budget.isEnabled()
        assert line.budget.value() == line.budget.minimum()
        assert line.budget_text.text() == ""

    def test_a_memory_cap_is_read_and_nonsense_refused(self, qtbot: QtBot, host: FakeHost) -> None:
        line = PlanLine(host)
        qtbot.addWidget(line)
        line.cap.setText("28GiB")
        line.cap.editingFinished.emit()
        assert active_plan(host).memory_cap == 28 << 30
        line.cap.setText("a lot")
        line.cap.editingFinished.emit()
        assert active_plan(host).memory_cap == 28 << 30
        assert parse_bytes(line.cap.text()) == 28 << 30  # what is in force, not what was refused
        line.show()
        line.cap.editingFinished.emit()
        assert line.cap_trouble.isVisible(), "it stays until the next one is typed"
        assert "28GiB" in line.cap_trouble.text()
        QTest.keyClick(line.cap, Qt.Key.Key_1)
        assert not line.cap_trouble.isVisible()
        line.cap.setText("")
        line.cap.editingFinished.emit()
        assert active_plan(host).memory_cap is None

    def test_another_chip_is_for_every_variant(self, qtbot: QtBot, host: FakeHost) -> None:
        line = PlanLine(host)
        qtbot.addWidget(line)
        line.chip.setCurrentText("tpu-v5p")
        line.chip.activated.emit(line.chip.currentIndex())
        assert {e.machine.chip for e in host.store.state.entries} == {"tpu-v5p"}
        assert all(e.stale for e in host.store.state.entries)

    def test_it_wraps_into_more_rows_where_it_is_narrow(self, qtbot: QtBot, host: FakeHost) -> None:
        line = PlanLine(host)
        qtbot.addWidget(line)
        assert line.heightForWidth(1280) > line.heightForWidth(2560)


class TestCollectives:
    def test_the_gains_have_a_heading(self, qtbot: QtBot, host: FakeHost) -> None:
        listed = Collectives(host)
        qtbot.addWidget(listed)
        assert listed.heading.isVisibleTo(listed) == listed.view.isVisibleTo(listed)
        assert listed.heading.text() == "saves in a step"
        empty = Collectives(FakeHost())
        qtbot.addWidget(empty)
        assert not empty.heading.isVisibleTo(empty)

    def test_alike_sites_are_one_row(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = Collectives(host)
        qtbot.addWidget(pane)
        assert pane.model.rowCount() == 2
        assert pane.model.index(0, 0).data(Qt.ItemDataRole.AccessibleTextRole).startswith("all-gather-start.0.0 ×6")
        assert pane.model.item(0).rowCount() == 6

    def test_picking_selects_every_site_of_the_row(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = Collectives(host)
        qtbot.addWidget(pane)
        pane.view.setCurrentIndex(pane.model.index(0, 0))
        assert len(host.store.state.selection.instructions) == 6

    def test_an_override_takes_the_row_and_undoes_as_one(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = Collectives(host)
        qtbot.addWidget(pane)
        pane.view.setCurrentIndex(pane.model.index(1, 0))
        pane.override("force")
        given = edits.options_of(active_plan(host), "decompose")
        assert given is not None
        assert given["force"].count(";") == 5
        assert override_of(active_plan(host), pane.picked()[0]) == "force"
        assert host.store.undo() == "Force 6 sites"
        assert active_plan(host) == BEST

    def test_rows_come_by_gain_with_the_sum_over_sites_and_trips(self) -> None:
        sites = variant(1).candidates
        more = tuple(replace(site, trips=3) for site in sites)
        first, second = rows_of_sites(more)
        assert first.verdict == Verdict.CHOSEN
        assert second.verdict == Verdict.LEFT
        assert first.gain == 3 * sum(s.gate.gain for s in first.sites if s.gate is not None)
        mixed = rows_of_sites((sites[0], replace(sites[2], chosen=False)))
        assert mixed[0].verdict == Verdict.MIXED

    def test_it_says_what_to_do_when_there_is_nothing(self, qtbot: QtBot) -> None:
        pane = Collectives(FakeHost())
        qtbot.addWidget(pane)
        assert "Open a module" in pane.note.text()
        none = host_of(replace(variant(1, plan=AS_LOADED), candidates=()))
        pane = Collectives(none)
        qtbot.addWidget(pane)
        assert "decompose" in pane.note.text()


class TestInspector:
    def test_it_shows_cost_with_its_source_times_and_links(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = Inspector(host)
        qtbot.addWidget(pane)
        host.store.become("Select", edits.selected(host.store.state, "A", (2003,)))
        above, below = pane.above.text(), pane.below.text()
        assert "bf16[4096" in above
        assert "model" in above
        assert "In each variant" in below
        assert "all-gather-done.0.0" in below
        assert "model.py" in below.replace("\u200b", "")
        pane.below.linkActivated.emit("instruction:2004")
        assert host.store.state.selection.instructions == (2004,)

    def test_it_says_why_a_transfer_is_exposed(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = Inspector(host)
        qtbot.addWidget(pane)
        host.store.become("Select", edits.selected(host.store.state, "A", (2001,)))
        assert "Why exposed" in pane.below.text()
        assert "nothing independent runs beside it" in why_exposed(host.store.state)[0]
        assert not pane.bars.isHidden()
        assert "gain" in pane.bars.accessibleDescription()
        alike = host_of(variant(1, plan=AS_LOADED), variant(1, plan=BEST))
        alike.store.become("Select", edits.selected(alike.store.state, "A", (2001,)))
        (sentence,) = why_exposed(alike.store.state)
        assert sentence.startswith("A, B: compute waits")

    def test_slack_and_exposed_are_per_variant(self, host: FakeHost) -> None:
        host.store.become("Select", edits.selected(host.store.state, "A", (2101,)))
        apart, beside = times_of(host.store.state)
        assert (apart.key, beside.key) == ("A", "B")
        assert apart.exposed > beside.exposed
        found = host.store.state.entries[0].variant
        assert found is not None
        assert exposed_by(found, frozenset()) == 0

    def test_a_selected_instruction_is_read_without_parsing_the_module_that_a_worker_sent(self) -> None:
        made = pickle.loads(pickle.dumps(variant(1)))
        session = edits.selected(host_of(made).store.state, "A", (2003,))
        found = selected_instruction(session)
        assert found is not None
        assert found[1].name == "dot.0.0"
        assert found[1] == variant(1).program.module.instructions[2003]
        assert "proto" not in pickle.loads(pickle.dumps(made)).program.module.__dict__
        assert "proto" not in made.program.module.__dict__

    def test_without_a_selection_it_is_about_the_variant(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = Inspector(host)
        qtbot.addWidget(pane)
        assert "lower bound" in pane.above.text()
        assert pane.bars.isHidden()


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


def test_two_variants_that_take_the_same_time_are_said_not_to_differ(qtbot: QtBot) -> None:
    host = host_of(variant(1), variant(1))
    pane = DifferencePane(host)
    qtbot.addWidget(pane)
    assert "Nothing differs" in pane.text.text()
    assert pane.table.isHidden()
    other = host_of(variant(1), variant(2))
    assert "Nothing differs" not in DifferencePane(other).text.text()


class TestLog:
    def test_a_running_job_has_progress_and_can_be_cancelled(self, qtbot: QtBot) -> None:
        host = FakeHost()
        pane = JobLog(host)
        qtbot.addWidget(pane)
        pane.show()
        assert pane.empty.isVisible()
        host.set_jobs(JobState(7, "planning B", 0.5, "scheduling"))
        assert not pane.grab().isNull()
        pane.table.cellClicked.emit(0, 0)
        assert host.cancelled == []
        pane.table.cellClicked.emit(0, 3)
        assert host.cancelled == [7]
        host.set_jobs(JobState(7, "planning B", 0.5, "", "failed", "no order fits a budget of 1"))
        item = pane.table.item(0, 1)
        assert item is not None
        assert item.text() == "no order fits a budget of 1"
        pane.grab()
        pane.table.cellClicked.emit(0, 3)
        assert host.cancelled == [7]
        pane.close()

    def test_the_status_bar_shows_the_oldest_job(self, qtbot: QtBot) -> None:
        host = FakeHost()
        bar = StatusBar(host)
        qtbot.addWidget(bar)
        host.set_jobs(JobState(2, "planning C"), JobState(1, "planning B", 0.25))
        assert bar.title.text() == "planning B (+1)"
        QTest.mouseClick(bar.cancel, Qt.MouseButton.LeftButton)
        assert host.cancelled == [1]


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


class TestDifferences:
    def test_the_largest_difference_comes_first_and_a_row_selects(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = DifferencePane(host)
        qtbot.addWidget(pane)
        pane.show()
        qtbot.waitExposed(pane)
        first = pane.table.item(0, 1)
        assert first is not None
        assert first.text().startswith("−")
        pane.table.setFocus()
        pane.table.setCurrentCell(1, 0)
        name = pane.table.item(1, 0)
        assert name is not None
        found = host.store.state.entries[0].variant
        assert found is not None
        chosen = host.store.state.selection.instructions
        assert [lookup(found).name(i) for i in chosen] == [name.text()]
        host.store.become("Activate A", edits.activated(host.store.state, "A"))
        assert "is the base" in pane.text.text()
        pane.close()


class TestHlo:
    def test_a_line_is_cut_without_losing_anything(self) -> None:
        line = '  ROOT %dot.1 = bf16[8,4]{1,0} dot(%a, %b), lhs_contracting_dims={1}, metadata={op_name="a(b)=c"}'
        found = pieces(line)
        assert "".join(piece.text for piece in found) == line
        kinds = {piece.kind: piece.text for piece in found}
        assert kinds["opcode"] == "dot"
        assert kinds["text"] == '"a(b)=c"'
        assert definitions([line]) == {"dot.1": 0}

    def test_side_by_side_marks_what_was_added_and_removed(self) -> None:
        found = printed(["a", "new", "b", "c"], ["a", "b", "old", "c"])
        assert found.beside is not None
        assert found.text.lines == ("a", "new", "b", "", "c")
        assert found.beside.lines == ("a", "", "b", "old", "c")
        assert dict(found.text.tints) == {1: "added"}
        assert dict(found.beside.tints) == {3: "removed"}
        assert found.text.numbers == (0, 1, 2, -1, 3)

    def test_the_selection_is_marked_and_a_click_selects(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = HloPane(host)
        qtbot.addWidget(pane)
        pane.resize(900, 400)
        pane.show()
        qtbot.waitExposed(pane)
        pane.both.setChecked(True)
        pane.active.picked.emit("dot.1.0")
        assert host.store.state.selection.instructions == (2103,)
        picture = pane.active.grab()
        assert not picture.isNull()
        pane.search.setText("transpose")
        pane.step_hit()
        assert pane.title.text().startswith("line")
        pane.close()

    def test_computations_fold_and_open_for_what_is_looked_for(self, qtbot: QtBot, host: FakeHost) -> None:
        text = [
            "HloModule m, x={()->f32[]}",
            "",
            "%body (a: f32[]) -> f32[] {",
            "  %a = f32[] x()",
        ]
        text += ["  ROOT %b = f32[] y()", "}", "", "ENTRY %main () -> f32[] {", "  ROOT %c = f32[] z()", "}"]
        folds = Folds.of(text)
        assert folds.blocks == {2: 5, 7: 9}
        assert folds.toggled(2).shown().tolist() == [0, 1, 2, 6, 7, 8, 9]
        assert folds.toggled(2).toggled(2).shown().tolist() == folds.toggled(4).shown().tolist() == list(range(10))
        assert folds.all_folded().opened_to(frozenset({4})).folded == {7}
        pane = HloPane(host)
        qtbot.addWidget(pane)
        pane.resize(900, 400)
        pane.show()
        qtbot.waitExposed(pane)
        view = pane.active
        view.set_text(printed(text).text)
        pane.outline.setChecked(True)
        assert view.folds.folded == {2, 7}
        height = view._line_height()
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(6, 2 * height + height // 2))
        assert view.folds.folded == {7}
        assert not host.store.state.selection
        pane.search.setText("z()")
        pane.step_hit()
        assert view.folds.folded == frozenset()
        assert not view.grab().isNull()
        pane.close()

    def test_texts_side_by_side_stay_side_by_side(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = HloPane(host)
        qtbot.addWidget(pane)
        pane.resize(900, 400)
        pane.show()
        qtbot.waitExposed(pane)
        pane.both.setChecked(True)
        left, right = ["%f {", "  a", "}", "ENTRY %e {", "  b", "}"], ["%f {", "  a", "  new", "}", "ENTRY %e {", "}"]
        shown = printed(right, left)
        pane.active.set_text(shown.text)
        pane.base.set_text(shown.beside)
        pane.fold_all(folded=True)
        assert pane.active.folds.folded == pane.base.folds.folded
        assert pane.active.folds.shown().tolist() == pane.base.folds.shown().tolist()
        pane.close()

    def test_a_step_goes_to_the_next_difference_and_past_the_last_to_the_first(
        self, qtbot: QtBot, host: FakeHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pane = _two_texts(qtbot, host, monkeypatch)
        assert not pane.steps.isVisible()
        pane.step(1)
        assert pane.both.isChecked()
        every = (range(2, 4), range(20, 21), range(42, 43))
        assert pane.steps.count.text() == "3 differences"
        for number, rows in [*enumerate(every), (0, every[0])]:
            pane.step(1)
            assert pane.steps.count.text() == f"{number + 1} of 3"
            assert pane.active._framed == pane.base._framed == rows
            top, page = pane.active.verticalScrollBar().value(), pane.active.verticalScrollBar().pageStep()
            assert top <= rows.start < top + page
        pane.step(-1)
        assert pane.active._framed == every[-1]
        assert not pane.grab().isNull()

        # What is selected is where the next step starts.
        pane.active.picked.emit("dot.1.0")
        assert pane.steps.count.text() == "3 differences"
        assert not pane.active._framed
        pane.step(-1)
        assert pane.active._framed == every[0]
        pane.active.picked.emit("add.1.0")
        assert pane.steps.count.text() == "2 of 3"
        pane.step(1)
        assert pane.active._framed == every[2]
        pane.close()

    def test_texts_without_difference_or_too_long_for_it_have_no_steps(self, qtbot: QtBot, host: FakeHost) -> None:
        steps = DifferenceSteps(host)
        qtbot.addWidget(steps)
        steps.show_of(printed(["a", "b"], ["a", "b"]))
        steps.step(1)
        assert steps.count.text() == "no difference"
        assert not steps.next.isEnabled()
        long = [f"{n}" for n in range(MOST_DIFFED)]
        shown = printed(long, ["0"])
        assert not shown.compared
        assert shown.beside is not None
        assert shown.beside.lines[:2] == ("0", "")
        assert shown.beside.numbers[:2] == (0, -1)
        assert not shown.text.tints
        steps.show_of(shown)
        assert steps.count.text() == "too long to be compared"

    def test_enter_finds_onwards_and_shift_enter_back_on_either_side(
        self, qtbot: QtBot, host: FakeHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pane = _two_texts(qtbot, host, monkeypatch)
        pane.both.setChecked(True)
        forward, back = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier
        for wanted, steps in (
            ("old", ((forward, 42), (forward, 42))),
            ("new", ((forward, 2), (forward, 3), (back, 2))),
        ):
            pane.search.setText(wanted)
            for held, row in steps:
                QTest.keyClick(pane.search, Qt.Key.Key_Return, held)
                assert pane.active._marked == {row}
        assert pane.title.text() == "line 3 of 43, 1 of 2 found"
        pane.search.setText("no such thing")
        pane.step_hit()
        assert pane.title.text() == "nothing found"
        QTest.keyClick(pane.search, Qt.Key.Key_Escape)
        assert pane.focusWidget() is pane.active
        pane.close()

    def test_the_focus_comes_back_to_the_text_when_it_was_printed(
        self, qtbot: QtBot, host: FakeHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pane = _two_texts(qtbot, host, monkeypatch)
        arrivals: list[Callable[[Printed | str], None]] = []
        monkeypatch.setattr(host, "print_text", lambda _, beside, arrived: arrivals.append(arrived))
        pane.activateWindow()
        pane.active.setFocus()
        qtbot.waitUntil(pane.active.hasFocus)
        pane.both.setChecked(True)
        assert not pane.active.isVisible()
        assert pane.hasFocus()
        arrivals[0](printed(["a"], ["b"]))
        assert pane.active.hasFocus()
        pane.close()


def _two_texts(qtbot: QtBot, host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> HloPane:
    """A pane whose texts differ in rows 2 and 3, 20 and 42."""
    alike = [f"  line {n}" for n in range(40)]
    base = [*alike, "  old"]
    alike[10] = "  %dot.1.0 = bf16[] dot()"
    base[10], base[18] = alike[10], "  %add.1.0 = f32[] add()"
    active = [*alike[:2], "  new", "  new", *alike[2:]]
    active[20] = "  %add.1.0 = bf16[] add()"
    monkeypatch.setattr(
        host, "print_text", lambda _, beside, arrived: arrived(printed(active, base if beside else None))
    )
    pane = HloPane(host)
    qtbot.addWidget(pane)
    pane.resize(900, 200)
    pane.show()
    qtbot.waitExposed(pane)
    return pane


class TestFusion:
    def test_decisions_come_by_harm_and_an_alternative_can_be_taken(self, qtbot: QtBot) -> None:
        apart = Alternative("leave dot.1.0 apart", "apart", "dot.1.0")
        done = ("all-gather-done.1.0",)
        made = variant(1, plan=replace(BEST, passes=f"{BEST.passes},fuse"))
        fusions = (
            Fusion("add.0.0", 2004, ("add.0.0",), "kLoop", "", (), (), 1 << 20),
            Fusion("add.1.0", 2103, ("dot.1.0", "add.1.0"), "kOutput", "dot.1.0", done, done, 1 << 20, (apart,)),
        )
        host = host_of(variant(1, plan=AS_LOADED), replace(made, fusions=fusions))
        pane = FusionPane(host)
        qtbot.addWidget(pane)
        pane.show()
        qtbot.waitExposed(pane)
        assert [row.fusion.name for row in fusion_rows(replace(made, fusions=fusions))] == ["add.1.0", "add.0.0"]
        assert "1 of 2 decisions expose transfers" in pane.text.text()
        pane.table.setCurrentCell(1, 0)
        pane.table.setCurrentCell(0, 0)
        plan = host.wanted[-1].plan
        assert plan.passes.endswith("fuse{apart=dot.1.0}")
        host.learn(host.wanted[-1], metrics(10))
        gain = pane.choices.itemAtPosition(0, 1)
        assert gain is not None
        label = gain.widget()
        assert isinstance(label, QLabel)
        assert label.text().startswith("−")
        button = pane.choices.itemAtPosition(0, 2)
        assert button is not None
        take = button.widget()
        assert isinstance(take, QPushButton)
        take.click()
        assert active_plan(host) == plan
        assert host.store.undo_label == "Leave dot.1.0 apart"
        assert taken(plan, apart) == plan
        pane.close()

    def test_it_says_when_nothing_is_fused(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = FusionPane(host)
        qtbot.addWidget(pane)
        assert "fuses nothing" in pane.text.text()


class TestTable:
    def test_rows_and_selection_follow_both_ways(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = TablePane(host)
        qtbot.addWidget(pane)
        pane.show()
        qtbot.waitExposed(pane)
        found = host.store.state.active_variant
        assert found is not None
        assert pane.model.rowCount() == len(found.timeline)
        pane.view.selectRow(3)
        assert host.store.state.selection
        host.store.become("Select", edits.selected(host.store.state, "A", (2103,)))
        assert pane.model.index(pane.view.currentIndex().row(), 0).data() == "dot.1.0"
        pane.view.sortByColumn(4, Qt.SortOrder.DescendingOrder)
        assert pane.model.index(0, 1).data() == "loop"
        pane.close()

    def test_a_copy_of_loop_state_is_told_from_its_loop(self) -> None:
        made = variant(1)
        timeline = made.timeline
        loop = int(np.flatnonzero(timeline.category == Category.LOOP)[0])
        inside = int(np.flatnonzero(timeline.instruction == 14)[0])
        instruction, category = timeline.instruction.copy(), timeline.category.copy()
        instruction[inside], category[inside] = 9000, Category.COPY
        model = SliceModel()
        model.set_variant(replace(made, timeline=replace(timeline, instruction=instruction, category=category)))
        assert [model.text(row, 1) for row in (loop, inside)] == ["loop", "copy of loop state"]
        assert model.text(inside, 0) == "while.1"

    def test_the_timelines_in_words(self, host: FakeHost) -> None:
        host.store.become("Select", edits.selected(host.store.state, "A", (2001,)))
        text = description_of(host.store.state)
        assert "B, decomposed, active" in text
        assert "against A" in text
        assert "Selected in B" in text
        assert description_of(Session()) == "No module is open."


def test_the_welcome_lists_recent_files(qtbot: QtBot) -> None:
    host = FakeHost()
    host.paths = ("/models/step.hlo",)
    pane = Welcome(host)
    qtbot.addWidget(pane)
    buttons = {b.text(): b for b in pane.findChildren(type(pane._recover))}
    buttons["step.hlo  —  models"].click()
    buttons["Open a sample"].click()
    assert host.opened == ["/models/step.hlo"]
    assert host.performed == ["open-sample"]


def test_a_problem_is_told_in_full(qtbot: QtBot) -> None:
    host = FakeHost()
    pane = Problem(host)
    qtbot.addWidget(pane)
    host.store.reset(edits.begun("/models/step.hlo"))
    host.store.settle(problem="step.hlo:3:7: expected ')'")
    assert pane.title.text() == "step.hlo could not be opened"
    assert pane.text.text() == "step.hlo:3:7: expected ')'"


def test_the_guide_ticks_off_what_was_done(qtbot: QtBot, host: FakeHost) -> None:
    guide = Guide(host)
    guide.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    qtbot.addWidget(guide)
    assert [mark.text() for mark in guide._marks][1] == "☐"
    host.store.become("Select", edits.selected(host.store.state, "A", (2001,)))
    assert [mark.text() for mark in guide._marks][1] == "☑"


@pytest.mark.parametrize(
    ("typed", "title", "fits"), [("undo", "Undo", True), ("csl", "Copy as command line", True), ("xq", "Undo", False)]
)
def test_the_palette_matches_letters_in_order(typed: str, title: str, fits: bool) -> None:
    assert (match(typed, title) is not None) == fits
