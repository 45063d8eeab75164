from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from engine.errors import UsageError
from engine.layout.figures import Figure
from engine.session import edits
from engine.session.plan import AS_LOADED
from engine.session.session import TRANSIENT, Session
from engine.session.store import Store
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.graph.comparison import comparisons_of
from views.graph.export import graph_picture
from views.graph.pane import GraphPane

NONE = Qt.KeyboardModifier.NoModifier


@pytest.fixture
def host() -> FakeHost:
    return host_of(variant(1, plan=AS_LOADED, name="as loaded"), variant(1, overlap=True, name="decomposed"))


@pytest.fixture
def pane(qtbot: QtBot, host: FakeHost) -> Iterator[GraphPane]:
    made = shown(qtbot, host)
    yield made
    made.close()


def shown(qtbot: QtBot, host: FakeHost) -> GraphPane:
    made = GraphPane(host)
    qtbot.addWidget(made)
    made.resize(1000, 640)
    made.show()
    qtbot.waitExposed(made)
    return made


def item(pane: GraphPane, name: str) -> int:
    assert pane.outline is not None
    return pane.outline.names.index(name)


def position(pane: GraphPane, name: str) -> int:
    assert pane.picture is not None
    found = pane.picture.position(item(pane, name))
    assert found is not None, f"{name} is not shown"
    return found


def point(pane: GraphPane, name: str) -> QPoint:
    """The middle of a node's top edge, in the view."""
    box = pane.after.box(position(pane, name))
    assert box is not None
    pane.after.reveal(position(pane, name))
    return pane.after.mapFromScene(QPointF(box.center().x(), box.top() + 8))


def click(pane: GraphPane, name: str, keys: Qt.KeyboardModifier = NONE) -> None:
    QTest.mouseClick(pane.after.viewport(), Qt.MouseButton.LeftButton, keys, point(pane, name))


def double_click(pane: GraphPane, name: str, keys: Qt.KeyboardModifier = NONE) -> None:
    QTest.mouseDClick(pane.after.viewport(), Qt.MouseButton.LeftButton, keys, point(pane, name))


def names(pane: GraphPane) -> set[str]:
    assert pane.picture is not None
    assert pane.outline is not None
    return {pane.outline.names[i] for i in pane.picture.items.tolist()}


