"""The Fusion tab: decisions sorted by harm; for the picked one its inside, what it waits for, and its alternatives."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QAbstractItemView,
    QGridLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QScrollArea,
    QSplitter,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.passes.fusion import Alternative
from engine.quantities import bytes_text, gain_text, time_text
from engine.session import edits
from engine.session.session import Session
from engine.session.variant import Variant
from engine.timeline.timeline import Metrics
from views.fusion.harm import FusionRow, fusion_rows, taken
from views.ports import Host, follow, in_view
from views.theme import GRID

_COLUMNS = ("fusion", "kind", "time", "traffic saved", "exposes", "waits")
_TIPS = (
    "The fusion instruction, or the einsum that was left apart",
    "As XLA calls it",
    "Compute time of one run",
    "Memory traffic that stays inside",
    "Compute waits this long for transfers that the einsum inside does not need",
    "Compute waits this long for transfers that the fusion needs",
)
_MOST_MEMBERS = 24
MOST = 300
"""Decisions listed, the most harmful first."""


class FusionPane(QWidget):
    """Alternatives are measured when a fusion is picked; taking one is one undoable step."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._variant: Variant | None = None
        self._rows: tuple[FusionRow, ...] = ()
        self.text = QLabel()
        self.text.setMargin(2 * GRID)
        self.text.setWordWrap(True)
        self.table = QTableWidget(0, len(_COLUMNS))
        self.table.setHorizontalHeaderLabels(_COLUMNS)
        for column, tip in enumerate(_TIPS):
            item = self.table.horizontalHeaderItem(column)
            if item is not None:
                item.setToolTip(tip)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 2 * GRID)
        self.table.setShowGrid(False)
        self.table.setFrameShape(QTableWidget.Shape.NoFrame)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.table.setAccessibleName("fusion decisions")
        self.table.currentCellChanged.connect(lambda row, *_: self._picked(row))
        self.inside = QLabel()
        self.inside.setWordWrap(True)
        self.inside.setTextFormat(Qt.TextFormat.RichText)
        self.inside.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.inside.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.choices = QGridLayout()
        self.choices.setColumnStretch(0, 1)
        detail = QWidget()
        lines = QVBoxLayout(detail)
        lines.setContentsMargins(3 * GRID, 0, 2 * GRID, 2 * GRID)
        lines.addWidget(self.inside)
        lines.addLayout(self.choices)
        lines.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setWidget(detail)
        split = QSplitter()
        split.addWidget(self.table)
        split.addWidget(scroll)
        split.setSizes([560, 340])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.text)
        layout.addWidget(split, 1)
        self._split = split
        follow(self, host.store, self._session_changed)
        stop = host.watch_measured(self._show_choices)
        self.destroyed.connect(lambda *_: stop())
        self.refresh()

    def came_into_view(self) -> None:
        """List what was put off while nobody looked."""
        self.refresh()

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"entries", "active", "path"} and in_view(self):
            self.refresh()

    def refresh(self) -> None:
        """List the active variant's fusions."""
        session = self._host.store.state
        variant = session.active_variant
        if variant is not self._variant or variant is None:
            self._variant = variant
            self._rows = fusion_rows(variant) if variant is not None else ()
            self._fill()
        self.text.setText(self._said(session))
        self._split.setVisible(bool(self._rows))

    def _said(self, session: Session) -> str:
        entry = session.active_entry
        if entry is None:
            return "Open a module to see what fusion does to overlap."
        if entry.variant is None:
            return "Waiting for the active variant."
        if not self._rows:
            if edits.options_of(entry.plan, "fuse") is None:
                return f"The plan of {entry.key} fuses nothing. Set “fusion” in the plan line to see decisions."
            return f"Nothing in {entry.key} can be fused."
        more = f" The {MOST} worst are listed." if len(self._rows) > MOST else ""
        harmful = sum(row.exposed > 0 for row in self._rows)
        worst = sum(row.exposed for row in self._rows)
        count = f"{len(self._rows):,} decisions"
        if not harmful:
            return f"{entry.key}: {count}, none makes compute wait for a transfer it does not need.{more}"
        return f"{entry.key}: {harmful:,} of {count} expose transfers, {time_text(worst)} together.{more}"

    def _fill(self) -> None:
        theme = self._host.theme
        self.table.setRowCount(min(len(self._rows), MOST))
        for number, row in enumerate(self._rows[:MOST]):
            fusion = row.fusion
            texts = (
                fusion.name,
                fusion.kind or "left apart",
                time_text(row.time) if row.time else "",
                bytes_text(fusion.saved_bytes) if fusion.saved_bytes else "",
                time_text(row.exposed) if row.exposed else "",
                time_text(row.waits) if row.waits else "",
            )
            for column, text in enumerate(texts):
                item = QTableWidgetItem(text)
                item.setToolTip(text)
                if column >= 2:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                if column == 4:
                    item.setForeground(QColor(theme.loss))
                self.table.setItem(number, column, item)
        if self._rows:
            self.table.setCurrentCell(0, 0)
        else:
            self._show_choices()

    def _current(self) -> FusionRow | None:
        row = self.table.currentRow()
        return self._rows[row] if 0 <= row < len(self._rows) else None

    def _picked(self, number: int) -> None:
        row, session = self._current(), self._host.store.state
        entry = session.active_entry
        if row is None or entry is None:
            self._show_choices()
            return
        if in_view(self):
            asked = [(entry.machine, taken(entry.plan, choice)) for choice in row.fusion.alternatives]
            self._host.measure("trying another fusion", asked)
            if row.fusion.instruction not in session.selection.instructions and self.table.hasFocus():
                ids = (row.fusion.instruction,)
                self._host.store.become("Select", edits.selected(session, entry.key, ids))
        self._show_choices()

    def _show_choices(self) -> None:
        while (item := self.choices.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        row, entry = self._current(), self._host.store.state.active_entry
        self.inside.setText(_inside(row) if row is not None else "")
        if row is None or entry is None or entry.variant is None:
            return
        for number, choice in enumerate(row.fusion.alternatives):
            answer = self._host.measured((entry.machine, taken(entry.plan, choice)))
            label = QLabel(choice.what)
            label.setWordWrap(True)
            self.choices.addWidget(label, number, 0)
            self.choices.addWidget(self._gain(answer, entry.variant.metrics), number, 1)
            button = QPushButton("Take")
            button.setAccessibleName(f"take: {choice.what}")
            button.clicked.connect(self._taker(choice))
            self.choices.addWidget(button, number, 2)

    def _gain(self, answer: Metrics | str | None, now: Metrics) -> QLabel:
        label = QLabel("…")
        if isinstance(answer, str):
            label.setText("impossible")
            label.setToolTip(answer)
        elif answer is not None:
            label.setText(f"{gain_text(now.makespan, answer.makespan)}")
            label.setToolTip(f"{time_text(answer.makespan)}, {time_text(answer.exposed)} exposed")
            theme = self._host.theme
            role = theme.gain if answer.makespan < now.makespan else theme.muted
            label.setStyleSheet(f"color: {role}")
        return label

    def _taker(self, choice: Alternative) -> Callable[[], None]:
        def take() -> None:
            session = self._host.store.state
            entry = session.active_entry
            if entry is not None:
                plan = taken(entry.plan, choice)
                self._host.store.become(
                    choice.what[:1].upper() + choice.what[1:], edits.planned(session, entry.key, plan)
                )

        return take


def _inside(row: FusionRow) -> str:
    fusion = row.fusion
    members = ", ".join(
        f"<b>{escape(name)}</b>" if name == fusion.einsum else escape(name) for name in fusion.members[:_MOST_MEMBERS]
    )
    more = f" and {len(fusion.members) - _MOST_MEMBERS} more" if len(fusion.members) > _MOST_MEMBERS else ""
    parts = [f"<b>{escape(fusion.name)}</b>", f"holds {members}{more}" if members else ""]
    if fusion.waits_for:
        parts.append(f"waits for {escape(', '.join(fusion.waits_for))}")
    if fusion.foreign:
        parts.append(f"of which its einsum does not need {escape(', '.join(fusion.foreign))}")
    if not fusion.alternatives:
        parts.append("there is no other decision to take")
    return "<br>".join(part for part in parts if part)
