"""The Export tab: what can be written at the left, the page of the chosen one beside it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QScrollArea, QStackedWidget, QWidget

from engine.export.contents import FORMATS
from engine.session.session import Session
from views.export.bundle_page import BundlePage
from views.export.file_page import FilePage
from views.export.port import Exporter, Stage
from views.ports import Host, follow
from views.theme import GRID

BUNDLE = "bundle"


class ExportPane(QWidget):
    """Never waits for what it starts: jobs write, and say here how that ended."""

    comfortable = 96 * GRID
    """Pixels of height in which a search and what came of it can be read without scrolling."""

    def __init__(self, host: Host, exporter: Exporter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._exporter = exporter
        self._stage = Stage.IDLE
        self.list = QListWidget()
        self.list.setAccessibleName("what to export")
        self.list.setFrameShape(QListWidget.Shape.NoFrame)
        self.list.setSpacing(GRID // 4)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        for name, title in ((BUNDLE, "Bundle for the job"), *((n, f.title) for n, f in FORMATS.items())):
            item = QListWidgetItem(title, self.list)
            item.setData(Qt.ItemDataRole.UserRole, name)
        self.list.setFixedWidth(self.list.sizeHintForColumn(0) + 8 * GRID)
        self.bundle = BundlePage(host, exporter)
        self.file = FilePage(host, exporter)
        self.pages = QStackedWidget()
        for page in (self.bundle, self.file):
            scroll = QScrollArea()
            scroll.setWidgetResizable(True)
            scroll.setFrameShape(QScrollArea.Shape.NoFrame)
            scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            scroll.setWidget(page)
            self.pages.addWidget(scroll)
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        line.addWidget(self.list)
        line.addWidget(self.pages, 1)
        self.list.currentItemChanged.connect(lambda item, _: self._choose(item))
        self.list.setCurrentRow(0)
        follow(self, host.store, self._session_changed)
        stop = exporter.watch(self.refresh)
        self.destroyed.connect(lambda *_: stop())
        self.refresh()

    def choose(self, name: str) -> None:
        """Show the page of a format, or of the bundle."""
        for row in range(self.list.count()):
            if self.list.item(row).data(Qt.ItemDataRole.UserRole) == name:
                self.list.setCurrentRow(row)

    def refresh(self) -> None:
        self.bundle.refresh()
        self.file.refresh()
        stage = self._exporter.progress.stage
        if stage != self._stage:
            self._stage = stage
            QTimer.singleShot(0, self, self._show_progress)  # when what came and went has its place

    def _show_progress(self) -> None:
        """Scroll past the settings, to how the work goes and the trials below that."""
        scroll = self.pages.widget(0)
        if isinstance(scroll, QScrollArea):
            scroll.verticalScrollBar().setValue(self.bundle.bar.y() - GRID)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.bundle.repaint_roles()
            self.file.refresh()

    def _choose(self, item: QListWidgetItem | None) -> None:
        name = item.data(Qt.ItemDataRole.UserRole) if item is not None else BUNDLE
        self.pages.setCurrentIndex(int(name != BUNDLE))
        if name != BUNDLE:
            self.file.choose(name)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"entries", "active", "modules", "reading"}:
            self.refresh()
