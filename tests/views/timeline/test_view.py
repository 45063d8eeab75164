from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from engine.session import edits
from engine.session.lanes import Lanes
from engine.session.plan import Plan
from engine.session.session import Session
from engine.timeline.timeline import Category
from tests.patience import LONG
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.ports import JobState
from views.theme import DARK, LIGHT
from views.timeline.axis import TimeRange
from views.timeline.overlay import Hit, lit_by, slice_rect
from views.timeline.overview import Overview
from views.timeline.paint_header import state_text
from views.timeline.scene import AXIS, GUTTER
from views.timeline.stack import HEADER, RowKind, stack_of
from views.timeline.view import TimelineView


def point_of(view: TimelineView, entry: int, instruction: int, category: Category | None = None) -> QPoint:
    """The middle of the first slice of an instruction."""
    found = view.session.entries[entry].variant
    assert found is not None
    timeline = found.timeline
    rows = np.flatnonzero(timeline.instruction == instruction)
    if category is not None:
        rows = rows[timeline.category[rows] == category]
    rect = slice_rect(view.scene(), Hit(entry, int(rows[0])))
    assert rect is not None
    return rect.center().toPoint()


def click(qtbot: QtBot, view: TimelineView, at: QPoint, keys: Qt.KeyboardModifier | None = None) -> None:
    modifier = keys if keys is not None else Qt.KeyboardModifier.NoModifier
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, modifier, at)


def test_a_click_selects_in_every_variant(qtbot: QtBot, view: TimelineView, host: FakeHost) -> None:
    click(qtbot, view, point_of(view, 0, 2003))
    assert host.store.state.selection.instructions == (2003,)
    assert host.store.state.active == "A"
    click(qtbot, view, point_of(view, 1, 2013), Qt.KeyboardModifier.ControlModifier)
    assert host.store.state.selection.instructions == (2013,)
    click(qtbot, view, point_of(view, 1, 2003), Qt.KeyboardModifier.ControlModifier)
    assert set(host.store.state.selection.instructions) == {2013, 2003}


def test_a_click_on_nothing_selects_nothing(qtbot: QtBot, view: TimelineView, host: FakeHost) -> None:
    click(qtbot, view, point_of(view, 0, 2003))
    click(qtbot, view, QPoint(view.viewport().width() - 3, AXIS + HEADER + 6))
    assert not host.store.state.selection


def test_a_click_on_a_gap_selects_the_transfer_it_waits_for(qtbot: QtBot, view: TimelineView, host: FakeHost) -> None:
    click(qtbot, view, point_of(view, 0, 2002, Category.EXPOSED))
    assert host.store.state.selection.instructions == (2001,)


def test_hovering_a_gap_lights_its_transfer(qtbot: QtBot, view: TimelineView) -> None:
    QTest.mouseMove(view.viewport(), point_of(view, 0, 2002, Category.EXPOSED))
    hover = view.overlay.hover
    assert hover is not None
    found = view.session.entries[0].variant
    assert found is not None
    lit = list(lit_by(view.scene(), hover))
    assert [int(found.timeline.instruction[row]) for row in lit] == [2001]
    assert view.overlay.card[0].startswith("exposed: waits")


def test_nothing_follows_a_mouse_that_has_left(view: TimelineView) -> None:
    QTest.mouseMove(view.viewport(), point_of(view, 0, 2003))
    assert view.overlay.card
    QCoreApplication.sendEvent(view.viewport(), QEvent(QEvent.Type.Leave))
    assert view.overlay.hover is None
    assert view.overlay.cursor is None


def test_a_drag_measures(qtbot: QtBot, view: TimelineView) -> None:
    area, left = view.viewport(), Qt.MouseButton.LeftButton
    y = AXIS + HEADER + 10
    with qtbot.waitSignal(view.measured):
        QTest.mousePress(area, left, Qt.KeyboardModifier.NoModifier, QPoint(GUTTER + 100, y))
        QTest.mouseMove(area, QPoint(GUTTER + 150, y))
        QTest.mouseMove(area, QPoint(GUTTER + 200, y))
    QTest.mouseRelease(area, left, Qt.KeyboardModifier.NoModifier, QPoint(GUTTER + 200, y))
    window = view.window_of()
    assert view.measure == (window.time_at(GUTTER + 100), window.time_at(GUTTER + 200))
    QTest.keyClick(view, Qt.Key.Key_Escape)
    assert view.measure is None