def wheel(pane: GraphPane, at: QPoint, y: int, keys: Qt.KeyboardModifier = NONE) -> None:
    view = pane.after
    event = QWheelEvent(
        QPointF(at),
        QPointF(view.viewport().mapToGlobal(at)),
        QPoint(),
        QPoint(0, y),
        Qt.MouseButton.NoButton,
        keys,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QCoreApplication.sendEvent(view.viewport(), event)


def close_all(pane: GraphPane) -> None:
    pane.groups.close_all()
    assert "layer_1" in names(pane)
    assert "dot.1.0" not in names(pane)


def test_layers_are_groups_that_a_double_click_opens_and_closes(pane: GraphPane) -> None:
    close_all(pane)
    double_click(pane, "layer_1")
    assert "dot.1.0" in names(pane)
    assert "dot.2.0" not in names(pane)
    double_click(pane, "layer_1")
    assert "dot.1.0" not in names(pane)


def test_opening_keeps_the_group_where_it_is(pane: GraphPane) -> None:
    close_all(pane)
    at = point(pane, "layer_3")
    box = pane.after.box(position(pane, "layer_3"))
    assert box is not None
    head = pane.after.mapFromScene(QPointF(box.center().x(), box.top()))
    QTest.mouseDClick(pane.after.viewport(), Qt.MouseButton.LeftButton, NONE, at)
    now = pane.after.box(position(pane, "layer_3"))
    assert now is not None
    assert (pane.after.mapFromScene(QPointF(now.center().x(), now.top())) - head).manhattanLength() <= 2


def test_alt_opens_what_lies_in_it(pane: GraphPane) -> None:
    close_all(pane)
    double_click(pane, "while.1", Qt.KeyboardModifier.AltModifier)
    assert {"dot.body", "less"} <= names(pane)
    double_click(pane, "while.1", Qt.KeyboardModifier.AltModifier)
    assert not {"body", "dot.body"} & names(pane)


def test_a_click_selects_everywhere(pane: GraphPane, host: FakeHost) -> None:
    close_all(pane)
    pane.groups.toggle(item(pane, "layer_1"))
    click(pane, "dot.1.0")
    assert host.store.state.selection.instructions == (2103,)
    assert host.store.state.selection.entry == "B"
    click(pane, "add.1.0", Qt.KeyboardModifier.ControlModifier)
    assert set(host.store.state.selection.instructions) == {2103, 2104}
    assert len(pane.after.over.selected) == 2


def test_a_click_on_a_group_selects_what_lies_in_it(pane: GraphPane, host: FakeHost) -> None:
    close_all(pane)
    click(pane, "layer_1")
    chosen = host.store.state.selection.instructions
    assert {2101, 2103, 2113} <= set(chosen)
    assert not any(2200 <= i < 2300 for i in chosen)
    assert "dot.1.0" not in names(pane)  # it stays closed: the click was here


def test_a_selection_from_elsewhere_opens_the_way_to_it(pane: GraphPane, host: FakeHost) -> None:
    close_all(pane)
    host.store.become("Select", edits.selected(host.store.state, "A", (2203,)))
    assert "dot.2.0" in names(pane)
    assert pane.after.over.selected.tolist() == [position(pane, "dot.2.0")]
    box = pane.after.box(position(pane, "dot.2.0"))
    assert box is not None
    assert pane.after.visible_area().contains(box.center())


def test_hovering_lights_operands_and_users(pane: GraphPane) -> None:
    close_all(pane)
    pane.groups.toggle(item(pane, "layer_1"))
    QTest.mouseMove(pane.after.viewport(), point(pane, "dot.1.0"))
    assert pane.after.over.hover == position(pane, "dot.1.0")
    assert pane.tools.said.startswith("dot.1.0")
    assert not pane.after.grab().isNull()


def test_the_wheel_pans_and_with_ctrl_zooms_where_the_mouse_is(pane: GraphPane) -> None:
    at = QPoint(200, 150)
    centre, scale = QPointF(pane.camera.centre), pane.camera.scale
    wheel(pane, at, -120)
    assert pane.camera.centre.y() > centre.y()
    assert pane.camera.scale == scale
    before = pane.after.mapToScene(at)
    wheel(pane, at, 120, Qt.KeyboardModifier.ControlModifier)
    assert pane.camera.scale == pytest.approx(scale * 1.25)
    after = pane.after.mapToScene(at)
    assert abs(after.x() - before.x()) < 3 / scale
    assert abs(after.y() - before.y()) < 3 / scale


def test_ctrl_drag_zooms_to_a_rectangle(pane: GraphPane) -> None:
    area, left, keys = pane.after.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier
    one, two = QPoint(200, 150), QPoint(360, 250)
    wanted = QRectF(pane.after.mapToScene(one), pane.after.mapToScene(two))
    QTest.mousePress(area, left, keys, one)
    QTest.mouseMove(area, QPoint(300, 200))
    QTest.mouseMove(area, two)
    assert pane.after.over.rubber is not None
    QTest.mouseRelease(area, left, keys, two)
    assert pane.after.over.rubber is None
    seen = pane.after.visible_area()
    assert seen.adjusted(-1, -1, 1, 1).contains(wanted)
    assert seen.width() < 8 * wanted.width()


def test_a_drag_pans(pane: GraphPane) -> None:
    area, left = pane.after.viewport(), Qt.MouseButton.LeftButton
    centre = QPointF(pane.camera.centre)
    QTest.mousePress(area, left, NONE, QPoint(300, 200))
    QTest.mouseMove(area, QPoint(280, 200))
    QTest.mouseMove(area, QPoint(260, 200))
    QTest.mouseRelease(area, left, NONE, QPoint(260, 200))
    assert pane.camera.centre.x() - centre.x() == pytest.approx(40 / pane.camera.scale)


def test_fit_shows_everything(pane: GraphPane) -> None:
    pane.camera.look_at(QPointF(5000, 5000), 2.0)
    pane.view.fit()
    assert pane.picture is not None
    whole = QRectF(0, 0, float(pane.picture.width[0]), float(pane.picture.height[0]))
    assert pane.after.visible_area().contains(whole)
    assert pane.minimap.isHidden()


def test_the_minimap_appears_where_not_all_is_seen_and_looks_elsewhere(pane: GraphPane) -> None:
    pane.camera.look_at(QPointF(0, 0), 1.5)
    pane.minimap.refresh()
    assert not pane.minimap.isHidden()
    QTest.mouseClick(pane.minimap, Qt.MouseButton.LeftButton, NONE, pane.minimap.rect().center())
    assert pane.picture is not None
    assert pane.camera.centre.x() == pytest.approx(float(pane.picture.width[0]) / 2, rel=0.15)


def test_around_shows_hops_and_the_way_back(pane: GraphPane, host: FakeHost) -> None:
    host.store.become("Select", edits.selected(host.store.state, "B", (2103,)))
    pane.parts.show_around()
    assert {"dot.1.0", "add.1.0", "all-gather-done.1.0", "all-gather-start.1.0"} <= names(pane)
    assert "layer_2" not in names(pane)
    assert "within 2 hops" in pane.tools.said
    pane.parts.show_whole()
    assert "layer_2" in names(pane)


def test_paths_need_two_and_show_what_lies_between(pane: GraphPane, host: FakeHost) -> None:
    pane.parts.show_paths()
    assert "Select two" in pane.tools.said
    host.store.become("Select", edits.selected(host.store.state, "B", (2101, 2104)))
    pane.parts.show_paths()
    assert {"all-gather-start.1.0", "all-gather-done.1.0", "dot.1.0", "add.1.0"} <= names(pane)
    assert len(names(pane)) == 5  # and the frame around them
    assert pane.tools.said.startswith("1 path from")
    host.store.become("Select", edits.selected(host.store.state, "B", (2101, 2111)))
    pane.parts.show_whole()
    pane.parts.show_paths()
    assert "no path" in pane.tools.said


def test_every_pass_can_be_seen_before_and_after(pane: GraphPane, host: FakeHost) -> None:
    titles = [c.title for c in comparisons_of(host.store.state)]
    assert titles == ["B alone", "pass 1 of 2: decompose", "pass 2 of 2: async-permute", "A beside B"]
    assert pane.before.isHidden() or not pane.before.isVisible()
    for expected in (*titles[1:], titles[0]):
        pane.step(1)
        assert pane.comparison is not None
        assert pane.comparison.title == expected
        assert pane.before.isVisible() == pane.comparison.double
    pane.step(-1)
    assert pane.comparison is not None
    assert pane.comparison.title == "A beside B"


def test_both_sides_move_together(pane: GraphPane) -> None:
    pane.step(1)
    pane.after.camera.look_at(QPointF(123, 456), 0.7)
    for view in (pane.before, pane.after):
        middle = view.mapToScene(view.viewport().rect().center())
        assert abs(middle.x() - 123) < 3
        assert abs(middle.y() - 456) < 3
        assert view.transform().m11() == pytest.approx(0.7)


def test_what_one_side_lacks_is_not_drawn_there(qtbot: QtBot) -> None:
    host = host_of(variant(1, layers=2, plan=AS_LOADED), variant(1, layers=3))
    pane = shown(qtbot, host)
    pane.step(-1)
    pane.groups.close_all()
    pane.groups.toggle(item(pane, "layer_2")) if "layer_2" in names(pane) else None
    at = position(pane, "dot.2.0")
    assert pane.after.shown is not None
    assert pane.before.shown is not None
    assert pane.after.shown.visible[at]
    assert not pane.before.shown.visible[at]
    pane.close()


def test_stepping_keeps_open_what_was_open(pane: GraphPane) -> None:
    close_all(pane)
    pane.groups.toggle(item(pane, "layer_4"))
    pane.step(1)
    assert "dot.4.0" in names(pane)
    assert "dot.3.0" not in names(pane)


def test_stepping_looks_at_the_same_node(pane: GraphPane) -> None:
    close_all(pane)
    pane.groups.toggle(item(pane, "layer_4"))
    pane.after.show_box(position(pane, "dot.4.0"), margin=100.0)
    pane.step(-1)
    box = pane.after.box(position(pane, "dot.4.0"))
    assert box is not None
    assert pane.after.visible_area().contains(box)


@pytest.mark.parametrize("figure", list(Figure))
def test_every_figure_colours_and_has_a_legend(pane: GraphPane, figure: Figure) -> None:
    pane.tools.colours.setCurrentIndex(pane.tools.colours.findData(figure))
    assert pane.after.shown is not None
    colouring = pane.after.shown.colouring
    assert int(colouring.number.max()) < len(colouring.swatches)
    assert all(swatch.text for swatch in colouring.swatches)
    if figure in (Figure.TIME, Figure.EXPOSED):
        assert len(colouring.swatches) > 2
        assert len(np.unique(colouring.number)) > 2
    assert not pane.grab().isNull()


def test_the_table_lists_the_nodes_and_selects_with_the_graph(pane: GraphPane, host: FakeHost) -> None:
    close_all(pane)
    pane.groups.toggle(item(pane, "layer_1"))
    pane.show_table()
    model = pane.table.nodes
    assert pane.picture is not None
    assert model.rowCount() == int((~pane.picture.opened).sum())
    row = model.row_of(item(pane, "dot.1.0"))
    pane.table.selectRow(row)
    assert host.store.state.selection.instructions == (2103,)
    host.store.become("Select", edits.selected(host.store.state, "B", (2104,)))
    assert pane.table.currentIndex().row() == model.row_of(item(pane, "add.1.0"))
    times = [model.data(model.index(n, 2)) for n in range(3)]
    assert all(time != "–" for time in times)
    model.sort(0, Qt.SortOrder.AscendingOrder)
    first = [model.data(model.index(n, 0)) for n in range(model.rowCount())]
    assert first == sorted(first)


def test_bookmarks_bring_back_what_was_open_and_seen(pane: GraphPane) -> None:
    close_all(pane)
    pane.groups.toggle(item(pane, "layer_1"))
    pane.camera.look_at(QPointF(50, 60), 0.9)
    pane.moves.set_bookmark(3)
    close_all(pane)
    pane.moves.go_to_bookmark(3)
    assert "dot.1.0" in names(pane)
    assert (pane.camera.centre, pane.camera.scale) == (QPointF(50, 60), 0.9)
    pane.moves.go_to_bookmark(4)
    assert "Ctrl+4" in pane.tools.said


def test_a_search_outlines_hits_in_closed_groups_too(pane: GraphPane) -> None:
    close_all(pane)
    pane.marking.search_for("/^dot\\.1/")
    assert pane.after.over.found.tolist() == [position(pane, "layer_1")]
    assert pane.tools.said.startswith("2 found")
    pane.marking.search_for("/(/")
    assert not len(pane.after.over.found)
    pane.marking.search_for("/^dot/")
    assert "found" in pane.tools.said
    pane.marking.search_for("")
    assert not len(pane.after.over.found)
    assert not pane.tools.said


def test_keys_follow_operands_and_users(pane: GraphPane, host: FakeHost) -> None:
    host.store.become("Select", edits.selected(host.store.state, "B", (2103,)))
    pane.moves.follow_edges(forward=True)
    assert host.store.state.selection.instructions == (2104,)
    pane.moves.follow_edges(forward=False)
    assert host.store.state.selection.instructions == (2103,)


@pytest.mark.parametrize("suffix", ["png", "svg", "dot"])
def test_the_graph_can_be_saved(pane: GraphPane, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"graph.{suffix}"
    path.write_bytes(graph_picture(pane.view, str(path))())
    if suffix == "png":
        assert QImage(str(path)).width() == 2 * pane.after.viewport().width()
    else:
        text = path.read_text(encoding="utf-8")
        assert "layer_1" in text
        assert text.lstrip().startswith("<?xml" if suffix == "svg" else "digraph")


def test_saving_says_what_is_wrong(qtbot: QtBot, pane: GraphPane) -> None:
    with pytest.raises(UsageError, match=r"ends in \.png, \.svg or \.dot"):
        graph_picture(pane.view, "graph.jpeg")
    with pytest.raises(UsageError, match="no graph is shown"):
        graph_picture(shown(qtbot, FakeHost()).view, "graph.png")


def test_without_a_module_it_says_what_to_do(qtbot: QtBot) -> None:
    host = FakeHost()
    pane = shown(qtbot, host)
    assert "Open a module" in pane.message.text()
    assert not pane.sides.isVisible()
    pane.message.linkActivated.emit("open")
    assert host.performed == ["open"]
    pane.close()


def test_it_waits_for_a_variant_and_says_why_there_is_none(qtbot: QtBot, host: FakeHost) -> None:
    session = host.store.state
    waiting = replace(session, entries=tuple(replace(e, variant=None) for e in session.entries))
    other = FakeHost(Store(waiting, TRANSIENT))
    pane = shown(qtbot, other)
    assert "Waiting for B" in pane.message.text()
    failed = tuple(replace(e, error="no order fits") for e in waiting.entries)
    other.store.settle(entries=failed)
    assert "no order fits" in pane.message.text()
    other.store.settle(entries=session.entries)
    assert not pane.message.isVisible()
    assert "layer_1" in names(pane)
    pane.close()


def test_reading_can_be_cancelled_and_tried_again(qtbot: QtBot, host: FakeHost) -> None:
    host.holding = True
    pane = shown(qtbot, host)
    assert "Reading" in pane.message.text()
    pane.message.linkActivated.emit("cancel")
    assert host.cancelled == [7]
    host.answers.pop()("")
    assert "Cancelled" in pane.message.text()
    host.holding = False
    pane.message.linkActivated.emit("again")
    assert pane.picture is not None
    pane.close()


def test_another_file_forgets_the_old_one(pane: GraphPane, host: FakeHost) -> None:
    pane.moves.set_bookmark(1)
    host.store.reset(Session())
    assert "Open a module" in pane.message.text()
    pane.moves.go_to_bookmark(1)
    assert "no bookmark" in pane.tools.said


def test_it_speaks_to_the_platforms_accessibility(pane: GraphPane, host: FakeHost) -> None:
    host.store.become("Select", edits.selected(host.store.state, "B", (2103,)))
    assert "Selected: dot.1.0" in pane.after.accessibleDescription()
    assert "nodes" in pane.after.accessibleDescription()
    assert pane.tools.legend.accessibleName().startswith("colours: einsum")


def test_what_is_selected_is_nothing_but_that_where_it_is_there(qtbot: QtBot) -> None:
    base, active = variant(1, layers=2, plan=AS_LOADED), variant(1, layers=2)
    module = active.program.module
    made = replace(module, origins={2003: (2001, 2003)})
    program = replace(active.program, module=made)
    host = host_of(base, replace(active, program=program))
    pane = shown(qtbot, host)
    host.store.become("Select", edits.selected(host.store.state, "B", (2003, 2104)))
    assert pane.marking.items() == tuple(sorted((item(pane, "dot.0.0"), item(pane, "add.1.0"))))
    pane.close()
