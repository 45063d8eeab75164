"""The timeline of the active variant as a table: its twin for the keyboard and for screen readers."""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QSignalBlocker, Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QLabel, QTableView, QVBoxLayout, QWidget

from engine.ir.graph import Ints
from engine.quantities import exact_time_text
from engine.session import edits
from engine.session.lookup import lookup
from engine.session.matching import shown_in
from engine.session.session import Session
from engine.session.variant import Variant
from engine.timeline.timeline import Category
from views.ports import Host, follow, in_view
from views.theme import GRID
from views.timeline.cards import WORDS
from views.timeline.scene import rows_of

_COLUMNS = ("instruction", "kind", "lane", "start", "duration", "waits for", "iteration")
_Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()


class SliceModel(QAbstractTableModel):
    """Rows of a timeline, in an order of the user's."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.variant: Variant | None = None
        self._order: Ints = np.empty(0, np.int64)
        self._sorted = (3, Qt.SortOrder.AscendingOrder)

    def set_variant(self, variant: Variant | None) -> None:
        self.beginResetModel()
        self.variant = variant
        self._arrange()
        self.endResetModel()

    def slice_at(self, row: int) -> int:
        """The timeline's row that is shown in a row of the table."""
        return int(self._order[row])

    def row_of(self, slice_row: int) -> int:
        found = np.flatnonzero(self._order == slice_row)
        return int(found[0]) if len(found) else -1

    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._order)

    def columnCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(_COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return _COLUMNS[section]
        return None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if self.variant is None or not index.isValid():
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column() in (3, 4, 6):
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return self._text(self.variant, self.slice_at(index.row()), index.column())
        return None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self.layoutAboutToBeChanged.emit()
        self._sorted = (column, order)
        self._arrange()
        self.layoutChanged.emit()

    def _arrange(self) -> None:
        if self.variant is None:
            self._order = np.empty(0, np.int64)
            return
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
        column, direction = self._sorted
        order = np.lexsort((timeline.start, columns[column]))
        self._order = order[::-1] if direction == Qt.SortOrder.DescendingOrder else order

    @staticmethod
    def _text(variant: Variant, row: int, column: int) -> str:
        timeline, names = variant.timeline, lookup(variant)
        if column == 0:
            return names.name(int(timeline.instruction[row]))
        if column == 1:
            return WORDS[Category(int(timeline.category[row]))]
        if column == 2:
            return timeline.lanes[int(timeline.lane[row])].name
        if column == 3:
            return exact_time_text(int(timeline.start[row]))
        if column == 4:
            return exact_time_text(int(timeline.duration[row]))
        if column == 5:
            return names.name(int(timeline.waits_for[row])) if timeline.waits_for[row] >= 0 else ""
        repeat = int(timeline.repeat[row])
        if repeat > 1:
            return f"×{repeat:,}"
        return str(int(timeline.iteration[row]) + 1) if timeline.depth[row] else ""


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
        self.view.setShowGrid(False)
        self.view.setFrameShape(QTableView.Shape.NoFrame)
        self.view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.view.setWordWrap(False)
        self.view.verticalHeader().hide()
        self.view.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 2 * GRID)
        header = self.view.horizontalHeader()
        for column, width in enumerate((70, 44, 34, 36, 36, 60, 20)):
            header.resizeSection(column, width * GRID)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.view.setAccessibleName("timeline of the active variant")
        self.view.selectionModel().currentRowChanged.connect(self._picked)
        self.empty = QLabel("Open a module: every slice of the active variant's timeline is listed here.")
        self.empty.setMargin(4 * GRID)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.empty)
        layout.addWidget(self.view)
        follow(self, host.store, self._session_changed)
        self._refresh()

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
        self.empty.setVisible(variant is None)
        self.view.setVisible(variant is not None)
        self._show_selection(session)

    def _picked(self, current: QModelIndex, previous: QModelIndex) -> None:
        variant, session = self.model.variant, self._host.store.state
        if variant is None or not current.isValid():
            return
        row = self.model.slice_at(current.row())
        gap = variant.timeline.category[row] == Category.EXPOSED
        instruction = int(variant.timeline.waits_for[row] if gap else variant.timeline.instruction[row])
        if instruction >= 0 and instruction not in session.selection.instructions:
            self._host.store.become("Select", edits.selected(session, session.active, (instruction,)))

    def _show_selection(self, session: Session) -> None:
        variant = self.model.variant
        if variant is None:
            return
        rows = rows_of(variant.timeline, shown_in(session, session.active))
        current = self.view.currentIndex()
        if current.isValid() and self.model.slice_at(current.row()) in rows:
            return
        with QSignalBlocker(self.view.selectionModel()):
            if not len(rows):
                self.view.clearSelection()
            else:
                first = int(rows[np.argmin(variant.timeline.start[rows])])
                self.view.selectRow(self.model.row_of(first))
        self.view.viewport().update()
