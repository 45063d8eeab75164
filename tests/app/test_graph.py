"""The graph in the whole window, with real workers and the real table of actions."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from engine.layout.outline import Side
from engine.session import edits
from engine.session.plan import Plan
from tests.app.waiting import LONG
from tests.places import SAMPLES

SAMPLE = SAMPLES / "mlp_chain_forward_4_f32.hlo"


def test_passes_are_stepped_through_by_keys(qtbot: QtBot, explorer: Explorer) -> None:
    graph = explorer.graph
    explorer.open(str(SAMPLE))
    qtbot.waitUntil(lambda: explorer.store.state.active_variant is not None, timeout=LONG)
    explorer.perform("show-graph")
    qtbot.waitUntil(lambda: graph.picture is not None, timeout=LONG)
    plan = Plan("decompose{gate=off},async-permute", "bottom-up")
    explorer.store.become("Plan", edits.planned(explorer.store.state, "B", plan))
    qtbot.waitUntil(lambda: not any(e.pending for e in explorer.store.state.entries), timeout=LONG)
    graph.after.setFocus()
    QTest.keyClick(graph.after, Qt.Key.Key_N)
    assert graph.comparison is not None
    assert graph.comparison.title.endswith("decompose")
    qtbot.waitUntil(lambda: graph.whole is not None and bool((graph.whole.sides == Side.AFTER).any()), timeout=LONG)
    assert graph.before.isVisible()
    assert graph.whole is not None
    gone = [graph.whole.names[i] for i in np.flatnonzero(graph.whole.sides == Side.BEFORE)]
    assert any("all-reduce" in name for name in gone)
    QTest.keyClick(graph.after, Qt.Key.Key_B)
    qtbot.waitUntil(lambda: not graph.before.isVisible(), timeout=LONG)
    QTest.keyClick(graph.after, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    assert graph.tools.said.startswith("bookmark 2 set")
    QTest.keyClick(graph.after, Qt.Key.Key_T)
    assert graph.table.isVisible()
    scale = graph.camera.scale
    QTest.keyClick(graph.after, Qt.Key.Key_Plus)
    assert graph.camera.scale > scale
    QTest.keyClick(graph.after, Qt.Key.Key_2)
    assert graph.camera.scale == pytest.approx(scale)


def test_a_search_in_the_window_reaches_the_graph(qtbot: QtBot, explorer: Explorer) -> None:
    graph = explorer.graph
    explorer.open(str(SAMPLE))
    qtbot.waitUntil(lambda: explorer.store.state.active_variant is not None, timeout=LONG)
    explorer.perform("show-graph")
    qtbot.waitUntil(lambda: graph.picture is not None, timeout=LONG)
    explorer.window.timelines.search.line.setText("dot")
    assert len(graph.after.over.found)
    assert "found in the graph" in graph.tools.said
    qtbot.waitUntil(lambda: not any(e.pending for e in explorer.store.state.entries), timeout=LONG)
