"""The table of variants × metrics with the best marked, what was only tried, and makespan against memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QSplitter,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.cost.costs import Origin
from engine.quantities import MINUS, bytes_text, gain_text, time_text
from engine.session import edits
from engine.session.plan import Plan
from engine.session.session import Entry, Session
from engine.session.variant import UNLIKE, unlike_in_words
from engine.timeline.timeline import Metrics
from views.chart import Chart, Point, Series
from views.compare.figures import COLUMNS, all_plans, best_of, budget_title, pareto, tried_title
from views.filling import filling
from views.fitting import Fitting
from views.hint import Hint, open_first
from views.plain import make_plain
from views.ports import Gone, Host, follow
from views.theme import GRID
from views.timeline.paint_header import ACROSS, OVER, SOURCES, origin_text, unlike

_HEAD = ("", "module", "variant", "scheduler", "budget")
_MODULE = 1
"""Column that is shown where there are several modules."""
_BUDGET = _HEAD.index("budget")
_PLAN = ("scheduler", "budget")
"""Columns that stand right of the figures: variants are named after them, and figures are what is compared."""
_TAIL = ("change", "best order", "times from", "passes")
_NAME = _HEAD.index("variant")
_FIRST_TO_GO = ("passes", "budget", "in flight", "best order", "times from", "over bound", "scheduler", "overlapped")
"""Columns that are hidden where the table is narrow, least missed first."""
_CHANGE = len(_HEAD) + len(COLUMNS)
"""Column of the makespan against the base's, shown beside the makespan."""


@dataclass(frozen=True)
class Line:
    """A row: a variant of the stack, or a plan that was only tried (no key)."""

    key: str
    title: str
    plan: Plan
    metrics: Metrics
    source: str
    module: str = ""
    """What its module is called, empty where there is but one."""
    proof: str = ""
    """How far it is from the best order, where its scheduler proved that."""
    room: int = 0
    """Bytes of HBM that the chip has."""
    origin: Origin = Origin.MODEL
    """Only times of one origin are compared: a prediction is not set against a measurement."""
    unlike: tuple[str, ...] = ()
    """Instructions whose given time prices it or the base, but not both."""
    unsure: bool = False
    """Whether times are given and it was only predicted: what they price in it is told once it is a variant."""


@dataclass(frozen=True)
class Failed:
    """A row: a variant of the stack whose plan has no result."""

    key: str
    title: str
    plan: Plan
    why: str
    module: str = ""


