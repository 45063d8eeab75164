"""Makespan and exposed time of the active plan over budgets, with the knee: where more brings nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.chips.budget import Budget
from engine.quantities import bytes_text, gain_text, time_text
from engine.session import edits
from engine.session.plan import Plan
from engine.session.session import Asked, Entry, Session
from engine.timeline.timeline import Metrics
from views.chart import Chart, Point, Series
from views.hint import Hint, open_first
from views.plan.plan_line import MOST_IN_FLIGHT
from views.ports import Host, follow, in_view
from views.theme import GRID

BUDGETS = range(1, MOST_IN_FLIGHT + 1)
NEAR = 0.01
"""The knee is the smallest budget within this part of the best makespan."""


class BudgetPane(QWidget):
    """A chart over budgets 1..16; a click on a point takes that budget."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._wanted: Asked | None = None
        self.chart = Chart(
            host,
            "budget",
            "time",
            lambda x: f"{x:.0f}",
            lambda y: time_text(round(y)),
            from_zero=True,
            x_whole=True,
        )
        self.chart.setAccessibleName("time over budgets")
        self.chart.clicked.connect(self._take)
        self.text = Hint(host)
        self.again = QPushButton("Predict all budgets")
        self.again.clicked.connect(self._predict)
        line = QHBoxLayout()
        line.addWidget(self.text, 1)
        line.addWidget(self.again)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 2 * GRID, 0)
        layout.addLayout(line)
        layout.addWidget(self.chart, 1)
        follow(self, host.store, self._session_changed)
        stop = host.watch_predicted(self._draw)
        self.destroyed.connect(lambda *_: stop())
        self._draw()

    def came_into_view(self) -> None:
        """Do what was put off while nobody looked."""
        self._predict()

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if not changed & {"entries", "active", "modules"}:
            return
        entry = session.active_entry
        # A slider that moves changes only the budget: the sweep stays what it is.
        if entry is not None and entry.variant is not None and in_view(self) and _without_budget(entry) != self._wanted:
            self._predict()
        self._draw()

    def _predict(self) -> None:
        entry = self._host.store.state.active_entry
        if entry is None or entry.variant is None:
            return
        self._wanted = _without_budget(entry)
        self._host.predict("predicting budgets", [entry.asking(plan) for plan in plans_over(entry)])

    def _draw(self) -> None:
        entry = self._host.store.state.active_entry
        found = [] if entry is None else self._found(entry)
        theme = self._host.theme
        knee = knee_of(found)
        current = entry.budget.total if entry is not None else None
        makespan = tuple(
            Point(b, m.makespan, f"budget {b}: {time_text(m.makespan)}, peak {bytes_text(m.peak_memory)}", b, b == knee)
            for b, m in found
        )
        exposed = tuple(Point(b, m.exposed, f"budget {b}: {time_text(m.exposed)} exposed", b) for b, m in found)
        marked = (float(current), "now") if current is not None and current <= MOST_IN_FLIGHT else None
        series = (Series("makespan", makespan, theme.text), Series("exposed", exposed, theme.exposed.fill))
        self.chart.set_series(series, marked)
        self.chart.setVisible(bool(found))
        self.text.setText(self._said(entry, found, knee))
        self.again.setVisible(entry is not None and entry.variant is not None and self._lacks(entry))

    def _lacks(self, entry: Entry) -> bool:
        """Whether what some budget comes to is not known."""
        return any(self._host.predicted(entry.asking(plan)) is None for plan in plans_over(entry))

    def _found(self, entry: Entry) -> list[tuple[int, Metrics]]:
        pairs = zip(BUDGETS, plans_over(entry), strict=True)
        answers = ((budget, self._host.predicted(entry.asking(plan))) for budget, plan in pairs)
        return [(budget, answer) for budget, answer in answers if isinstance(answer, Metrics)]

    def _said(self, entry: Entry | None, found: Sequence[tuple[int, Metrics]], knee: int | None) -> str:
        if entry is None:
            return open_first("to see what the budget of operations in flight does to it")
        answers = [self._host.predicted(entry.asking(plan)) for plan in plans_over(entry)]
        why_not = [answer for answer in answers if isinstance(answer, str)]
        if len(why_not) == len(BUDGETS):
            return f"{entry.key}: no budget gives a schedule: {why_not[0]}"
        if not found:
            return "Predicting …" if entry.variant is not None else "Waiting for the active variant."
        if len(found) + len(why_not) < len(BUDGETS):
            return f"{entry.key}: {len(found) + len(why_not)} of {len(BUDGETS)} budgets predicted"
        assert knee is not None
        best = dict(found)[knee]
        if not any(metrics.transfer_union for _, metrics in found):
            return f"{entry.key}: no transfers, so nothing to overlap: {time_text(best.makespan)} with any budget"
        return (
            f"{entry.key}: the knee is at {knee} ({time_text(best.makespan)}); {beyond(found, knee)}{_missing(why_not)}"
        )

    def _take(self, budget: int) -> None:
        session = self._host.store.state
        entry = session.active_entry
        if entry is not None:
            plan = _with_budget(entry, budget)
            self._host.store.become(f"Budget {budget}", edits.planned(session, entry.key, plan))


def plans_over(entry: Entry) -> list[Plan]:
    """The plan of `entry` under each budget of the chart."""
    return [_with_budget(entry, budget) for budget in BUDGETS]


def knee_of(found: Sequence[tuple[int, Metrics]]) -> int | None:
    """The smallest budget that is as good as the best, within `NEAR`."""
    if not found:
        return None
    best = min(metrics.makespan for _, metrics in found)
    return min(budget for budget, metrics in found if metrics.makespan <= best * (1 + NEAR))


def beyond(found: Sequence[tuple[int, Metrics]], knee: int) -> str:
    """What budgets above the knee come to: no schedule is bound to use what it may, but a greedy one does."""
    best = dict(found)[knee].makespan
    above = [(metrics.makespan, budget) for budget, metrics in found if budget > knee]
    if not above:
        return "fewer in flight are slower"
    worst, at = max(above)
    if worst <= best * (1 + NEAR):
        return f"more in flight gains under {NEAR:.0%}".replace("%", " %")
    slower = sum(makespan > best * (1 + NEAR) for makespan, _ in above)
    which = "more in flight is slower" if slower == len(above) else f"{slower} of {len(above)} larger ones are slower"
    return f"{which}, up to {gain_text(best, worst)} at {at} ({time_text(worst)})"


def _missing(why_not: Sequence[str]) -> str:
    return f"; {len(why_not)} not possible: {why_not[0]}" if why_not else ""


def _with_budget(entry: Entry, total: int) -> Plan:
    """Another total; limits by kind stay."""
    return replace(entry.plan, budget=replace(entry.plan.budget or Budget(), total=total))


def _without_budget(entry: Entry) -> Asked:
    return entry.asking(_with_budget(entry, 1))
