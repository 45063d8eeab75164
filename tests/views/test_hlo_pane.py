from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from tests.patience import LONG
from tests.views.fake_host import FakeHost
from views.hlo_text.folds import Folds
from views.hlo_text.lines import MOST_DIFFED, Printed, definitions, pieces, printed
from views.hlo_text.pane import HloPane
from views.hlo_text.steps import DifferenceSteps


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
        qtbot.waitUntil(pane.active.hasFocus, timeout=LONG)
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
