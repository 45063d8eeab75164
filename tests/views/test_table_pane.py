from __future__ import annotations

from dataclasses import replace

import numpy as np
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from engine.session import edits
from engine.session.session import Session
from engine.timeline.timeline import Category
from tests.views.fake_host import FakeHost
from tests.views.synthetic import variant
from views.timeline.accessible import description_of
from views.timeline.table import SliceModel, TablePane


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
