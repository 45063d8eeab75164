"""The timeline of the active variant as a table: its twin for the keyboard and for screen readers."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QModelIndex, QSignalBlocker, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHeaderView, QTableView, QVBoxLayout, QWidget

from engine.ir.graph import Ints
from engine.quantities import exact_time_text, microseconds
from engine.session import edits
from engine.session.lookup import lookup
from engine.session.matching import shown_in
from engine.session.session import Session
from engine.session.variant import Variant
from engine.timeline.timeline import Category
from views.hint import Hint, open_first
from views.plain import make_plain
from views.ports import Host, follow, in_view
from views.sorted_rows import SortedRows
from views.stale import StaleNote
from views.theme import GRID
from views.timeline.cards import kind_text
from views.timeline.scene import rows_of

_COLUMNS = ("instruction", "kind", "lane", "start, µs", "duration, µs", "waits for", "iteration")
_TIMES = (3, 4)
_NAME = 34 * GRID
"""Least width of the column of names."""


class SliceModel(SortedRows):
    """Things are rows of a variant's timeline."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(_COLUMNS, (3, 4, 6), (3, Qt.SortOrder.AscendingOrder), parent)
        self.variant: Variant | None = None

    def set_variant(self, variant: Variant | None) -> None:
        self.variant = variant
        self.things_changed()

    def ascending(self, column: int) -> Ints:
        if self.variant is None:
            return np.empty(0, np.int64)
        timeline = self.variant.timeline
        columns = (
            timeline.instruction,
            timeline.category,
            timeline.lane,
            timeline.start,
            timeline.duration,
            timeline.waits_for,
            timeline.iteration,
        )
        return np.lexsort((timeline.start, columns[column]))

    def text(self, thing: int, column: int) -> str:
        return _text(self.variant, thing, column) if self.variant is not None else ""

    def tip(self, thing: int, column: int) -> str:
        if self.variant is None or column not in _TIMES:
            return self.text(thing, column)
        return exact_time_text(_time(self.variant, thing, column))


def _text(variant: Variant, row: int, column: int) -> str:
    timeline, names = variant.timeline, lookup(variant)
    if column == 0:
        return names.name(int(timeline.instruction[row]))
    if column == 1:
        return kind_text(variant, row)
    if column == 2:
        return timeline.lanes[int(timeline.lane[row])].name
    if column in _TIMES:
        return f"{microseconds(_time(variant, row, column)):,.3f}"
    if column == 5:
        return names.name(int(timeline.waits_for[row])) if timeline.waits_for[row] >= 0 else ""
    repeat = int(timeline.repeat[row])
    if repeat > 1:
        return f"×{repeat:,}"
    return str(int(timeline.iteration[row]) + 1) if timeline.depth[row] else ""


def _time(variant: Variant, row: int, column: int) -> int:
    timeline = variant.timeline
    return int(timeline.start[row] if column == _TIMES[0] else timeline.duration[row])


class TablePane(QWidget):
    """One selection with the timelines, both ways."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self.model = SliceModel(self)
        self.view = QTableView()
        self.view.setModel(self.model)
        self.view.setSortingEnabled(True)
        self.view.sortByColumn(3, Qt.SortOrder.AscendingOrder)
        make_plain(self.view)
        self._name_width = _NAME
        header = self.view.horizontalHeader()
        for column, width in enumerate((34, 35, 18, 25, 24, 20, 15)):
            header.resizeSection(column, width * GRID)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        # Figures stand together, and the name of what is waited for takes what is left.
        header.moveSection(len(_COLUMNS) - 1, len(_COLUMNS) - 2)
        header.setStretchLastSection(True)  # Qt's signature
        self.view.setAccessibleName("timeline of the active variant")
        self.view.selectionModel().currentRowChanged.connect(self._picked)
        self.empty = Hint(host)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(StaleNote(host))
        layout.addWidget(self.empty)
        layout.addWidget(self.view)
        follow(self, host.store, self._session_changed)
        self._refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Long names get a fifth of a wide pane, unless the user has chosen another width."""
        super().resizeEvent(event)
        header = self.view.horizontalHeader()
        if header.sectionSize(0) == self._name_width:
            self._name_width = max(_NAME, self.width() // 5)
            header.resizeSection(0, self._name_width)

    def came_into_view(self) -> None:
        """Do what was put off while nobody looked."""
        self._refresh()

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if not in_view(self):
            return
        if changed & {"entries", "active", "modules"}:
            self._refresh()
        elif changed & {"selection", "matches"}:
            self._show_selection(session)

    def _refresh(self) -> None:
        session = self._host.store.state
        variant = session.active_variant
        if variant is not self.model.variant:
            self.model.set_variant(variant)
        self.empty.setText(_why_nothing(session))
        self.empty.setVisible(variant is None)
        self.view.setVisible(variant is not None)
        self._show_selection(session)

    def _picked(self, current: QModelIndex, previous: QModelIndex) -> None:
        variant, session = self.model.variant, self._host.store.state
        if variant is None or not current.isValid():
            return
        row = self.model.thing_at(current.row())
        gap = variant.timeline.category[row] == Category.EXPOSED
        instruction = int(variant.timeline.waits_for[row] if gap else variant.timeline.instruction[row])
        if instruction >= 0 and not session.selection.has(session.active, instruction):
            self._host.store.become("Select", edits.selected(session, session.active, (instruction,)))

    def _show_selection(self, session: Session) -> None:
        variant = self.model.variant
        if variant is None:
            return
        rows = rows_of(variant.timeline, shown_in(session, session.active))
        current = self.view.currentIndex()
        if current.isValid() and self.model.thing_at(current.row()) in rows:
            return
        with QSignalBlocker(self.view.selectionModel()):
            if not len(rows):
                self.view.clearSelection()
            else:
                first = int(rows[np.argmin(variant.timeline.start[rows])])
                self.view.selectRow(self.model.row_of(first))
        self.view.viewport().update()


def _why_nothing(session: Session) -> str:
    entry = session.active_entry
    if entry is None:
        return open_first("to list every slice of the active variant's timeline")
    return f"{entry.key} {entry.ending}: {entry.error}" if entry.error else f"Waiting for {entry.key}."
