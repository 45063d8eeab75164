from __future__ import annotations

from pytestqt.qtbot import QtBot

from engine.session import edits
from engine.session.lookup import lookup
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.compare.differences import DifferencePane


def test_two_variants_that_take_the_same_time_are_said_not_to_differ(qtbot: QtBot) -> None:
    host = host_of(variant(1), variant(1))
    pane = DifferencePane(host)
    qtbot.addWidget(pane)
    assert "Nothing differs" in pane.text.text()
    assert pane.table.isHidden()
    other = host_of(variant(1), variant(2))
    assert "Nothing differs" not in DifferencePane(other).text.text()


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