def test_a_header_activates_pins_and_folds(qtbot: QtBot, view: TimelineView, host: FakeHost) -> None:
    click(qtbot, view, QPoint(200, AXIS + 10))
    assert host.store.state.active == "A"
    top, _ = stack_of(host.store.state.entries).span_of(1)
    click(qtbot, view, QPoint(view.viewport().width() - 10, AXIS + top + 10))
    assert host.store.state.base == "B"
    click(qtbot, view, QPoint(10, AXIS + 10))
    assert host.store.state.entries[0].collapsed
    assert host.store.undo() == "Fold or open A"
    assert host.store.undo() == "Compare with B"


def test_headers_stick_while_their_entry_is_in_view(qtbot: QtBot, view: TimelineView, host: FakeHost) -> None:
    view.resize(1000, 300)
    view.verticalScrollBar().setValue(60)
    click(qtbot, view, QPoint(200, AXIS + 4))
    assert host.store.state.active == "A"


def test_wheel_with_ctrl_zooms_at_the_mouse(view: TimelineView) -> None:
    before = view.window_of()
    time = before.time_at(500)
    view.range.zoom(4.0, time)
    assert abs(view.window_of().x_of(time) - 500) < 1.0


def test_keys_walk_along_the_lane_and_along_edges(view: TimelineView, host: FakeHost) -> None:
    view.moves.step_slice(1)
    assert host.store.state.selection.instructions == (2003,)
    view.moves.step_slice(1)
    assert host.store.state.selection.instructions == (2004,)
    view.moves.follow_edges(forward=True)
    assert host.store.state.selection.instructions == (2013,)
    view.moves.follow_edges(forward=False)
    assert host.store.state.selection.instructions == (2004,)
    view.moves.step_slice(-1)
    assert host.store.state.selection.instructions == (2003,)


def test_focus_centres_and_then_fits(view: TimelineView) -> None:
    view.moves.step_slice(1)
    view.range.zoom(4.0, view.range.limit)
    span = view.range.span
    view.moves.focus_selection()
    assert view.range.span == span
    view.moves.focus_selection()
    assert view.range.span < span
    view.moves.show_all()
    assert view.range.start == 0


def test_measuring_the_selection(view: TimelineView) -> None:
    view.moves.step_slice(1)
    view.moves.measure_selection()
    found = view.session.entries[1].variant
    assert found is not None
    row = int(np.flatnonzero(found.timeline.instruction == 2003)[0])
    start = int(found.timeline.start[row])
    assert view.measure == (start, start + int(found.timeline.duration[row]))


def test_idle_lanes_fold_into_one_line(view: TimelineView, host: FakeHost) -> None:
    kinds = [row.kind for row in stack_of(host.store.state.entries).of(0)]
    assert kinds.count(RowKind.IDLE) == 1
    hidden = stack_of(host.store.state.entries, lanes=Lanes(hidden=("ICI x+",))).of(0)
    assert "ICI x+" in next(row.label for row in hidden if row.kind == RowKind.IDLE)


def test_an_entry_without_a_result_says_so(host: FakeHost) -> None:
    entry = host.store.state.entries[1]
    rows = stack_of((replace(entry, variant=None),)).rows
    assert [row.kind for row in rows] == [RowKind.HEADER, RowKind.MESSAGE]
    rows = stack_of((replace(entry, error="no order fits"),)).rows
    assert [row.kind for row in rows][:2] == [RowKind.HEADER, RowKind.MESSAGE]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_gaps_are_drawn_in_the_accent_and_einsums_in_theirs(qtbot: QtBot, host: FakeHost, theme: object) -> None:
    assert theme in (LIGHT, DARK)
    chosen = LIGHT if theme is LIGHT else DARK
    host.theme = chosen
    shown = TimelineView(host, TimeRange())
    qtbot.addWidget(shown)
    shown.resize(1000, 640)
    shown.show()
    picture = shown.grab().toImage()
    einsum = slice_rect(shown.scene(), Hit(0, row_of(shown, 2003, Category.EINSUM)))
    gap = slice_rect(shown.scene(), Hit(0, row_of(shown, 2002, Category.EXPOSED)))
    assert einsum is not None
    assert gap is not None
    assert picture.pixelColor(einsum.bottomRight().toPoint() - QPoint(3, 3)) == QColor(chosen.einsum.fill)
    colours = {
        picture.pixelColor(x, y).name()
        for x in range(int(gap.left()) + 1, int(gap.right()) - 1)
        for y in range(int(gap.top()) + 1, int(gap.bottom()) - 1)
    }
    assert QColor(chosen.exposed.fill).name() in colours
    shown.close()