class ComparePane(QWidget):
    """Variants first, then the best of what was tried. Enter or a double click brings a tried plan into the stack."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._lines: tuple[Line, ...] = ()
        self._failed: tuple[Failed, ...] = ()
        """What stands under the lines."""
        self._tried: tuple[Plan, ...] = ()
        self._tried_of = ""
        self._gone = Gone(host.store.state)
        self.table = QTableWidget(0, len(_HEAD) + len(COLUMNS) + len(_TAIL))
        titles = (*_HEAD, *(c.title for c in COLUMNS), *_TAIL)
        self.table.setHorizontalHeaderLabels(titles)
        self._first_to_go = tuple(map(titles.index, _FIRST_TO_GO))
        make_plain(self.table, (*range(len(_HEAD), _CHANGE + 1),))
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.horizontalHeader().setSectionResizeMode(
            self.table.columnCount() - 1, QHeaderView.ResizeMode.Interactive
        )
        # Budgets by kind are long: the figures stay in sight.
        self.table.horizontalHeader().setSectionResizeMode(_BUDGET, QHeaderView.ResizeMode.Interactive)
        self.table.setColumnWidth(_BUDGET, 20 * GRID)
        for _ in _PLAN:
            self.table.horizontalHeader().moveSection(len(_HEAD) - len(_PLAN), _CHANGE - 1)
        self.table.horizontalHeader().moveSection(_CHANGE, len(_HEAD) - len(_PLAN) + 1)
        self.table.horizontalHeader().setStretchLastSection(True)  # Qt's signature
        self.table.setAccessibleName("comparison of variants")
        self._fitting = Fitting(self.table, _NAME, self._order)
        for number, column in enumerate(COLUMNS):
            header = self.table.horizontalHeaderItem(len(_HEAD) + number)
            if header is not None:
                header.setToolTip(column.tip)
        tips = ("Makespan against that of the base", "How far from the best order of the same instructions, as proven")
        for number, tip in enumerate(tips, _CHANGE):
            header = self.table.horizontalHeaderItem(number)
            if header is not None:
                header.setToolTip(tip)
        self.table.itemActivated.connect(lambda item: self._activate(item.row()))
        self.table.cellClicked.connect(lambda row, _: self._pick(row))
        self.chart = Chart(
            host,
            "makespan",
            "peak memory",
            lambda x: time_text(round(x)),
            lambda y: bytes_text(round(y)),
            from_zero=False,
            y_binary=True,
        )
        self.chart.setAccessibleName("makespan against peak memory")
        self.chart.clicked.connect(self._pick)
        self.text = Hint(host)
        self.button = QPushButton("Try all")
        self.button.setToolTip("Predict schedulers × budgets × unroll × ring with the rest of the active plan")
        self.button.clicked.connect(self.try_all)
        line = QHBoxLayout()
        line.addWidget(self.text, 1)
        line.addWidget(self.button)
        split = QSplitter()
        split.addWidget(self.table)
        split.addWidget(self.chart)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 2)
        split.setSizes([660, 260])
        split.setChildrenCollapsible(True)  # Qt's signature
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 2 * GRID, 0)
        layout.addLayout(line)
        layout.addWidget(split, 1)
        follow(self, host.store, self._session_changed)
        stop = host.watch_predicted(self.refresh)
        self.destroyed.connect(lambda *_: stop())
        self.refresh()

    def try_all(self) -> None:
        """Predict every combination; the table fills as results come."""
        entry = self._host.store.state.active_entry
        if entry is not None:
            self._tried, self._tried_of = all_plans(entry.plan), entry.module
            self._host.predict("trying all", [entry.asking(plan) for plan in self._tried])
            self.refresh()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self.refresh()
        super().changeEvent(event)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if "modules" in changed and self._gone.went(session):
            self._tried = ()
        if changed & {"entries", "active", "base", "modules"}:
            self.refresh()

    def refresh(self) -> None:
        session = self._host.store.state
        self._lines = self._gather(session)
        self._failed = tuple(
            Failed(e.key, e.title, e.plan, e.error, _module(session, e)) for e in session.entries if e.error
        )
        with filling(self.table):
            self._fill(session)
        self._plot(session)
        self.button.setEnabled(session.active_variant is not None)
        self.table.setVisible(bool(self._lines or self._failed))
        self.table.setColumnHidden(_MODULE, len(session.modules) < 2)  # Qt's signature
        self._fitting.fit()
        self.chart.setVisible(len(self._lines) > 1)
        self.text.setText(self._said(session))

    def _order(self) -> Sequence[int]:
        """Columns that may go; where times come from matters most where they come from several places."""
        source = self._first_to_go[_FIRST_TO_GO.index("times from")]
        mixed = len({line.source for line in self._lines}) > 1
        return sorted(self._first_to_go, key=lambda column: mixed and column == source)

    def _gather(self, session: Session) -> tuple[Line, ...]:
        shown = [
            Line(
                e.key,
                e.title,
                e.variant.plan,
                e.variant.metrics,
                origin_text(e.variant),
                _module(session, e),
                e.variant.proof,
                e.variant.program.machine.chip.hbm_bytes,
                e.variant.source,
                unlike(session, e),
            )
            for e in session.entries
            if e.variant is not None and not e.stale
        ]
        entry = session.active_entry
        there = {e.plan for e in session.entries if entry is not None and e.module == entry.module}
        tried = []
        unsure = bool(entry is not None and entry.machine.costs)
        for plan in self._tried_with(entry):
            answer = self._host.predicted(entry.asking(plan)) if entry is not None else None
            if isinstance(answer, Metrics) and plan not in there:
                module = _module(session, entry) if entry is not None else ""
                room = entry.variant.program.machine.chip.hbm_bytes if entry is not None and entry.variant else 0
                tried.append(
                    Line("", tried_title(plan), plan, answer, SOURCES[Origin.MODEL], module, room=room, unsure=unsure)
                )
        tried.sort(key=lambda line: line.metrics.makespan)
        return (*shown, *tried)

    def _tried_with(self, entry: Entry | None) -> tuple[Plan, ...]:
        """Plans that were tried with an entry's module."""
        return self._tried if entry is not None and entry.module == self._tried_of else ()

    def _said(self, session: Session) -> str:
        if not session.path:
            return open_first("to compare ways of running it")
        if session.problem:
            return "The file could not be read."
        if not self._lines:
            pending = any(entry.pending for entry in session.entries)
            return "Waiting for the first variant." if pending or not self._failed else "No variant has a result."
        entry = session.active_entry
        if entry is not None and self._tried_with(entry):
            answers = [self._host.predicted(entry.asking(plan)) for plan in self._tried]
            why_not = [answer for answer in answers if isinstance(answer, str)]
            found = sum(answer is not None for answer in answers)
            impossible = f", {len(why_not)} of them not possible ({why_not[0]})" if why_not else ""
            said = f"{found} of {len(self._tried)} combinations predicted{impossible}"
            return f"{said}; double-click one to add it to the timelines"
        base = session.base_entry
        across = base is not None and len({line.module for line in self._lines}) > 1
        told = f" {ACROSS.strip()} against {base.key} of {session.label(base.module)}." if across and base else ""
        unlike_lines = [line for line in self._lines if line.unlike]
        if unlike_lines:
            keys = ", ".join(line.key for line in unlike_lines)
            told += f" {UNLIKE} {keys} and {session.base}: {unlike_in_words(unlike_lines[0].unlike)}."
        return f"“Try all” predicts every scheduler, budget, unrolling and ring direction for the active plan.{told}"

    def _fill(self, session: Session) -> None:
        theme = self._host.theme
        self.table.clearSpans()
        self.table.setRowCount(len(self._lines) + len(self._failed))
        base = next((line for line in self._lines if line.key and line.key == session.base), None)
        alike = {o: [line.metrics for line in self._lines if line.origin == o] for o in Origin}
        best = {origin: [best_of(column, metrics) for column in COLUMNS] for origin, metrics in alike.items()}
        for row, line in enumerate(self._lines):
            texts = (line.key, line.module, line.title, line.plan.scheduler, budget_title(line.plan))
            for column, text in enumerate(texts):
                self._cell(
                    row, column, text, theme.text if line.key else theme.muted, strong=line.key == session.active
                )
            self._tip(row, _BUDGET, str(line.plan.budget or "the chip's"))
            for number, metric in enumerate(COLUMNS):
                untold = metric.simulated and line.origin == Origin.MEASURED
                text = "–" if untold else metric.text(line.metrics)
                most = best[line.origin][number]
                wins = not untold and most is not None and metric.value(line.metrics) == most
                over = metric.held and not untold and 0 < line.room < metric.value(line.metrics)
                role = theme.loss if over else theme.gain if wins else theme.text
                mark = OVER if over else "✓" if wins else ""
                self._cell(row, len(_HEAD) + number, f"{mark} {text}".strip(), role, strong=wins or over, right=True)
                if over:
                    self._tip(row, len(_HEAD) + number, f"{text}, as simulated: the chip has {bytes_text(line.room)}")
            change = _change(line, base)
            faster = theme.gain if change.startswith(MINUS) else theme.loss if change.startswith("+") else theme.muted
            faster = theme.muted if line.unlike or line.unsure else faster
            self._cell(row, _CHANGE, change, faster, right=True)
            if line.unsure and change:
                self._tip(row, _CHANGE, f"{change}: whether both are priced alike is told once it is a variant")
            if line.unlike and change:
                self._tip(row, _CHANGE, f"{change}: {unlike_in_words(line.unlike)}")
            for number, text in enumerate((line.proof or "–", line.source, line.plan.passes or "–"), _CHANGE + 1):
                self._cell(row, number, text, theme.muted)

        for row, failed in enumerate(self._failed, len(self._lines)):
            self._fill_failed(row, failed, strong=failed.key == session.active)

    def _fill_failed(self, row: int, failed: Failed, *, strong: bool) -> None:
        """What it is called, and over the columns of its figures why it has none."""
        theme = self._host.theme
        for column in range(self.table.columnCount()):
            self._cell(row, column, "", theme.text)
        texts = (failed.key, failed.module, failed.title, failed.plan.scheduler, budget_title(failed.plan))
        for column, text in enumerate(texts):
            self._cell(row, column, text, theme.text, strong=strong)
        self._cell(row, len(_HEAD), "failed", theme.loss, right=True)
        self._cell(row, len(_HEAD) + 1, failed.why.split("\n", 1)[0], theme.loss)
        for column in (len(_HEAD), len(_HEAD) + 1):
            self._tip(row, column, failed.why)
        self.table.setSpan(row, len(_HEAD) + 1, 1, len(COLUMNS) - 1)
        self._cell(row, self.table.columnCount() - 1, failed.plan.passes or "–", theme.muted)

    def _cell(self, row: int, column: int, text: str, role: str, *, strong: bool = False, right: bool = False) -> None:
        item = self.table.item(row, column)
        if item is None:
            item = QTableWidgetItem()
            self.table.setItem(row, column, item)
        item.setText(text)
        item.setToolTip(text)  # a column may be too narrow for it
        item.setForeground(QColor(role))
        font = item.font()
        font.setBold(strong)
        item.setFont(font)
        side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
        item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)

    def _tip(self, row: int, column: int, text: str) -> None:
        item = self.table.item(row, column)
        if item is not None:
            item.setToolTip(text)

    def _plot(self, session: Session) -> None:
        theme = self._host.theme
        points = [
            Point(
                line.metrics.makespan,
                line.metrics.peak_memory,
                f"{line.key or 'tried'}  {line.module}{', ' if line.module else ''}{line.plan.scheduler}, "
                f"budget {line.plan.budget or 'of the chip'}\n"
                f"{time_text(line.metrics.makespan)}, {bytes_text(line.metrics.peak_memory)}",
                row,
                bool(line.key) and line.key == session.active,
                line.key,
            )
            for row, line in enumerate(self._lines)
            if line.origin != Origin.MEASURED  # profiles tell no memory
        ]
        front = [points[n] for n in pareto([(p.x, p.y) for p in points])]
        tried = tuple(p for p in points if not self._lines[p.key].key)
        shown = tuple(p for p in points if self._lines[p.key].key)
        self.chart.set_series(
            (
                Series("Pareto front", tuple(front) if len(front) > 1 else (), theme.gain, stairs=True),
                Series("tried", tried, theme.elementwise.fill, line=False),
                Series("variants", shown, theme.focus, line=False),
            )
        )

    def _pick(self, row: int) -> None:
        rows: tuple[Line | Failed, ...] = (*self._lines, *self._failed)
        if not 0 <= row < len(rows):
            return
        self.table.selectRow(row)
        key = rows[row].key
        if key:
            self._host.store.become(f"Activate {key}", edits.activated(self._host.store.state, key))

    def _activate(self, row: int) -> None:
        if row >= len(self._lines) or self._lines[row].key:
            self._pick(row)
            return
        line = self._lines[row]
        self._host.store.become("Add what was tried", edits.added(self._host.store.state, line.plan))

    def lines(self) -> Sequence[Line]:
        """What the table shows."""
        return self._lines


def _change(line: Line, base: Line | None) -> str:
    """The makespan against the base's, empty where the two do not compare."""
    if base is None or line is base or line.origin != base.origin:
        return ""
    text = gain_text(base.metrics.makespan, line.metrics.makespan)
    text += ACROSS if line.module != base.module else ""
    return f"{text} {UNLIKE}" if line.unlike else text


def _module(session: Session, entry: Entry) -> str:
    """What an entry's module is called, empty where there is but one."""
    return session.label(entry.module) if len(session.modules) > 1 else ""
