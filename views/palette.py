"""Every command by name: type a few letters, Enter does it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QSize, Qt
from PySide6.QtGui import QAction, QKeyEvent, QPainter, QPalette
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from views.menu_text import as_shown
from views.theme import GRID

_KEYS = Qt.ItemDataRole.UserRole + 1
"""Of an item: the keys of its command as text."""


class CommandPalette(QFrame):
    """A popup over the window with the actions that fit what was typed; best match first."""

    def __init__(self, actions: Sequence[QAction], parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self._actions = actions
        self.line = QLineEdit()
        self.line.setPlaceholderText("What do you want to do?")
        self.line.setAccessibleName("command")
        self.line.installEventFilter(self)
        self.list = QListWidget()
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setUniformItemSizes(True)
        self.list.setItemDelegate(_Command(self.list))
        self.list.itemActivated.connect(lambda _: self._do())
        self.list.itemClicked.connect(lambda _: self._do())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(2 * GRID, 2 * GRID, 2 * GRID, 2 * GRID)
        layout.addWidget(self.line)
        layout.addWidget(self.list)
        self.line.textChanged.connect(self._fill)
        self._fill("")
        self.resize(140 * GRID, 110 * GRID)

    def open_over(self, window: QWidget) -> None:
        middle = window.mapToGlobal(window.rect().center())
        self.move(middle.x() - self.width() // 2, window.mapToGlobal(window.rect().topLeft()).y() + 20 * GRID)
        self.show()
        self.line.setFocus()

    def _fill(self, text: str) -> None:
        self.list.clear()
        ranked = sorted(
            (rank, n)
            for n, action in enumerate(self._actions)
            if (rank := match(text, as_shown(action.text()))) is not None
        )
        for _, n in ranked:
            action = self._actions[n]
            keys = action.shortcut().toString(action.shortcut().SequenceFormat.NativeText)
            title = as_shown(action.text())
            item = QListWidgetItem(title)
            item.setData(Qt.ItemDataRole.UserRole, n)
            item.setData(_KEYS, keys)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{title}, {keys}" if keys else title)
            item.setToolTip(action.toolTip())
            if not action.isEnabled():
                item.setFlags(Qt.ItemFlag.NoItemFlags)
            self.list.addItem(item)
        self.list.setCurrentRow(0)

    def _do(self) -> None:
        item = self.list.item(self.list.currentRow()) if self.list.count() else None
        if item is None or not item.flags() & Qt.ItemFlag.ItemIsEnabled:
            return
        action = self._actions[item.data(Qt.ItemDataRole.UserRole)]
        self.close()
        action.trigger()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.line and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()))
            if step is not None:
                self.list.setCurrentRow(max(0, min(self.list.count() - 1, self.list.currentRow() + step)))
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._do()
                return True
        return super().eventFilter(watched, event)


class _Command(QStyledItemDelegate):
    """A command at the left, its keys in a column of their own at the right."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().paint(painter, option, index)
        keys = index.data(_KEYS)
        if keys:
            lit = option.state & QStyle.StateFlag.State_Selected
            role = QPalette.ColorRole.HighlightedText if lit else QPalette.ColorRole.PlaceholderText
            painter.setPen(option.palette.color(role))
            place = option.rect.adjusted(0, 0, -2 * GRID, 0)
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, keys)

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(super().sizeHint(option, index).width(), option.fontMetrics.height() + 2 * GRID)


def match(typed: str, title: str) -> int | None:
    """How well letters fit a title, 0 is best; None where they do not occur in this order."""
    wanted, text = typed.lower().replace(" ", ""), title.lower()
    if typed.lower().strip() in text:
        return text.index(typed.lower().strip()) if typed.strip() else 0
    at = gaps = 0
    for letter in wanted:
        found = text.find(letter, at)
        if found < 0:
            return None
        gaps += found - at
        at = found + 1
    return 100 + gaps
