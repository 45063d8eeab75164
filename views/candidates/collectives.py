"""The list at the left: every collective, what was decided about it, and what that saves."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QFont, QPainter, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLabel,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from engine.passes.candidate import Candidate
from engine.quantities import signed_time_text, time_text
from engine.session import edits
from engine.session.matching import loaded_in
from engine.session.session import Entry, Session
from views.candidates.rows import CollectiveRow, Verdict, judging, override_of, rows_of_sites
from views.ports import Host, follow
from views.stale import StaleNote
from views.theme import GRID, axis_font, colour, text_font

_SITES = Qt.ItemDataRole.UserRole
_LINES = Qt.ItemDataRole.UserRole + 1
_FRESH = frozenset({"entries", "active"})


class Collectives(QWidget):
    """Rows of alike sites; a row of several opens to its sites."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._shown: object = None
        self.model = QStandardItemModel(self)
        self.view = QTreeView()
        self.view.setModel(self.model)
        self.view.setHeaderHidden(True)
        self.view.setIndentation(3 * GRID)
        self.view.setUniformRowHeights(True)
        self.view.setFrameShape(QTreeView.Shape.NoFrame)
        self.view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.view.setItemDelegate(_TwoLines(host, self.view))
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.customContextMenuRequested.connect(self._menu)
        self.view.selectionModel().selectionChanged.connect(self._picked)
        self.view.setAccessibleName("Collectives")
        self.note = QLabel()
        self.note.setWordWrap(True)
        self.note.setMargin(2 * GRID)
        self.note.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.note.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.heading = QLabel("saves in a step")
        self.heading.setFont(axis_font())
        self.heading.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.heading.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID)
        self.heading.setToolTip("What decomposing all sites of a row saves in all their runs, by the gate's estimate")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(StaleNote(host, judging))
        layout.addWidget(self.note)
        layout.addWidget(self.heading)
        layout.addWidget(self.view, 1)
        layout.addStretch()
        follow(self, host.store, self._session_changed)
        self._session_changed(host.store.state, _FRESH)

    @property
    def count(self) -> int:
        """How many collectives are listed."""
        entry = judging(self._host.store.state)
        return len(entry.variant.candidates) if entry is not None and entry.variant is not None else 0

    def sizeHint(self) -> QSize:
        return QSize(58 * GRID, 100 * GRID)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"entries", "active", "reading", "problem", "modules"}:
            self._list(session)
        if changed & {"selection", "matches"} or changed & _FRESH:
            self._show_selection(session)

    def _list(self, session: Session) -> None:
        entry = judging(session)
        variant = entry.variant if entry is not None else None
        self._note(session)
        if variant is self._shown:
            return
        self._shown = variant
        self.model.clear()
        if entry is None or variant is None:
            return
        for row in rows_of_sites(variant.candidates):
            item = _item(row.sites, _row_lines(row))
            if len(row.sites) > 1:
                for site in row.sites:
                    item.appendRow(_item((site,), _site_lines(site)))
            self.model.appendRow(item)

    def _note(self, session: Session) -> None:
        entry = judging(session)
        text = ""
        if not session.path:
            text = "Open a module: its collectives are listed here with what decomposing each would save."
        elif session.problem:
            text = "The file could not be read."
        elif session.reading or any(e.pending for e in session.beside(session.active)):
            text = "" if entry is not None else "Looking for collectives …"
        elif entry is None:
            text = _no_verdicts(session)
        elif entry.key != session.active:
            text = f"Verdicts of {entry.key}: the plan of {session.active} decomposes nothing."
        self.note.setText(text)
        self.note.setVisible(bool(text))
        self.view.setVisible(entry is not None)
        self.heading.setVisible(entry is not None)

    def _picked(self) -> None:
        sites = self.picked()
        session = self._host.store.state
        entry = judging(session)
        if entry is None or not sites:
            return
        ids = tuple(dict.fromkeys(i for site in sites for i in _ids(entry, site)))
        if session.selection.instructions != ids:
            self._host.store.become("Select", edits.selected(session, entry.key, ids))

    def picked(self) -> tuple[Candidate, ...]:
        """Sites of the rows that are picked in the list."""
        found: dict[str, Candidate] = {}
        for index in self.view.selectionModel().selectedIndexes():
            found.update({site.id: site for site in index.data(_SITES)})
        return tuple(found.values())

    def _show_selection(self, session: Session) -> None:
        """Follow a selection made elsewhere, if it is a collective of the list."""
        entry = judging(session)
        wanted = loaded_in(session, entry.key) if entry is not None else frozenset()
        if {id_ for site in self.picked() for id_ in site.loaded} == wanted:
            return
        self.view.selectionModel().blockSignals(True)  # Qt's signature has no name for it
        self.view.clearSelection()
        for n in range(self.model.rowCount() if wanted else 0):
            index = self.model.index(n, 0)
            if not wanted.isdisjoint(id_ for site in index.data(_SITES) for id_ in site.loaded):
                self.view.setCurrentIndex(index)
                self.view.scrollTo(index)
                break
        self.view.selectionModel().blockSignals(False)  # as above
        self.view.viewport().update()

    def _menu(self, position: QPoint) -> None:
        sites = self.picked()
        if not sites:
            return
        menu = QMenu(self)
        count = f" ({len(sites)} sites)" if len(sites) > 1 else ""
        menu.addAction(f"Force decomposition{count}", lambda: self.override("force"))
        menu.addAction(f"Forbid decomposition{count}", lambda: self.override("forbid"))
        menu.addAction(f"Leave it to the gate{count}", lambda: self.override(None))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.view.viewport().mapToGlobal(position))

    def override(self, verdict: str | None) -> None:
        """Force or forbid the picked sites in the plan that judges them, or leave them to the gate: one undo step."""
        session = self._host.store.state
        entry, sites = judging(session), self.picked()
        if entry is None or not sites:
            return
        plan = edits.overridden(entry.plan, (site.id for site in sites), verdict)
        if verdict is None and entry.variant is not None:
            plan = edits.released(plan, (site.id for site in sites), entry.variant.candidates)
        word = {"force": "Force", "forbid": "Forbid"}.get(verdict or "", "Leave to the gate:")
        name = sites[0].id if len(sites) == 1 else f"{len(sites)} sites"
        self._host.store.become(f"{word} {name}", edits.planned(session, entry.key, plan))


