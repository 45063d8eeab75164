"""The session's modules, where there are several: which one is active, and what can be done with each."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QFont, QPainter
from PySide6.QtWidgets import (
    QListWidget,
    QListWidgetItem,
    QMenu,
    QSizePolicy,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from engine.session import edits
from engine.session.session import ModuleFile, Session
from views.ports import Host, follow
from views.theme import GRID, axis_font, colour, text_font

_MOST = 6
"""Modules that are seen without scrolling."""
_KEY = Qt.ItemDataRole.UserRole
_COUNT = Qt.ItemDataRole.UserRole + 1
_ACTIVE = Qt.ItemDataRole.UserRole + 2


class ModuleList(QListWidget):
    """A click activates a module's variant: the one that was active last, else the last of its own."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._last: dict[str, str] = {}
        self.setFrameShape(QListWidget.Shape.NoFrame)
        self.setUniformItemSizes(True)
        self.setSelectionMode(QListWidget.SelectionMode.NoSelection)
        self.setItemDelegate(_Row(host, self))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("modules")
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._menu)
        # Not what is current: the focus alone makes an item current.
        self.itemClicked.connect(self._picked)
        self.itemActivated.connect(self._picked)
        follow(self, host.store, self._session_changed)
        self._session_changed(host.store.state, frozenset({"modules"}))

    def sizeHint(self) -> QSize:
        rows = min(max(1, self.count()), _MOST)
        height = self.sizeHintForRow(0) if self.count() else self.fontMetrics().height()
        return QSize(50 * GRID, rows * height + 2 * GRID)

    def minimumSizeHint(self) -> QSize:
        return QSize(20 * GRID, self.sizeHint().height())

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if not changed & {"modules", "active", "entries"}:
            return
        entry = session.active_entry
        if entry is not None:
            self._last[entry.module] = entry.key
        self.setVisible(len(session.modules) > 1)
        self.blockSignals(True)  # Qt's signature has no name for it
        if "modules" in changed:
            self.clear()
            for module in session.modules:
                self.addItem(_item(session, module))
            self.updateGeometry()
        for number, module in enumerate(session.modules):
            item = self.item(number)
            active = entry is not None and entry.module == module.key
            item.setData(_ACTIVE, active)
            if active:
                self.setCurrentItem(item)
        self.blockSignals(False)  # as above

    def _picked(self, item: QListWidgetItem) -> None:
        session = self._host.store.state
        module = item.data(_KEY)
        own = [entry.key for entry in session.entries if entry.module == module]
        if own:
            key = self._last.get(module, "")
            key = key if key in own else own[-1]
            self._host.store.become(f"Activate {key}", edits.activated(session, key))

    def _menu(self, position: QPoint) -> None:
        if self.itemAt(position) is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for text, action in (
            ("Add a variant like the active one", "duplicate"),
            ("Name the module …", "name-module"),
            ("Read again", "reload"),
            ("Remove the module", "remove-module"),
        ):
            menu.addAction(text).triggered.connect(self._performer(action))
        menu.popup(self.viewport().mapToGlobal(position))

    def _performer(self, action: str) -> Callable[[], None]:
        return lambda: self._host.perform(action)


def _item(session: Session, module: ModuleFile) -> QListWidgetItem:
    count = f"{module.facts.instructions:,} instructions" if module.facts is not None else "not read"
    item = QListWidgetItem(session.label(module.key))
    item.setData(_KEY, module.key)
    item.setData(_COUNT, f"{module.facts.instructions:,}" if module.facts is not None else "")
    item.setToolTip(f"{module.path}\n{count}")
    item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{session.label(module.key)}, {count}")
    return item


class _Row(QStyledItemDelegate):
    """A module's name, and how many instructions it has; a bar and heavy letters where it is active."""

    def __init__(self, host: Host, parent: QWidget) -> None:
        super().__init__(parent)
        self._host = host

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(30 * GRID, option.fontMetrics.height() + 2 * GRID)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        theme = self._host.theme
        area: QRect = option.rect
        active = bool(index.data(_ACTIVE))
        if active:
            painter.fillRect(area, colour(theme.band))
            painter.fillRect(QRect(area.left(), area.top(), 3, area.height()), colour(theme.focus))
        room = area.adjusted(2 * GRID, 0, -2 * GRID, 0)
        painter.setFont(axis_font())
        painter.setPen(colour(theme.muted))
        count = index.data(_COUNT)
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, count)
        taken = painter.fontMetrics().horizontalAdvance(count) + 2 * GRID
        font = QFont(text_font())
        font.setBold(active)
        painter.setFont(font)
        painter.setPen(colour(theme.text))
        name = painter.fontMetrics().elidedText(index.data(), Qt.TextElideMode.ElideMiddle, room.width() - taken)
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, name)
