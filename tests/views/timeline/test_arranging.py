"""Lanes are dragged, pinned, hidden and put back; what is pinned stays in view, and every step can be undone."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest

from engine.session import edits
from tests.views.fake_host import FakeHost
from views.timeline.overlay import Hit, slice_rect
from views.timeline.scene import AXIS
from views.timeline.stack import HEADER, Row
from views.timeline.view import TimelineView

LEFT = Qt.MouseButton.LeftButton
NO_KEYS = Qt.KeyboardModifier.NoModifier


@pytest.fixture
def size() -> QSize:
    """So low that not all lanes fit."""
    return QSize(1000, 240)


def labels(view: TimelineView, entry: int = 0) -> list[str]:
    return [row.label for row in view.stack.of(entry) if row.label]


def row_of(view: TimelineView, label: str, entry: int = 0) -> Row:
    placed = view.stack.placed(entry, view.verticalScrollBar().value())
    return next(row for row in placed if row.label == label)


def name_at(view: TimelineView, label: str, entry: int = 0) -> QPoint:
    """The middle of a lane's name."""
    row = row_of(view, label, entry)
    return QPoint(30, row.top + row.height // 2 + AXIS - view.verticalScrollBar().value())


def drag(view: TimelineView, label: str, to: QPoint) -> None:
    area = view.viewport()
    QTest.mousePress(area, LEFT, NO_KEYS, name_at(view, label))
    QTest.mouseMove(area, name_at(view, label) + QPoint(0, 8))
    QTest.mouseMove(area, to)
    QTest.mouseRelease(area, LEFT, NO_KEYS, to)


def test_a_lane_that_is_dragged_by_its_name_moves_in_every_variant(view: TimelineView, host: FakeHost) -> None:
    before = labels(view)
    drag(view, "memory", name_at(view, "compute") - QPoint(0, 8))
    assert labels(view)[0] == "memory"
    assert labels(view, 1)[0] == "memory"
    assert host.store.undo_label == "Move lane memory"
    assert view.measure is None
    host.store.undo()
    assert labels(view) == before


def test_a_click_on_a_name_moves_nothing(view: TimelineView, host: FakeHost) -> None:
    QTest.mouseClick(view.viewport(), LEFT, NO_KEYS, name_at(view, "memory"))
    assert host.store.undo_label is None
    assert not view.lanes.carries


def test_a_carried_lane_shows_where_it_would_lie(view: TimelineView) -> None:
    area = view.viewport()
    QTest.mousePress(area, LEFT, NO_KEYS, name_at(view, "memory"))
    QTest.mouseMove(area, name_at(view, "compute") - QPoint(0, 8))
    row = row_of(view, "compute")
    assert view.overlay.drop == row.top + AXIS
    QTest.mouseRelease(area, LEFT, NO_KEYS, name_at(view, "memory"))
    assert view.overlay.drop is None


def test_pinned_lanes_stay_under_the_header_while_others_scroll(view: TimelineView, host: FakeHost) -> None:
    QTest.mouseMove(view.viewport(), name_at(view, "in flight"))
    view.lanes.pin()
    assert labels(view)[0] == "in flight"
    view.verticalScrollBar().setValue(40)
    row = row_of(view, "in flight")
    assert row.top - 40 == HEADER
    found = view.row_at(float(AXIS + HEADER + 3))
    assert found is not None
    assert found[0].label == "in flight"
    for scroll in range(0, view.verticalScrollBar().maximum() + 1, 7):
        placed = view.stack.placed(0, scroll)
        last = placed[-1].bottom
        assert all(row.bottom <= last for row in placed)
        assert placed[0].top >= min(scroll, view.stack.of(0)[0].top)
    host.store.undo()
    assert labels(view)[0] == "compute"


def test_what_is_pinned_is_drawn_where_it_is_hit(view: TimelineView) -> None:
    QTest.mouseMove(view.viewport(), name_at(view, "ICI x+"))
    view.lanes.pin()
    view.verticalScrollBar().setValue(30)
    found = view.session.entries[0].variant
    assert found is not None
    lane = next(n for n, lane in enumerate(found.timeline.lanes) if lane.name == "ICI x+")
    row = int(np.flatnonzero(found.timeline.lane == lane)[0])
    place = slice_rect(view.scene(), Hit(0, row))
    assert place is not None
    assert place.top() == AXIS + HEADER
    assert view.hit_at(place.center()) == Hit(0, row)


def test_keys_act_on_the_lane_of_the_selection(view: TimelineView, host: FakeHost) -> None:
    view.moves.select_first()
    assert view.anchor is not None
    view.lanes.move(1)
    assert labels(view, 1)[1] == "compute"
    view.lanes.move(-1)
    assert labels(view, 1)[0] == "compute"
    view.lanes.move(-1)
    assert labels(view, 1)[0] == "compute"
    view.lanes.hide()
    assert "compute" not in labels(view)
    view.lanes.show_all()
    assert labels(view)[0] == "compute"
    assert host.store.state.lanes.hidden == ()


def test_a_right_click_means_what_is_under_it(view: TimelineView, host: FakeHost) -> None:
    copied, named = QAction("Copy names"), QAction("Name the variant …")
    view.lanes.of_slice, view.lanes.of_header = [copied], [named]
    variant = host.store.state.entries[0].variant
    assert variant is not None
    row = row_of(view, "compute")
    place = slice_rect(view.scene(), Hit(0, int(np.flatnonzero(variant.timeline.lane == row.lane)[0])))
    assert place is not None
    at = place.center()
    hit = view.hit_at(at)
    assert hit is not None
    view.lanes.mean(at)
    assert view.anchor == hit
    assert host.store.state.selection.instructions
    assert host.store.state.active == "A"
    menu = view.lanes.menu(at)
    assert menu is not None
    titles = [action.text() for action in menu.actions() if action.text()]
    assert titles[:3] == ["Zoom to it", "Copy names", "Pin under the header"]
    header = QPointF(300, AXIS + 3)
    host.store.become("Activate", edits.activated(host.store.state, "B"))
    view.lanes.mean(header)
    assert host.store.state.active == "A"
    headed = view.lanes.menu(header)
    assert headed is not None
    assert headed.actions() == [named]
    for made in (menu, headed):
        made.deleteLater()


def test_a_lanes_menu_says_what_can_be_done(view: TimelineView, host: FakeHost) -> None:
    menu = view.lanes.menu(QPointF(name_at(view, "in flight")))
    assert menu is not None
    titles = [action.text() for action in menu.actions() if action.text()]
    assert titles[:4] == ["Pin under the header", "Move up", "Move down", "Hide"]
    menu.actions()[0].trigger()
    assert host.store.state.lanes.pinned == ("in flight",)
    again = view.lanes.menu(QPointF(name_at(view, "in flight")))
    assert again is not None
    assert again.actions()[0].text() == "Unpin"
    again.actions()[-1].trigger()
    assert labels(view)[0] == "compute"
    assert view.lanes.menu(QPointF(30, AXIS + 3)) is None
    for made in (menu, again):
        made.deleteLater()