def _ids(entry: Entry, site: Candidate) -> tuple[int, ...]:
    """What selects a site: the collective itself where it was left, else what it came from in the module as loaded."""
    left = entry.variant is not None and entry.variant.program.module.origins.get(site.collective, ()) == site.origins
    return (site.collective,) if left else site.loaded


def _no_verdicts(session: Session) -> str:
    shown = session.beside(session.active)
    if session.facts is not None and session.facts.whole:
        return (
            f"The module is not partitioned yet: it is for {session.facts.partitions} partitions, and its collectives "
            "come with partitioning. Open a dump from after that (--xla_dump_hlo_pass_re=spmd-partitioning)."
        )
    if all(edits.options_of(e.plan, "decompose") is None for e in shown):
        return _not_asked(session, shown)
    if any(e.error for e in shown):
        return "No variant has a result yet; the errors are in the timelines."
    return "This module has no collectives: it runs on one device, or nothing is communicated."


def _not_asked(session: Session, shown: tuple[Entry, ...]) -> str:
    """How to see verdicts where no plan decomposes; what was recorded follows none, and has none to set."""
    active = session.active_entry
    planned = [e.key for e in shown if e.recording is None]
    if active is None or active.recording is None:
        return "No variant decomposes anything. Set “decompose” in the plan line to auto to see what it would save."
    if planned:
        return (
            f"{active.key} was recorded and follows no plan. Activate {planned[0]} and set “decompose” in the plan "
            "line to auto to see what it would save."
        )
    return f"{active.key} was recorded and follows no plan. Open its module to see what decomposing would save."


def _item(sites: tuple[Candidate, ...], lines: tuple[str, str, str, str]) -> QStandardItem:
    item = QStandardItem()
    item.setData(sites, _SITES)
    item.setData(lines, _LINES)
    item.setData(f"{lines[1]}, {lines[2]}: {lines[3]}", Qt.ItemDataRole.AccessibleTextRole)
    item.setToolTip(f"{lines[1]}\n{lines[3]}")
    return item


def _row_lines(row: CollectiveRow) -> tuple[str, str, str, str]:
    """Mark, name, gain, reason."""
    if len(row.sites) == 1:
        return _site_lines(row.first)
    gain = signed_time_text(row.gain) if row.gain is not None else ""
    spread = row.spread
    each = f"{time_text(spread[0])} to {time_text(spread[1])} each · " if spread else ""
    return row.verdict, f"{row.first.id} ×{len(row.sites)}", gain, f"{each}{row.first.reason}"


def _site_lines(site: Candidate) -> tuple[str, str, str, str]:
    mark = Verdict.CHOSEN if site.chosen else Verdict.LEFT
    gain = signed_time_text(site.gate.gain * site.trips) if site.gate is not None else ""
    trips = f" (runs {site.trips:,} times)" if site.trips > 1 else ""
    return mark, site.id, gain, f"{site.variant + ' · ' if site.variant else ''}{site.reason}{trips}"


class _TwoLines(QStyledItemDelegate):
    """Mark, name and gain; below them the reason."""

    def __init__(self, host: Host, parent: QWidget) -> None:
        super().__init__(parent)
        self._host = host

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(50 * GRID, 2 * option.fontMetrics.height() + 2 * GRID)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        theme = self._host.theme
        mark, name, gain, reason = index.data(_LINES)
        entry = judging(self._host.store.state)
        sites = index.data(_SITES)
        override = override_of(entry.plan, sites[0]) if entry is not None else None
        area: QRect = option.rect
        picked = bool(option.state & QStyle.StateFlag.State_Selected)
        if picked:
            painter.fillRect(area, colour(theme.band))
            painter.fillRect(QRect(area.left(), area.top(), 3, area.height()), colour(theme.focus))
        line = (area.height() - 2 * GRID) // 2
        top = QRect(area.left() + 2 * GRID, area.top() + GRID, area.width() - 4 * GRID, line)
        low = top.translated(5 * GRID, line).adjusted(0, 0, -5 * GRID, 0)
        bold = QFont(text_font())
        bold.setBold(picked)
        painter.setFont(bold)
        painter.setPen(colour(theme.gain if mark == Verdict.CHOSEN else theme.muted))
        painter.drawText(top, Qt.AlignmentFlag.AlignVCenter, mark)
        painter.setPen(colour(theme.text))
        width = painter.fontMetrics().horizontalAdvance(gain) + 2 * GRID if gain else 0
        room = top.adjusted(5 * GRID, 0, -width, 0)
        text = painter.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, text)
        painter.setPen(colour(theme.gain if gain.startswith("+") and mark != Verdict.LEFT else theme.muted))
        painter.drawText(top, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, gain)
        painter.setFont(axis_font())
        painter.setPen(colour(theme.warning if override else theme.muted))
        forced = {"force": "forced · ", "forbid": "forbidden · "}.get(override or "", "")
        text = painter.fontMetrics().elidedText(forced + reason, Qt.TextElideMode.ElideRight, low.width())
        painter.drawText(low, Qt.AlignmentFlag.AlignVCenter, text)
