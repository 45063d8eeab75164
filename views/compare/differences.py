"""Where the time went: instruction by instruction, what the active variant spends more or less than the base."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.quantities import signed_time_text, time_text
from engine.session import edits
from engine.session.lookup import lookup
from engine.session.matching import Match, match_of
from engine.session.measured import Measured
from engine.session.session import Entry, Session
from engine.session.variant import Variant
from engine.timeline.difference import Difference, differences
from views.compare.observations import ObservationTable, said
from views.filling import filling
from views.hint import Hint, open_first
from views.plain import make_plain
from views.ports import Host, follow, in_view

MOST = 400
"""Rows listed; what comes after differs least."""
_COLUMNS = ("instruction", "difference", "compute", "compute", "transfer", "transfer", "exposed", "exposed")
_PAIRS = range(2, len(_COLUMNS))
"""Columns of the base and of the active variant in turn."""


@lru_cache(maxsize=32)
def differences_of(match: Match) -> tuple[Difference, ...]:
    """Differences of two variants, largest first."""
    return differences(match.base.timeline, match.base_times, match.other.timeline, match.other_times)


class DifferencePane(QWidget):
    """A click selects the instruction, and what was made from it, in both timelines."""

    def __init__(
        self,
        host: Host,
        observed: Callable[[Entry], Measured | None] = lambda _: None,
        parent: QWidget | None = None,
    ) -> None:
        """`observed`: what the profile that an entry shows says; None for an entry without one."""
        super().__init__(parent)
        self._host = host
        self._observed = observed
        self._shown: Match | None = None
        self._rows: tuple[Difference, ...] = ()
        self.text = Hint(host)
        self.table = QTableWidget(0, len(_COLUMNS))
        self.table.setHorizontalHeaderLabels(_COLUMNS)
        make_plain(self.table, range(1, len(_COLUMNS)))
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.table.setAccessibleName("differences by instruction")
        self.table.currentCellChanged.connect(lambda row, *_: self._picked(row))
        self.observations = ObservationTable(self._select)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.text)
        layout.addWidget(self.table, 1)
        layout.addWidget(self.observations, 1)
        follow(self, host.store, self._session_changed)
        self.refresh()

    def came_into_view(self) -> None:
        """Compare what was put off while nobody looked."""
        self.refresh()

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"entries", "active", "base", "modules", "matches"} and in_view(self):
            self.refresh()

    def refresh(self) -> None:
        """Compare base and active variant, if they are not compared already; a profile with its own prediction."""
        session = self._host.store.state
        base, active = session.base_entry, session.active_entry
        measured = self._observed(active) if active is not None else None
        self.observations.setVisible(measured is not None)
        if active is not None and measured is not None:
            self._rows, self._shown = (), None
            self.table.hide()
            self.text.setText(said(active, measured))
            self.observations.show_measured(measured, self._host.theme)
            return
        match = match_of(session, base, active) if base is not None and active is not None else None
        if base is None or active is None or match is None or base is active or _apart(base, active):
            self._rows = ()
            self._shown = None
            self.text.setText(_nothing(session))
        elif match != self._shown:
            self._shown = match
            every = differences_of(match)
            self._rows = every[:MOST]
            more = f" The {MOST} largest of {len(every):,}." if len(every) > MOST else ""
            none = "" if every else " Nothing differs: each takes the same time in both."
            self.text.setText(f"{_said(session, base, active, match)}{more}{none}")
        with filling(self.table):
            self._fill(session)
        self.table.setVisible(bool(self._rows))

    def _fill(self, session: Session) -> None:
        theme, base, other = self._host.theme, session.base, session.active
        for column in _PAIRS:
            header = self.table.horizontalHeaderItem(column)
            if header is not None:
                header.setText(f"{_COLUMNS[column]} {(base, other)[column % 2]}")
        self.table.setRowCount(len(self._rows))
        for number, row in enumerate(self._rows):
            pairs = (
                (row.base.compute, row.other.compute),
                (row.base.transfer, row.other.transfer),
                (row.base.exposed, row.other.exposed),
            )
            times = [time_text(time) if time else "–" for pair in pairs for time in pair]
            for column, text in enumerate((self._name(row.key), signed_time_text(row.stream), *times)):
                item = QTableWidgetItem(text)
                item.setToolTip(text if text != "–" else "")
                if column:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                if column == 1:
                    item.setForeground(
                        QColor(theme.gain if row.stream < 0 else theme.loss if row.stream else theme.muted)
                    )
                self.table.setItem(number, column, item)

    def _name(self, key: int) -> str:
        session, match = self._host.store.state, self._shown
        base, active = session.base_entry, session.active_entry
        if match is None or base is None or active is None:
            return ""
        mine = _names(session, base.module, match.base, match.in_base(key))
        if match.across is None:
            return mine or _names(session, base.module, match.other, match.in_other(key))
        theirs = _names(session, active.module, match.other, match.in_other(key))
        if mine and theirs:
            return mine if mine == theirs else f"{mine}  ↔  {theirs}"
        return f"{mine or theirs}  only in {session.label(base.module if mine else active.module)}"

    def _select(self, instruction: int) -> None:
        session = self._host.store.state
        self._host.store.become("Select", edits.selected(session, session.active, (instruction,)))

    def _picked(self, number: int) -> None:
        session, match = self._host.store.state, self._shown
        if match is None or not 0 <= number < len(self._rows):
            return
        key = self._rows[number].key
        mine = match.in_base(key)
        home, ids = (session.base, mine) if mine else (session.active, match.in_other(key))
        self._host.store.become("Select", edits.selected(session, home, ids))


def _names(session: Session, module: str, variant: Variant, ids: tuple[int, ...]) -> str:
    """What instructions of a module as loaded are called: the first, and how many more there are."""
    if not ids:
        return ""
    file = session.module(module)
    loaded = file.facts.names.get(ids[0], "") if file is not None and file.facts is not None else ""
    name = loaded or lookup(variant).name(ids[0]) or f"instruction {ids[0]}"
    return name if len(ids) == 1 else f"{name} and {len(ids) - 1} more"


def _said(session: Session, base: Entry, active: Entry, match: Match) -> str:
    """What is compared, and across modules how far they match."""
    if match.across is None:
        return (
            f"{active.key} against {base.key}: time of the compute stream, waits included, by instruction of the "
            "module as loaded."
        )
    one, two = match.across.one.count, match.across.two.count
    return (
        f"{active.key} ({session.label(active.module)}) against {base.key} ({session.label(base.module)}): time of the "
        f"compute stream, waits included, by {match.across.by}. {two} instructions of {session.label(active.module)} "
        f"have a counterpart, {one} of {session.label(base.module)}."
    )


def _apart(base: Entry, active: Entry) -> bool:
    """Whether one result is still of an earlier machine or other costs, and the other of the present ones."""
    return base.of_this_machine != active.of_this_machine


def _nothing(session: Session) -> str:
    if not session.entries:
        return open_first("to see where its time goes")
    if session.base == session.active:
        return "The active variant is the base. Click another header to compare it."
    base, active = session.base_entry, session.active_entry
    if base is not None and active is not None and base.variant is not None and active.variant is not None:
        if _apart(base, active):
            late = active if base.of_this_machine else base
            return f"Out of date: {late.key} is of an earlier machine or other costs."
        return f"Matching {session.label(base.module)} and {session.label(active.module)} …"
    return "Waiting for both variants."
