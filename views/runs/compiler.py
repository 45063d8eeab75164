"""What a production compiler makes of the module and of the active plan, without a device."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QTableWidgetItem,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.quantities import gain_text, time_text
from engine.session import edits
from engine.session.commands import compile_command
from engine.session.session import Session
from views.icons import icon
from views.ports import Host, follow, in_view
from views.runs.message import Message, Way
from views.runs.rows import devices_needed, waiting_text
from views.runs.runner import CompiledRow, Runner, Stage
from views.runs.table import plain_table
from views.runs.targets import default_target, targets_for
from views.theme import GRID, axis_font
from views.wheel import pass_wheel_on

_COLUMNS = ("", "variant", "compiler's cycles", "", "waiting", "predicted", "our model", "link load", "compiled in")
_GAIN = 3
_TIPS = {
    "compiler's cycles": "Of one execution, by the compiler's own costs: a prediction, no measured time",
    "waiting": "Cycles in which nothing runs because a transfer is waited for",
    "predicted": "The same cycles as time; loops with the waits in them, which the compiler's own totals leave out",
    "our model": "The same instructions in the same order, with our costs",
    "link load": "Most permutes that one link carries at a time; the compiler charges nothing for sharing it",
}
_ORIGIN = "predicted by the compiler, without a device — no time here was measured"
_TOO_GOOD = "!: two permutes go the same way at once, which the compiler takes for free, so its figure is too good"


class CompilerPage(QWidget):
    """A target, a button, and one row for each variant that came of it. A click makes the variant active."""

    def __init__(self, host: Host, runner: Runner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._runner = runner
        self._offered = (0, "")
        self.rows: tuple[CompiledRow, ...] = ()
        self.target = QComboBox()
        pass_wheel_on(self.target)
        self.target.setEditable(True)  # Qt's signature
        self.target.setMinimumWidth(50 * GRID)
        self.target.setToolTip("Devices to compile for: tpu:v4:2x2x2, cuda:h100:1x1x8. They need not exist.")
        self.target.setAccessibleName("target")
        self.button = QPushButton("Compile")
        self.button.setToolTip("The module as loaded, and the active plan of it")
        self.button.clicked.connect(self.do)
        self.copy = QToolButton()
        self.copy.setAutoRaise(True)  # Qt's signature
        self.copy.setToolTip("Copy as command line")
        self.copy.setAccessibleName("copy as command line")
        self.copy.clicked.connect(self._copy)
        line = QHBoxLayout()
        line.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID)
        line.setSpacing(2 * GRID)
        line.addWidget(QLabel("for"))
        line.addWidget(self.target)
        line.addWidget(self.button)
        line.addWidget(self.copy)
        line.addStretch(1)
        self.message = Message(host)
        self.table = plain_table(_COLUMNS, _TIPS, "compiled variants", range(2, len(_COLUMNS)))
        self.table.horizontalHeader().setStretchLastSection(False)  # Qt's signature
        for signal in (self.table.cellClicked, self.table.cellActivated):
            signal.connect(lambda row, _: self._pick(row))
        self.origin = QLabel()
        self.origin.setFont(axis_font())
        self.origin.setMargin(GRID)
        self.origin.setWordWrap(True)  # Qt's signature
        self.origin.setForegroundRole(self.origin.palette().ColorRole.PlaceholderText)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(line)
        layout.addWidget(self.message)
        layout.addWidget(self.table, 1)
        layout.addWidget(self.origin)
        layout.addStretch(0)
        stop = runner.watch(self.refresh)
        self.destroyed.connect(lambda *_: stop())
        follow(self, host.store, self._session_changed)
        self.refresh()

    def do(self) -> None:
        """Compile for the target that is chosen."""
        self._runner.compile(self.target.currentText().strip())

    def _copy(self) -> None:
        session = self._host.store.state
        entry = edits.planned_entry(session)
        if entry is not None:
            command = compile_command(session.path, entry, self.target.currentText().strip())
            QGuiApplication.clipboard().setText(command)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"entries", "active", "modules", "problem"} and in_view(self):
            self.refresh()

    def refresh(self) -> None:
        session = self._host.store.state
        self._offer(session)
        self.copy.setIcon(icon("copy", self._host.theme.text))
        self.rows = self._runner.compiled
        progress = self._runner.compiling
        self.button.setEnabled(bool(session.active_variant) and progress.stage != Stage.RUNNING)
        again: tuple[Way, ...] = (("Try again", self.do),)
        if progress.stage == Stage.IDLE:
            self.message.say(_next(session))
        elif progress.stage == Stage.DONE:
            self.message.say(progress.text)
        else:
            self.message.follow(progress, again)
        self.message.setVisible(bool(self.message.text.text()))
        self._fill()
        self.table.setVisible(bool(self.rows))
        too_good = _TOO_GOOD if not all(row.counts for row in self.rows) else ""
        self.origin.setText(" · ".join(filter(None, (_ORIGIN if self.rows else "", too_good, *progress.notes))))
        self.origin.setVisible(bool(self.origin.text()))

    def _offer(self, session: Session) -> None:
        """Targets for as many devices as the module needs; what was typed stays while these are the same."""
        entry = edits.planned_entry(session)
        wanted = (devices_needed(session), entry.machine.chip if entry is not None else "")
        if wanted == self._offered or not wanted[0]:
            return
        self._offered = wanted
        with QSignalBlocker(self.target):
            self.target.clear()
            self.target.addItems([str(target) for target in targets_for(wanted[0])])
            chosen = default_target(*wanted)
            self.target.setCurrentText(str(chosen) if chosen is not None else "")

    def _fill(self) -> None:
        theme = self._host.theme
        self.table.setRowCount(len(self.rows))
        for number, row in enumerate(self.rows):
            base = self.rows[0]
            texts = (
                row.key,
                row.name,
                f"{row.cycles:,}{'' if row.counts else ' !'}",
                "" if row is base else gain_text(base.predicted, row.predicted),
                f"{row.waiting:,}",
                time_text(row.predicted),
                time_text(row.model),
                f"{row.link_load:.1f}",
                f"{row.seconds:.1f} s",
            )
            for column, text in enumerate(texts):
                item = QTableWidgetItem(text)
                if column > 1:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                if column == _GAIN and text:
                    item.setForeground(QColor(theme.gain if row.predicted < base.predicted else theme.loss))
                self.table.setItem(number, column, item)

    def _pick(self, number: int) -> None:
        if 0 <= number < len(self.rows) and self.rows[number].key:
            key = self.rows[number].key
            self._host.store.become(f"Activate {key}", edits.activated(self._host.store.state, key))


def _next(session: Session) -> str:
    if not session.path:
        return "Open a module to have it compiled."
    if session.problem:
        return "The file could not be read."
    if session.active_variant is None:
        return waiting_text(session)
    return (
        "“Compile” asks the production compiler, which needs no device, for its own schedule of the module as loaded "
        "and of the active plan. Each becomes a variant with the compiler's times."
    )
