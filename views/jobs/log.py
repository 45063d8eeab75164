"""The log of jobs: newest first, each with its progress, a way to cancel it, and its error in full."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLabel,
    QProgressBar,
    QTableWidget,
    QTableWidgetItem,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from views.icons import icon
from views.ports import Host, JobState
from views.theme import GRID

_COLUMNS = ("job", "state", "time", "")


class JobLog(QWidget):
    """A table of jobs; rows are kept and only their texts change."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._rows: list[int] = []
        self.table = QTableWidget(0, len(_COLUMNS))
        self.table.setHorizontalHeaderLabels(_COLUMNS)
        self.table.verticalHeader().hide()
        self.table.setShowGrid(False)
        self.table.setFrameShape(QTableWidget.Shape.NoFrame)
        self.table.setWordWrap(True)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(0, 70 * GRID)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(3, QHeaderView.ResizeMode.ResizeToContents)
        self.empty = QLabel("No job has run yet. Reading a file, planning and verifying each run as a job.")
        self.empty.setMargin(4 * GRID)
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
        jobs = self._host.jobs()
        self.empty.setVisible(not jobs)
        self.table.setVisible(bool(jobs))
        numbers = [job.number for job in jobs]
        if numbers != self._rows:
            self._rows = numbers
            self.table.setRowCount(len(jobs))
            for row in range(len(jobs)):
                self.table.removeCellWidget(row, 3)
                self.table.removeCellWidget(row, 1)
        for row, job in enumerate(jobs):
            self._show(row, job)

    def _show(self, row: int, job: JobState) -> None:
        seconds = f"{job.seconds:.1f} s" if job.seconds >= 0.05 else ""
        running = job.state == "running"
        said = job.message if job.state == "done" else ""
        state = "" if running else job.error or said or job.state
        for column, text in ((0, job.title), (1, state), (2, seconds)):
            item = self.table.item(row, column)
            if item is None:
                item = QTableWidgetItem()
                self.table.setItem(row, column, item)
            if item.text() != text:
                item.setText(text)
                item.setToolTip(text)
                if job.error and column == 1:
                    self.table.resizeRowToContents(row)
        self._show_progress(row, job, running=running)

    def _show_progress(self, row: int, job: JobState, *, running: bool) -> None:
        bar = self.table.cellWidget(row, 1)
        if not running:
            if bar is not None:
                self.table.removeCellWidget(row, 1)
                self.table.removeCellWidget(row, 3)
            return
        if not isinstance(bar, QProgressBar):
            bar = QProgressBar()
            bar.setRange(0, 1000)
            self.table.setCellWidget(row, 1, bar)
            button = QToolButton()
            button.setIcon(icon("x", self._host.theme.text))
            button.setAutoRaise(True)
            button.setToolTip("Cancel this job")
            button.setAccessibleName(f"cancel {job.title}")
            number = job.number
            button.clicked.connect(lambda: self._host.cancel(number))
            self.table.setCellWidget(row, 3, button)
        bar.setValue(round(job.fraction * 1000))
        bar.setFormat(f"{job.message} %p %" if job.message else "%p %")
