"""Runs on devices: how long variants take, and whether they compute the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtWidgets import (
    QLabel,
    QSplitter,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.session import edits
from engine.session.commands import run_command, verify_command
from engine.session.session import Session
from views.ports import Host, follow, in_view
from views.runs.controls import Choice, Controls
from views.runs.message import Message, Way
from views.runs.rows import Row, devices_needed, origin_of, platform_facts, rows_of, runnable, shortage, waiting_text
from views.runs.runner import Runner, Stage, Task
from views.runs.table import plain_table
from views.theme import GRID, axis_font

_COLUMNS = ("", "variant", "median", "spread", "ratio", "numbers", "worst error", "where", "order")
_TIPS = {
    "median": "Of one execution, from the call to the last device's last result",
    "spread": "From the first to the third quartile",
    "ratio": "Median over that of the base, timed in turn in the same run",
    "numbers": "Whether it computes what the module as loaded does",
    "worst error": "Of the largest value, against what rounding explains",
    "order": "Whether the executable kept the order that was chosen",
}
_RIGHT = frozenset({2, 3, 4, 6})
_RATIO, _NUMBERS = _COLUMNS.index("ratio"), _COLUMNS.index("numbers")
_APART = "The medians differ by more than the times spread"
_ALIKE = "The medians differ by less than the times spread: this says nothing. More repeats may."


class DevicesPage(QWidget):
    """Controls above, variants to choose at the left, results at the right, and where they come from below."""

    def __init__(self, host: Host, runner: Runner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._runner = runner
        self._path = host.store.state.path
        self._last: tuple[Task, tuple[str, ...]] | None = None
        self.rows: tuple[Row, ...] = ()
        self.controls = Controls(runner, self.refresh, self.do, self._copy)
        self.choice = Choice(self.refresh)
        self.facts = QLabel()
        self.origin = QLabel()
        for label in (self.facts, self.origin):
            label.setFont(axis_font())
            label.setMargin(GRID)
            label.setWordWrap(True)  # Qt's signature
            label.setForegroundRole(label.palette().ColorRole.PlaceholderText)
        self.message = Message(host)
        self.table = plain_table(_COLUMNS, _TIPS, "runs", _RIGHT)
        for signal in (self.table.cellClicked, self.table.cellActivated):
            signal.connect(lambda row, _: self._pick(row))
        results = QWidget()
        column = QVBoxLayout(results)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.message)
        column.addWidget(self.table, 1)
        split = QSplitter()
        split.addWidget(self.choice)
        split.addWidget(results)
        split.setStretchFactor(1, 1)
        split.setSizes([55 * GRID, 200 * GRID])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.controls)
        layout.addWidget(self.facts)
        layout.addWidget(split, 1)
        layout.addWidget(self.origin)
        stop = runner.watch(self.refresh)
        self.destroyed.connect(lambda *_: stop())
        follow(self, host.store, self._session_changed)
        self.refresh()

    def do(self, task: Task, keys: Sequence[str] = ()) -> None:
        """Start a task on the chosen variants, or on those with `keys`."""
        chosen = tuple(keys) or self.choice.keys()
        self._last = task, chosen
        self._runner.start(task, chosen, self.controls.wish())

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if session.path != self._path:
            self._path = session.path
            self._last = None
            self.choice.forget()
            self.controls.alone = False
        if changed & {"entries", "active", "base", "modules", "problem"} and in_view(self):
            self.refresh()

    def refresh(self) -> None:
        session = self._host.store.state
        self.choice.refresh(session)
        self.rows = rows_of(session, self._runner.outcome)
        running = self._runner.progress.stage == Stage.RUNNING
        short = shortage(session, self.controls.chosen_platform(), self.controls.wish())
        self.controls.refresh(self._host.theme, enabled=not running and not short and bool(self.choice.keys()))
        self._say(session, short)
        self._fill()
        self.table.setVisible(bool(self.rows))
        self.choice.setVisible(self.choice.count() > 0)
        known = (entry.variant for entry in runnable(session) if entry.variant is not None)
        outcomes = [found for variant in known if (found := self._runner.outcome(variant)) is not None]
        self.origin.setText(" · ".join(filter(None, (origin_of(outcomes), *self._runner.progress.notes))))
        self.origin.setVisible(bool(self.origin.text()))

    def _say(self, session: Session, short: str) -> None:
        progress = self._runner.progress
        self.facts.setText(self._known(session))
        if progress.stage == Stage.RUNNING:
            self.message.follow(progress)
        elif short:
            self.message.say(short, self._ways(session))
        elif progress.stage in (Stage.FAILED, Stage.CANCELLED):
            self.message.follow(progress, self._again())
        else:
            self.message.say("" if self.rows else self._next(session))
        self.message.setVisible(bool(self.message.text.text()))

    def _known(self, session: Session) -> str:
        """What is known of the devices, and what the module needs of them."""
        platform, needed = self.controls.chosen_platform(), devices_needed(session)
        if self._runner.looking:
            found = "looking for devices …"
        else:
            found = platform_facts(platform) if platform is not None else "devices were not looked for yet"
        if self.controls.alone:
            return f"one device computes its part alone: its times are of compute, its numbers mean nothing · {found}"
        return f"needs {needed} device{'s' if needed != 1 else ''} · {found}" if needed else found

    def _ways(self, session: Session) -> tuple[Way, ...]:
        """Out of having too few devices."""
        platform = self.controls.chosen_platform()
        cpu: Way = (f"Use {devices_needed(session)} CPU devices, for the numbers", lambda: self.controls.choose("cpu"))
        if platform is None or platform.problem:
            return (cpu, ("Look again", self._runner.look))
        name = platform.name
        return (cpu, ("Time one device's compute alone", lambda: self.controls.choose(name, alone=True)))

    def _again(self) -> tuple[Way, ...]:
        if self._last is None:
            return ()
        task, keys = self._last
        return (("Try again", lambda: self.do(task, keys)), ("Show the log", lambda: self._host.perform("show-log")))

    def _next(self, session: Session) -> str:
        if not session.path:
            return "Open a module to run it."
        if session.problem:
            return "The file could not be read."
        if not self.choice.count():
            return waiting_text(session)
        if not self.choice.keys():
            return "Choose at least one variant to run."
        return (
            "“Run” times the chosen variants against each other, “Verify” compares their numbers with the module's as "
            "loaded, “Profile” shows what was measured as timelines beside the predicted ones."
        )

    def _fill(self) -> None:
        theme = self._host.theme
        self.table.setRowCount(len(self.rows))
        for number, row in enumerate(self.rows):
            texts = (
                row.key, row.title, row.median, row.spread, row.ratio, row.verdict, row.error, row.place, row.order,
            )  # fmt: skip
            for column, text in enumerate(texts):
                item = QTableWidgetItem(text)
                item.setToolTip(text)
                if column in _RIGHT:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                if column == _RATIO and row.told_apart is not None:
                    item.setText(text if row.told_apart else f"{text} ?")
                    item.setToolTip(_APART if row.told_apart else _ALIKE)
                if column == _NUMBERS and row.equal is not None:
                    item.setForeground(QColor(theme.gain if row.equal else theme.error))
                self.table.setItem(number, column, item)

    def _copy(self, task: Task) -> None:
        """Copy the command that does it with the plan of the active variant."""
        session, wish = self._host.store.state, self.controls.wish()
        entry = edits.planned_entry(session)
        if entry is None:
            return
        if task == Task.VERIFY:
            command = verify_command(session.path, entry, wish.options(), wish.seeds)
        else:
            profile = f"{PurePath(session.path).stem}.xplane.pb" if task == Task.PROFILE else ""
            command = run_command(session.path, entry, wish.options(), profile=profile)
        QGuiApplication.clipboard().setText(command)

    def _pick(self, number: int) -> None:
        if 0 <= number < len(self.rows):
            key = self.rows[number].key
            self._host.store.become(f"Activate {key}", edits.activated(self._host.store.state, key))
