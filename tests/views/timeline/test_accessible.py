"""The timelines through the platform's accessibility interface, as a screen reader sees them."""

from __future__ import annotations

from PySide6.QtCore import QPoint
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from tests.views.fake_host import FakeHost
from views.accessible import MOST, PRESS
from views.timeline.axis import TimeRange
from views.timeline.things import ZOOM
from views.timeline.view import TimelineView

NAME, DESCRIPTION = QAccessible.Text.Name, QAccessible.Text.Description


def interface(view: TimelineView) -> QAccessibleInterface:
    found = QAccessible.queryAccessibleInterface(view)
    assert found is not None
    return found


def children(view: TimelineView) -> list[QAccessibleInterface]:
    whole = interface(view)
    return [whole.child(number) for number in range(whole.childCount())]


def test_every_visible_slice_is_a_child_with_name_times_and_lane(view: TimelineView) -> None:
    whole = interface(view)
    assert whole.role() == QAccessible.Role.List
    assert whole.text(NAME) == "Timelines"
    made = children(view)
    headings = [child for child in made if child.role() == QAccessible.Role.Heading]
    assert [child.text(NAME)[0] for child in headings] == ["A", "B"]
    slices = [child for child in made if child.role() == QAccessible.Role.ListItem]
    assert 10 < len(slices) <= MOST
    assert any("einsum" in child.text(NAME) for child in slices)
    assert any(child.text(NAME).startswith("waits for ") for child in slices)
    for child in slices:
        assert "µs" in child.text(DESCRIPTION)
        assert " on " in child.text(DESCRIPTION)
        assert child.isValid()


def test_children_lie_where_they_are_drawn_and_are_found_there(view: TimelineView) -> None:
    whole = interface(view)
    child = next(c for c in children(view) if "einsum" in c.text(NAME) and c.rect().width() > 8)
    at = child.rect().center()
    local = view.viewport().mapFromGlobal(at)
    hit = view.hit_at(local.toPointF())
    assert hit is not None
    assert whole.childAt(at.x(), at.y()).text(NAME) == child.text(NAME)
    assert whole.indexOfChild(child) >= 0


def test_actions_select_zoom_and_activate(view: TimelineView, host: FakeHost) -> None:
    child = next(c for c in children(view) if "einsum" in c.text(NAME))
    actions = child.actionInterface()
    assert actions.actionNames() == [PRESS, ZOOM]
    assert not child.state().selected
    name = child.text(NAME)
    actions.doAction(PRESS)
    assert host.store.state.selection
    assert next(c for c in children(view) if c.text(NAME) == name).state().selected
    span = view.range.span
    next(c for c in children(view) if c.text(NAME) == name).actionInterface().doAction(ZOOM)
    assert view.range.span < span
    heading = next(c for c in children(view) if c.text(NAME).startswith("A"))
    heading.actionInterface().doAction(PRESS)
    assert host.store.state.active == "A"


def test_the_focus_moves_with_the_keys(view: TimelineView) -> None:
    view.setFocus()
    view.moves.select_first()
    first = interface(view).focusChild()
    assert first is not None
    assert first.state().selected
    assert first.state().focusable
    said = first.text(NAME) + first.text(DESCRIPTION)
    view.moves.step_slice(1)
    second = interface(view).focusChild()
    assert second is not None
    assert second.text(NAME) + second.text(DESCRIPTION) != said


def test_a_zoom_brings_other_children_and_never_too_many(view: TimelineView) -> None:
    before = interface(view).childCount()
    view.range.show(0, view.range.limit // 50)
    close = children(view)
    assert 0 < len(close) < before
    assert interface(view).child(len(close)) is None
    assert interface(view).childAt(-5, -5) is None
    assert all(child.isValid() for child in close)


def test_nothing_is_left_of_it_when_the_view_is_gone(qtbot: QtBot, host: FakeHost) -> None:
    made = TimelineView(host, TimeRange())
    made.resize(400, 300)
    made.show()
    whole = interface(made)
    assert whole.childCount()
    QTest.mouseMove(made.viewport(), QPoint(200, 100))
    made.close()
    made.deleteLater()
