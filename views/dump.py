"""Which modules of an XLA dump to open: every module at every stage that was dumped, the partitioned ones picked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.hlo.dump import Dumped
from engine.quantities import bytes_text
from views.theme import GRID

_COLUMNS = ("number", "module", "stage", "size")
_PATH = Qt.ItemDataRole.UserRole


class DumpDialog(QDialog):
    """One or several of a dump's modules, to be opened together."""

    def __init__(self, folder: Path, modules: Sequence[Dumped], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Modules of a dump")
        self.resize(180 * GRID, 110 * GRID)
        text = QLabel(
            f"{folder} holds {len({d.number for d in modules})} modules at {len(modules)} stages. Right after the "
            "SPMD partitioner collectives are still whole, which is what decomposition works on. Pick one, or several "
            "to compare them."
        )
        text.setWordWrap(True)
        self.search = QLineEdit()
        self.search.setPlaceholderText("find a module or a stage")
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._filter)
        self.list = QTreeWidget()
        self.list.setHeaderLabels(_COLUMNS)
        self.list.setRootIsDecorated(False)
        self.list.setUniformRowHeights(True)
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.list.setAccessibleName("modules of the dump")
        self.list.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.list.header().setStretchLastSection(False)  # Qt's signature
        self.list.header().setSectionResizeMode(2, QHeaderView.ResizeMode.Stretch)
        for dumped in modules:
            self.list.addTopLevelItem(_item(dumped))
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Open | QDialogButtonBox.StandardButton.Cancel)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self.list.itemActivated.connect(lambda _: self.accept())
        self.list.itemSelectionChanged.connect(self._count)
        layout = QVBoxLayout(self)
        layout.setSpacing(2 * GRID)
        for widget in (text, self.search, self.list, self.buttons):
            layout.addWidget(widget)
        first = next((n for n, d in enumerate(modules) if d.is_partitioned), None)
        if first is None:
            first = next((n for n, d in enumerate(modules) if "after_optimizations" in d.stage), 0)
        chosen = self.list.topLevelItem(first)
        if chosen is not None:
            self.list.setCurrentItem(chosen)
        self.list.setFocus()

    def picked(self) -> tuple[Path, ...]:
        """Files of the picked modules, in the list's order."""
        items = (self.list.topLevelItem(n) for n in range(self.list.topLevelItemCount()))
        return tuple(item.data(0, _PATH) for item in items if item is not None and item.isSelected())

    def _count(self) -> None:
        count = len(self.picked())
        button = self.buttons.button(QDialogButtonBox.StandardButton.Open)
        button.setEnabled(count > 0)
        button.setText("Open" if count < 2 else f"Open {count} modules")

    def _filter(self, text: str) -> None:
        for number in range(self.list.topLevelItemCount()):
            item = self.list.topLevelItem(number)
            if item is not None:
                words = f"{item.text(0)} {item.text(1)} {item.text(2)}".lower()
                item.setHidden(text.lower() not in words)


def _item(dumped: Dumped) -> QTreeWidgetItem:
    try:
        size = bytes_text(dumped.path.stat().st_size)
    except OSError:
        size = ""
    item = QTreeWidgetItem([str(dumped.number), dumped.name, dumped.title, size])
    item.setData(0, _PATH, dumped.path)
    item.setSizeHint(0, QSize(16 * GRID, 6 * GRID))
    item.setToolTip(2, dumped.path.name)
    item.setTextAlignment(0, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    item.setTextAlignment(3, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return item
