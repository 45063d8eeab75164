from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from engine.chips.budget import Budget, Kind
from engine.quantities import parse_bytes
from engine.session import edits
from engine.session.session import Facts
from tests.views.fake_host import FakeHost, active_plan
from tests.views.synthetic import BEST
from views.plan.plan_line import PlanLine


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

    @pytest.mark.parametrize(
        ("field", "bad", "words"),
        [
            ("topology", "4x", "4x4x4"),
            ("topology", "3x3x3", "27 chips"),
            ("mesh", "x=3", "mesh x=3 has 3 devices"),
            ("mesh", "nonsense", "x=8,y=8"),
        ],
    )
    def test_a_machine_that_cannot_be_is_refused_once(
        self, qtbot: QtBot, host: FakeHost, field: str, bad: str, words: str
    ) -> None:
        before = host.store.state
        facts = Facts("m", 10, 1, 8, scheduled=False, sha256="")
        host.store.settle(modules=tuple(replace(module, facts=facts) for module in before.modules))
        line = PlanLine(host)
        qtbot.addWidget(line)
        line.show()
        typed = line.topology if field == "topology" else line.mesh
        old = typed.text()
        for _ in range(2):  # leaving the field says the same once more
            typed.setText(bad)
            typed.editingFinished.emit()
            assert typed.text() == old
            assert words in line.machine_trouble.text()
            assert line.machine_trouble.isVisible()
        typed.editingFinished.emit()
        assert line.machine_trouble.isVisible()
        assert host.store.state.entries == before.entries
        QTest.keyClick(typed, Qt.Key.Key_1)
        assert not line.machine_trouble.isVisible()
        line.mesh.setText("x=2,y=4")
        line.topology.setText("2x2x2")
        line.mesh.editingFinished.emit()
        assert {(e.machine.topology, e.machine.mesh) for e in host.store.state.entries} == {("2x2x2", "x=2,y=4")}

    def test_why_something_was_not_taken_goes_with_what_was_in_force(self, qtbot: QtBot, host: FakeHost) -> None:
        line = PlanLine(host)
        qtbot.addWidget(line)
        line.show()

        def refuse() -> None:
            line.mesh.setText("nonsense")
            line.mesh.editingFinished.emit()
            assert line.machine_trouble.isVisible()

        before = host.store.state.active_entry
        assert before is not None
        facts = Facts("m", 10, 1, 8, scheduled=False, sha256="")
        modules = tuple(replace(module, facts=facts) for module in host.store.state.modules)
        host.store.settle(modules=modules)
        refuse()
        host.store.become("Select", edits.selected(host.store.state, "B", (1,)))
        assert line.machine_trouble.isVisible(), "a selection is not another machine"
        line.cap.setText("28GiB")
        line.cap.editingFinished.emit()
        assert not line.machine_trouble.isVisible()
        refuse()
        host.store.undo()
        assert not line.machine_trouble.isVisible()
        refuse()
        host.store.redo()
        assert not line.machine_trouble.isVisible()
        refuse()
        QTest.keyClick(line.topology, Qt.Key.Key_Escape)
        assert not line.machine_trouble.isVisible()

    def test_escape_drops_what_was_typed(self, qtbot: QtBot, host: FakeHost) -> None:
        line = PlanLine(host)
        qtbot.addWidget(line)
        line.show()
        before = host.store.state.entries
        for field in (line.topology, line.mesh, line.cap):
            old = field.text()
            QTest.keyClicks(field, "4x")
            assert field.text() != old
            QTest.keyClick(field, Qt.Key.Key_Escape)
            assert field.text() == old
            field.editingFinished.emit()
        assert host.store.state.entries == before
        assert not line.machine_trouble.isVisible()
        assert not line.cap_trouble.isVisible()

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
