"""Where the time went: instruction by instruction, what the active variant spends more or less than the base."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLabel,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.quantities import signed_time_text, time_text
from engine.session import edits
from engine.session.lookup import lookup
from engine.session.session import Session
from engine.session.variant import Variant
from engine.timeline.difference import Difference, differences
from views.ports import Host, follow, in_view
from views.theme import GRID

MOST = 400
"""Rows listed; what comes after differs least."""
_COLUMNS = ("instruction", "difference", "compute", "", "transfer", "", "exposed", "")


@lru_cache(maxsize=32)
def differences_of(base: Variant, other: Variant) -> tuple[Difference, ...]:
    """Differences of two variants of one module, largest first."""
    return differences(base.timeline, base.program.module, other.timeline, other.program.module)


class DifferencePane(QWidget):
    """A click selects the instruction, and what was made from it, in both timelines."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._shown: tuple[Variant | None, Variant | None] = (None, None)
        self._rows: tuple[Difference, ...] = ()
        self.text = QLabel()
        self.text.setMargin(2 * GRID)
        self.table = QTableWidget(0, len(_COLUMNS))
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 2 * GRID)
        self.table.setShowGrid(False)
        self.table.setFrameShape(QTableWidget.Shape.NoFrame)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.table.setAccessibleName("differences by instruction")
        self.table.currentCellChanged.connect(lambda row, *_: self._picked(row))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.text)
        layout.addWidget(self.table, 1)
        follow(self, host.store, self._session_changed)
        self.refresh()

    def came_into_view(self) -> None:
        """Compare what was put off while nobody looked."""
        self.refresh()

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"entries", "active", "base", "modules"} and in_view(self):
            self.refresh()

    def refresh(self) -> None:
        """Compare base and active variant, if they are not compared already."""
        session = self._host.store.state
        base, active = session.base_entry, session.active_entry
        pair = (base.variant if base else None, active.variant if active else None)
        if base is None or active is None or pair[0] is None or pair[1] is None or base is active:
            self._rows = ()
            self._shown = (None, None)
            self.text.setText(_nothing(session))
        elif pair != self._shown:
            self._shown = pair
            every = differences_of(pair[0], pair[1])
            self._rows = every[:MOST]
            more = f"; the {MOST} largest of {len(every):,}" if len(every) > MOST else ""
            self.text.setText(
                f"{active.key} against {base.key}: time of the compute stream, waits included, by instruction of the "
                f"module as loaded{more}"
            )
        self._fill(session)
        self.table.setVisible(bool(self._rows))

    def _fill(self, session: Session) -> None:
        theme, base, other = self._host.theme, session.base, session.active
        self.table.setHorizontalHeaderLabels([name or other for name in _COLUMNS])
        for column in (2, 4, 6):
            header = self.table.horizontalHeaderItem(column)
            if header is not None:
                header.setText(f"{_COLUMNS[column]} {base}")
        self.table.setRowCount(len(self._rows))
        for number, row in enumerate(self._rows):
            pairs = (
                (row.base.compute, row.other.compute),
                (row.base.transfer, row.other.transfer),
                (row.base.exposed, row.other.exposed),
            )
            times = [time_text(time) if time else "–" for pair in pairs for time in pair]
            for column, text in enumerate((self._name(row.origin), signed_time_text(row.stream), *times)):
                item = QTableWidgetItem(text)
                if column:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                if column == 1:
                    item.setForeground(
                        QColor(theme.gain if row.stream < 0 else theme.loss if row.stream else theme.muted)
                    )
                self.table.setItem(number, column, item)

    def _name(self, origin: int) -> str:
        facts = self._host.store.state.facts
        loaded = facts.names.get(origin, "") if facts is not None else ""
        names = (lookup(variant).name(origin) for variant in self._shown if variant is not None)
        return loaded or next((name for name in names if name), f"instruction {origin}")

    def _picked(self, number: int) -> None:
        session = self._host.store.state
        if 0 <= number < len(self._rows):
            ids = (self._rows[number].origin,)
            self._host.store.become("Select", edits.selected(session, session.base, ids))


def _nothing(session: Session) -> str:
    if not session.entries:
        return "Open a module to see where its time goes."
    if session.base == session.active:
        return "The active variant is the base. Click another header to compare it."
    return "Waiting for both variants."
