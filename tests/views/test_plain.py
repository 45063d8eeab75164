"""Tables look alike: numbers and their headings at the right, decimals under each other, exact values in tooltips."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTableView
from pytestqt.qtbot import QtBot

from engine.quantities import exact_time_text
from engine.session.plan import AS_LOADED
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.compare.compare import ComparePane
from views.compare.differences import DifferencePane
from views.plain import APART, LEFT, RIGHT
from views.timeline.table import TablePane


def two_variants() -> FakeHost:
    return host_of(variant(1, plan=AS_LOADED, name="as loaded"), variant(1, overlap=True, name="decomposed"))


def headings(table: QTableView) -> list[tuple[str, object]]:
    model, role = table.model(), Qt.ItemDataRole
    return [
        tuple(model.headerData(n, Qt.Orientation.Horizontal, r) for r in (role.DisplayRole, role.TextAlignmentRole))
        for n in range(model.columnCount())
    ]


def test_times_of_slices_line_up_and_are_exact_in_the_tooltip(qtbot: QtBot) -> None:
    host = two_variants()
    pane = TablePane(host)
    qtbot.addWidget(pane)
    shown = host.store.state.active_variant
    assert shown is not None
    for row in range(len(shown.timeline)):
        for column, values in ((3, shown.timeline.start), (4, shown.timeline.duration)):
            index = pane.model.index(row, column)
            text = index.data()
            assert len(text.partition(".")[2]) == 3, text
            assert index.data(Qt.ItemDataRole.ToolTipRole) == exact_time_text(int(values[pane.model.thing_at(row)]))


def test_headings_stand_where_their_numbers_do(qtbot: QtBot) -> None:
    host = two_variants()
    pane, compare = TablePane(host), ComparePane(host)
    for widget in (pane, compare):
        qtbot.addWidget(widget)
    assert [at for _, at in headings(pane.view)] == [LEFT, LEFT, LEFT, RIGHT, RIGHT, LEFT, RIGHT]
    for column, (title, at) in enumerate(headings(compare.table)):
        item = compare.table.item(1, column)
        if title and item is not None and item.text()[:1].isdigit():
            assert at == RIGHT, title
    assert not pane.view.horizontalHeader().highlightSections()


def test_every_difference_says_of_which_variant_it_is(qtbot: QtBot) -> None:
    pane = DifferencePane(two_variants())
    qtbot.addWidget(pane)
    pane.refresh()
    titles = [title for title, _ in headings(pane.table)]
    assert len(set(titles)) == len(titles)
    assert titles[2:4] == ["compute A", "compute B"]


def test_tab_leaves_a_table(qtbot: QtBot) -> None:
    host = two_variants()
    for made in (TablePane(host), ComparePane(host), DifferencePane(host)):
        qtbot.addWidget(made)
        for table in made.findChildren(QTableView):
            assert not table.tabKeyNavigation(), table.accessibleName()


def test_the_timeline_as_a_table_fits_the_pane_of_a_small_window(qtbot: QtBot) -> None:
    pane = TablePane(two_variants())
    qtbot.addWidget(pane)
    pane.resize(735, 200)
    pane.show()
    qtbot.waitExposed(pane)
    assert pane.view.horizontalScrollBar().maximum() == 0
    pane.close()


def test_words_stand_apart_from_the_figures_before_them(qtbot: QtBot) -> None:
    pane = ComparePane(two_variants())
    qtbot.addWidget(pane)
    header = pane.table.horizontalHeader()
    shown = [
        titled for _, titled in sorted((header.visualIndex(n), titled) for n, titled in enumerate(headings(pane.table)))
    ]
    for (_, before), (title, at) in pairwise(shown):
        if before == RIGHT and at == LEFT:
            assert title.startswith(APART), title
    scheduler = next(n for n, (title, _) in enumerate(headings(pane.table)) if title.strip() == "scheduler")
    cell = pane.table.item(0, scheduler)
    assert cell is not None
    assert cell.text() == "as-loaded", "copied and compared as it is"