def row_of(view: TimelineView, instruction: int, category: Category) -> int:
    found = view.session.entries[0].variant
    assert found is not None
    timeline = found.timeline
    return int(np.flatnonzero((timeline.instruction == instruction) & (timeline.category == category))[0])


def test_a_gap_under_a_pixel_still_draws_one(qtbot: QtBot) -> None:
    made = variant(3, layers=40)
    host = host_of(made)
    shown = TimelineView(host, TimeRange())
    qtbot.addWidget(shown)
    shown.resize(400, 300)
    shown.show()
    gap = row_of(shown, 2002, Category.EXPOSED)
    assert made.timeline.duration[gap] < shown.window_of().per_pixel * 2
    rect = slice_rect(shown.scene(), Hit(0, gap))
    assert rect is not None
    picture = shown.grab().toImage()
    column = {picture.pixelColor(int(rect.left()), y).name() for y in range(int(rect.top()), int(rect.bottom()))}
    assert QColor(LIGHT.exposed.fill).name() in column
    shown.close()


def test_a_running_job_shows_in_the_header_without_a_new_session(view: TimelineView, host: FakeHost) -> None:
    host.set_jobs(JobState(1, "planning B", 0.4, "scheduling", entry="B"))
    assert view.scene().running == {"B": "scheduling 40%"}


def test_changing_the_plan_glides_and_lands(qtbot: QtBot, view: TimelineView, host: FakeHost) -> None:
    entry = host.store.state.entries[1]
    faster = replace(variant(2, overlap=True), plan=entry.plan)
    host.store.settle(entries=edits.arrived(host.store.state, "B", faster).entries)
    qtbot.waitUntil(lambda: not view.scene().gliding, timeout=LONG)
    shown = host.store.state.entries[1].variant
    assert shown is faster


def test_a_shorter_timeline_does_not_leave_the_anchor_behind(view: TimelineView, host: FakeHost) -> None:
    view.moves.step_slice(1)
    for _ in range(20):
        view.moves.step_slice(1)
    entry = host.store.state.entries[1]
    shorter = replace(variant(2, layers=1, loop=False), plan=entry.plan)
    host.store.settle(entries=edits.arrived(host.store.state, "B", shorter).entries)
    view.grab()
    view.moves.follow_edges(forward=True)
    assert view.anchor is None or view.anchor.row < len(shorter.timeline)


def test_a_result_that_comes_while_the_picture_glides_is_drawn_as_it_is(view: TimelineView, host: FakeHost) -> None:
    entry = host.store.state.entries[1]
    for made in (variant(2, overlap=True), variant(3, layers=9)):
        host.store.settle(entries=edits.arrived(host.store.state, "B", replace(made, plan=entry.plan)).entries)
    view.hide()
    last = replace(variant(3, layers=12), plan=entry.plan)
    host.store.settle(entries=edits.arrived(host.store.state, "B", last).entries)
    assert "B" not in view.scene().gliding
    view.show()
    view.grab()


def test_hit_outside_the_lanes_is_none(view: TimelineView) -> None:
    assert view.hit_at(QPointF(10, 100)) is None
    assert view.hit_at(QPointF(500, 2)) is None
    assert view.hit_at(QPointF(500, 639)) is None


def test_nothing_open_draws_nothing_and_has_nothing_to_move_to(qtbot: QtBot) -> None:
    host = FakeHost()
    shown = TimelineView(host, TimeRange())
    qtbot.addWidget(shown)
    shown.show()
    before = shown.grab().toImage()
    shown.moves.step_slice(1)
    shown.moves.focus_selection()
    shown.moves.follow_edges(forward=True)
    shown.moves.measure_selection()
    assert host.store.state == Session()
    assert shown.grab().toImage() == before
    assert shown.scene().stack.rows == ()


