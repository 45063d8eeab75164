"""The log of jobs: newest first, each with its progress, a way to cancel it, and its error in full."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QIcon, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QApplication,
    QHeaderView,
    QLabel,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionProgressBar,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from views.icons import icon
from views.plain import make_plain
from views.ports import Host, JobState
from views.theme import GRID

_COLUMNS = ("job", "state", "time", "")
_FRACTION = Qt.ItemDataRole.UserRole
"""0..1000 while a job runs, else None."""


class JobLog(QWidget):
    """A table of jobs; rows are kept and only their texts change. A click on the cross, or Delete, cancels."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._jobs: tuple[JobState, ...] = ()
        self.table = QTableWidget(0, len(_COLUMNS))
        self.table.setHorizontalHeaderLabels(_COLUMNS)
        make_plain(self.table, (2,))
        self.table.setWordWrap(True)
        self.table.setItemDelegateForColumn(1, _Progress(self.table))
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(0, 70 * GRID)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(3, QHeaderView.ResizeMode.Fixed)
        header.resizeSection(3, 8 * GRID)
        self.table.cellClicked.connect(self._clicked)
        self.empty = QLabel("No job has run yet. Reading a file, planning and verifying each run as a job.")
        self.empty.setMargin(2 * GRID)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.table.setAccessibleName("Jobs")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.empty)
        layout.addWidget(self.table)
        stop = host.watch_jobs(self.refresh)
        self.destroyed.connect(lambda *_: stop())
        self.refresh()

    def refresh(self) -> None:
        """Show the jobs as they are now."""
        self._jobs = self._host.jobs()
        self.empty.setVisible(not self._jobs)
        self.table.setVisible(bool(self._jobs))
        self.table.setRowCount(len(self._jobs))
        for row, job in enumerate(self._jobs):
            self._show(row, job)

    def _show(self, row: int, job: JobState) -> None:
        running = job.state == "running"
        said = job.message if job.state == "done" else ""
        state = job.message if running else job.error or said or job.state
        seconds = f"{job.seconds:.1f} s" if job.seconds >= 0.05 else ""
        for column, text in enumerate((job.title, state, seconds, "")):
            item = self.table.item(row, column)
            if item is None:
                item = QTableWidgetItem()
                self.table.setItem(row, column, item)
            if item.text() != text:
                item.setText(text)
                item.setToolTip(text)
                if column == 1 and not running:
                    self.table.resizeRowToContents(row)
            if column == 1:
                item.setData(_FRACTION, round(job.fraction * 1000) if running else None)
            if column == 3 and running == item.icon().isNull():
                item.setIcon(icon("x", self._host.theme.text) if running else QIcon())
                item.setToolTip("Cancel this job" if running else "")

    def _clicked(self, row: int, column: int) -> None:
        if column == 3:
            self._cancel(row)

    def _cancel(self, row: int) -> None:
        if 0 <= row < len(self._jobs) and self._jobs[row].state == "running":
            self._host.cancel(self._jobs[row].number)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete:
            self._cancel(self.table.currentRow())
        else:
            super().keyPressEvent(event)


class _Progress(QStyledItemDelegate):
    """Paints the style's progress bar while a job runs. Widgets in cells would be made and destroyed with every job."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        fraction = index.data(_FRACTION)
        if fraction is None:
            super().paint(painter, option, index)
            return
        bar = QStyleOptionProgressBar()
        bar.rect = option.rect.adjusted(GRID, GRID, -GRID, -GRID)
        bar.palette = option.palette
        bar.state = QStyle.StateFlag.State_Enabled | QStyle.StateFlag.State_Horizontal
        bar.minimum, bar.maximum, bar.progress = 0, 1000, int(fraction)
        message = index.data(Qt.ItemDataRole.DisplayRole)
        percent = f"{fraction // 10} %"
        bar.text = f"{message} {percent}" if message else percent
        bar.textVisible = True
        bar.textAlignment = Qt.AlignmentFlag.AlignCenter
        QApplication.style().drawControl(QStyle.ControlElement.CE_ProgressBar, bar, painter)
