"""The graph through the platform's accessibility interface, as a screen reader sees it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QAccessible, QAccessibleInterface
from pytestqt.qtbot import QtBot

from engine.session.plan import AS_LOADED
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.accessible import MOST, PRESS
from views.graph.pane import GraphPane
from views.graph.things import TOGGLE

NAME, DESCRIPTION = QAccessible.Text.Name, QAccessible.Text.Description


@pytest.fixture
def host() -> FakeHost:
    return host_of(variant(1, plan=AS_LOADED, name="as loaded"), variant(1, overlap=True, name="decomposed"))


@pytest.fixture
def pane(qtbot: QtBot, host: FakeHost) -> Iterator[GraphPane]:
    made = GraphPane(host)
    qtbot.addWidget(made)
    made.resize(1000, 640)
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.close()


def children(pane: GraphPane) -> list[QAccessibleInterface]:
    whole = QAccessible.queryAccessibleInterface(pane.after)
    assert whole is not None
    return [whole.child(number) for number in range(whole.childCount())]


def groups(pane: GraphPane) -> list[QAccessibleInterface]:
    return [c for c in children(pane) if TOGGLE in c.actionInterface().actionNames()]


def test_every_visible_node_is_a_child_where_it_is_drawn(pane: GraphPane) -> None:
    pane.moves.fit()
    made = children(pane)
    assert pane.picture is not None
    assert len(made) == min(MOST, len(pane.picture) - 1)
    whole = QAccessible.queryAccessibleInterface(pane.after)
    assert whole.text(NAME) == "graph"
    for child in made:
        assert child.text(NAME)
        assert "read by" in child.text(DESCRIPTION)
        assert child.rect().isValid()
    leaf = next(c for c in made if "group" not in c.text(DESCRIPTION))
    at = leaf.rect().center()
    assert whole.childAt(at.x(), at.y()).text(NAME) == leaf.text(NAME)


def test_groups_open_and_nodes_are_selected_by_their_actions(pane: GraphPane, host: FakeHost) -> None:
    pane.moves.fit()
    count = len(children(pane))
    closed = next(c for c in groups(pane) if c.text(DESCRIPTION).startswith("closed group of "))
    name = closed.text(NAME)
    closed.actionInterface().doAction(TOGGLE)
    pane.moves.fit()
    assert len(children(pane)) > count
    opened = next(c for c in groups(pane) if c.text(NAME) == name)
    assert opened.text(DESCRIPTION).startswith("open group of ")
    leaf = next(c for c in children(pane) if "group" not in c.text(DESCRIPTION))
    said = leaf.text(NAME)
    leaf.actionInterface().doAction(PRESS)
    assert host.store.state.selection
    chosen = [c.text(NAME) for c in children(pane) if c.state().selected]
    assert said in chosen
    focus = QAccessible.queryAccessibleInterface(pane.after).focusChild()
    assert focus is not None
    assert focus.state().selected


def test_the_focus_follows_edges(pane: GraphPane, host: FakeHost) -> None:
    pane.moves.fit()
    leaf = next(
        c for c in children(pane) if "group" not in c.text(DESCRIPTION) and "read by 0" not in c.text(DESCRIPTION)
    )
    leaf.actionInterface().doAction(PRESS)
    whole = QAccessible.queryAccessibleInterface(pane.after)
    before = whole.focusChild().text(NAME)
    pane.moves.follow_edges(forward=True)
    pane.marking.show(reveal=True)
    after = whole.focusChild()
    assert after is not None
    assert after.text(NAME) != before