def test_the_overview_moves_what_is_shown(qtbot: QtBot, host: FakeHost) -> None:
    shown = TimeRange()
    shown.set_limit(10**9)
    strip = Overview(host, shown)
    qtbot.addWidget(strip)
    strip.resize(800, 24)
    strip.show()
    strip.grab()
    shown.show(10**8, 10**8)
    middle = strip.whole()
    QTest.mousePress(
        strip, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, QPoint(int(middle.x_of(5 * 10**8)), 10)
    )
    assert abs(shown.start + shown.span // 2 - 5 * 10**8) < 10**7
    QTest.mouseMove(strip, QPoint(int(middle.x_of(7 * 10**8)), 10))
    assert abs(shown.start + shown.span // 2 - 7 * 10**8) < 2 * 10**7
    assert shown.span == 10**8
    strip.close()


def test_a_job_that_reports_changes_a_heading_and_leaves_the_lanes(view: TimelineView, host: FakeHost) -> None:
    before = view.grab().toImage()
    frame = view._frame
    host.set_jobs(JobState(1, "planning B", 0.4, "pricing", entry="B"))
    after = view.grab().toImage()
    assert view._frame is frame is not None
    top, bottom = view.stack.span_of(1)
    ratio = before.devicePixelRatio()
    changed = [
        y
        for y in range(view.viewport().height())
        if any(
            before.pixel(int(x * ratio), int(y * ratio)) != after.pixel(int(x * ratio), int(y * ratio))
            for x in range(GUTTER, 900, 3)
        )
    ]
    assert changed
    assert AXIS + top <= min(changed) <= max(changed) < AXIS + top + HEADER < bottom + AXIS


def test_what_was_under_the_mouse_goes_with_its_module(qtbot: QtBot, view: TimelineView, host: FakeHost) -> None:
    with qtbot.waitSignal(view.hovered, check_params_cb=lambda text: text == ""):
        host.store.settle(entries=())


def test_there_are_no_times_on_the_axis_before_there_is_a_timeline(view: TimelineView, host: FakeHost) -> None:
    def colours() -> set[int]:
        image = view.viewport().grab().toImage()
        return {image.pixel(x, y) for x in range(GUTTER, view.viewport().width()) for y in range(AXIS - 4)}

    assert len(colours()) > 1
    host.store.settle(entries=(replace(host.store.state.entries[0], variant=None),))
    assert len(colours()) == 1


def test_what_is_looked_at_stays_where_it_is_when_another_entry_changes_its_height(
    qtbot: QtBot, view: TimelineView, host: FakeHost
) -> None:
    """A result that comes above by itself moves nothing; at the top one stays at the top."""
    view.resize(1000, 200)
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum())
    top = view.stack.span_of(1)[0] - bar.value()
    host.store.settle(entries=edits.folded(host.store.state, "A").entries)
    assert view.stack.span_of(1)[0] - bar.value() == max(top, view.stack.span_of(1)[0] - bar.maximum())
    host.store.settle(entries=edits.folded(host.store.state, "A").entries)
    assert view.stack.span_of(1)[0] - bar.value() == top
    bar.setValue(0)
    host.store.settle(entries=edits.folded(host.store.state, "A").entries)
    assert bar.value() == 0


def test_a_header_says_what_became_of_a_default_plan(view: TimelineView, host: FakeHost) -> None:
    said = "2 rows dropped: no gain, without them 12.0 µs faster"
    shown = host.store.state.entry("B")
    assert shown is not None
    assert shown.variant is not None
    host.store.settle(entries=edits.pruned(host.store.state, "B", shown.variant, said).entries)
    entry = host.store.state.entry("B")
    assert entry is not None
    assert said in state_text(view.scene(), entry)
    changed = edits.planned(host.store.state, "B", Plan("fuse", "memory"))
    entry = changed.entry("B")
    assert entry is not None
    assert entry.remark == ""


def test_what_is_selected_stays_selected_when_a_default_plan_gives_way(view: TimelineView, host: FakeHost) -> None:
    host.store.settle(selection=edits.selected(host.store.state, "B", (2003,)).selection)
    shown = host.store.state.entry("B")
    assert shown is not None
    assert shown.variant is not None
    now = edits.pruned(host.store.state, "B", replace(shown.variant, plan=Plan("fuse", "top-down")))
    assert now.selection.instructions == (2003,)
