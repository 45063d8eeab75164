"""Where the budget binds is marked: what had to wait and what held it are told on hovering, and a click selects it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from engine.schedule.binding import Held
from engine.session.variant import Variant
from engine.timeline.timeline import Category, LaneKind
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.inspector.inspector import Inspector
from views.timeline.axis import TimeRange
from views.timeline.budget_marks import budget_marks, card_of_mark, sentence
from views.timeline.scene import AXIS
from views.timeline.stack import RowKind
from views.timeline.view import TimelineView


def held_variant() -> Variant:
    """A variant whose third transfer waited for its second one."""
    made = variant(1, overlap=True, name="decomposed")
    timeline = made.timeline
    moving = [n for n, lane in enumerate(timeline.lanes) if lane.kind == LaneKind.TRANSFER]
    rows = np.flatnonzero(np.isin(timeline.lane, moving) & (timeline.category != Category.EXPOSED))
    ids = timeline.instruction[rows[np.argsort(timeline.start[rows])]]
    start = int(timeline.start[timeline.instruction == ids[2]].min())
    held = Held(int(ids[2]), start // 2, 4, "permutes", (int(ids[1]),))
    return replace(made, held=(held,))


@pytest.fixture
def host() -> FakeHost:
    return host_of(held_variant())


@pytest.fixture
def view(qtbot: QtBot, host: FakeHost) -> Iterator[TimelineView]:
    made = TimelineView(host, TimeRange())
    qtbot.addWidget(made)
    made.resize(1200, 500)
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.close()


def shown(view: TimelineView) -> Variant:
    found = view.session.entries[0].variant
    assert found is not None
    return found


def mark_place(view: TimelineView) -> QPoint:
    row = next(row for row in view.stack.rows if row.kind == RowKind.IN_FLIGHT)
    time = int(budget_marks(shown(view)).time[0])
    return QPoint(round(view.window_of().x_of(time)), row.top + AXIS + 4)


def test_each_showing_of_a_transfer_that_waited_is_marked_once(view: TimelineView) -> None:
    made = shown(view)
    marks = budget_marks(made)
    rows = np.flatnonzero(made.timeline.instruction == made.held[0].instruction)
    assert set(marks.time.tolist()) <= set(made.timeline.start[rows].tolist())
    assert len(set(marks.time.tolist())) == len(marks) >= 1
    assert ((marks.time - marks.since) <= made.held[0].wait).all()


def test_hovering_a_mark_says_what_had_to_wait_and_lights_what_held_it(view: TimelineView) -> None:
    QTest.mouseMove(view.viewport(), mark_place(view))
    what, why = view.overlay.card
    names = sentence(shown(view), shown(view).held[0])
    assert (what, why) == names
    assert "could have started" in what
    assert what.endswith("earlier")
    assert why.startswith("4 of 4 permutes in flight (")
    assert any(
        int(shown(view).timeline.instruction[hit.row]) == shown(view).held[0].instruction for hit in view.overlay.lit
    )
    QTest.mouseMove(view.viewport(), QPoint(400, AXIS + 5))
    assert not view.overlay.lit


def test_a_click_on_a_mark_selects_what_had_to_wait(view: TimelineView, host: FakeHost) -> None:
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, mark_place(view))
    assert host.store.state.selection.instructions == (shown(view).held[0].instruction,)


def test_the_inspector_says_the_same(qtbot: QtBot, view: TimelineView, host: FakeHost) -> None:
    pane = Inspector(host)
    qtbot.addWidget(pane)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, mark_place(view))
    marked = view.mark_at(mark_place(view).toPointF())
    assert marked is not None
    assert card_of_mark(view.session, marked)[0] in pane.below.text()
    assert "Budget, in A" in pane.below.text()


def test_marks_are_drawn_in_the_budgets_colour(view: TimelineView) -> None:
    image = view.grab().toImage()
    at, ratio = mark_place(view), image.devicePixelRatio()
    budget = view._host.theme.budget
    near = {image.pixelColor(round((at.x() + dx) * ratio), round((at.y() - 1) * ratio)).name() for dx in (-1, 0, 1)}
    assert budget.lower() in near
