from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from engine.session import edits
from engine.session.plan import AS_LOADED
from tests.views.fake_host import host_of
from tests.views.synthetic import variant
from views.graph.neighbourhood import MOST, neighbourhood
from views.graph.pane import GraphPane

LARGE = max(variant(1, layers=120).program.graphs.values(), key=len)


@given(st.integers(0, len(LARGE) - 1), st.integers(1, 8))
def test_operands_stand_left_of_users_and_nobody_on_another(node: int, hops: int) -> None:
    found = neighbourhood(LARGE, (node,), hops)
    assert node in found.layer
    assert len(found.layer) <= MOST
    assert all(found.layer[operand] < found.layer[user] for operand, user in found.edges)
    places = {(found.layer[n], found.place[n]) for n in found.layer}
    assert len(places) == len(found.layer)
    assert min(found.layer.values()) == 0


def test_one_hop_is_operands_and_users() -> None:
    node = LARGE.names.index("dot.3.1")
    found = neighbourhood(LARGE, (node,), 1)
    assert {LARGE.names[n] for n in found.layer} == {"add.3.0", "all-gather-done.3.1", "dot.3.1", "add.3.1"}
    assert found.left_out == 0


def test_too_many_are_counted() -> None:
    found = neighbourhood(LARGE, range(MOST), 2)
    assert len(found.layer) == MOST
    assert found.left_out > 0


def test_the_pane_follows_the_selection_and_a_click_moves_it(qtbot: QtBot) -> None:
    host = host_of(variant(1, plan=AS_LOADED), variant(1, overlap=True))
    pane = GraphPane(host)
    qtbot.addWidget(pane)
    pane.resize(900, 400)
    pane.show()
    qtbot.waitExposed(pane)
    assert "Select an instruction" in pane.text.text()
    host.store.become("Select", edits.selected(host.store.state, "A", (2103,)))
    assert pane.text.text().startswith("B: dot.1.0 and")
    assert not pane.view.grab().isNull()
    found = host.store.state.entries[1].variant
    assert found is not None
    wanted = found.program.graphs[1].names.index("add.1.0")
    points = (QPoint(x, y) for x in range(0, pane.view.width(), 6) for y in range(0, pane.view.height(), 6))
    at = next(point for point in points if pane.view.node_at(point.toPointF()) == wanted)
    QTest.mouseClick(pane.view, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)
    assert host.store.state.selection.instructions == (2104,)
    QTest.keyClick(pane.view, Qt.Key.Key_Space)
    pane.close()
