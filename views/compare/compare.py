"""The table of variants × metrics with the best marked, what was only tried, and makespan against memory."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSplitter, QVBoxLayout, QWidget

from engine.cost.costs import Origin
from engine.quantities import bytes_text, time_text
from engine.session import edits
from engine.session.plan import Plan
from engine.session.session import Entry, Session
from engine.session.variant import UNLIKE, unlike_in_words
from engine.timeline.timeline import Metrics
from views.chart import Chart, Point, Series
from views.compare.figures import all_plans, pareto, tried_title
from views.compare.lines import Failed, Line
from views.compare.variant_table import VariantTable
from views.hint import Hint, open_first
from views.ports import Gone, Host, follow
from views.theme import GRID
from views.timeline.paint_header import ACROSS, SOURCES, origin_text, unlike


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
        self.table = VariantTable(host)
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
        self._lay_out()
        follow(self, host.store, self._session_changed)
        stop = host.watch_predicted(self.refresh)
        self.destroyed.connect(lambda *_: stop())
        self.refresh()

    def _lay_out(self) -> None:
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
        if changed & {"entries", "active", "base", "modules", "problem"}:
            self.refresh()

    def refresh(self) -> None:
        session = self._host.store.state
        self._lines = self._gather(session)
        self._failed = tuple(
            Failed(e.key, e.title, e.plan, e.error or _earlier(e), _module(session, e), e.ending, session.alike(e))
            for e in session.entries
            if e.error or e.stale
        )
        self.table.show_rows(
            self._lines, self._failed, active=session.active, base=session.base, modules=len(session.modules)
        )
        self._plot(session)
        self.button.setEnabled(session.active_variant is not None)
        self.chart.setVisible(len(self._lines) > 1)
        self.text.setText(self._said(session))

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
            pending = [entry.key for entry in session.entries if entry.pending]
            if not pending:
                return "No variant has a result." if self._failed else "Waiting for the first variant."
            return f"Waiting for {', '.join(pending)}." if self._failed else "Waiting for the first variant."
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


def _earlier(entry: Entry) -> str:
    """What is known of an entry while its present plan has no result yet: no figure to compare."""
    return f"out of date: {time_text(entry.variant.metrics.makespan)} before the change" if entry.variant else ""


def _module(session: Session, entry: Entry) -> str:
    """What an entry's module is called, empty where there is but one."""
    return session.label(entry.module) if len(session.modules) > 1 else ""
