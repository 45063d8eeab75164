"""Tune and bundle: what is searched, how far the search is, what it tried, and what became of the bundle."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from engine.errors import UsageError
from engine.export.bundle_folder import is_bundle
from engine.quantities import gain_text, parse_cap, time_text
from engine.session import edits
from engine.session.choices import DIMENSIONS
from engine.session.commands import tune_command
from views.export.outcome_text import OutcomeText
from views.export.permission import may_replace
from views.export.port import Exporter, Outcome, Progress, Stage, Wish
from views.export.trials_table import TrialsTable
from views.flow import FlowLayout
from views.ports import Host
from views.theme import GRID
from views.wheel import pass_wheel_on

_TIPS = {
    "scheduler": "bottom-up, top-down, memory, and local search in the end",
    "fusion": "overlap, default, auto, none",
    "async": "permutes alone in flight, or all that the chip's compiler makes asynchronous",
    "chain": "gather → einsum → einsum → scatter as one sequence",
    "ring": "one direction or both",
    "unroll": "one or two steps of a loop as one",
    "form": "loops or straight lines",
    "budget": "1, 2, 4, 8, 16 in flight, or the chip's",
    "sites": "the other verdict for each row of alike collectives",
}
_MODEL = "the model"


class BundlePage(QWidget):
    """Acts on the active variant's module and machine; what is not searched stays as in its plan."""

    def __init__(self, host: Host, exporter: Exporter) -> None:
        super().__init__()
        self._host = host
        self._exporter = exporter
        self._suggested = ""
        self._complaint: Outcome | None = None
        self.known = QLabel()
        self.known.setWordWrap(True)
        self.search = QPushButton()
        self.search.setToolTip("What is searched; the rest stays as in the active variant's plan")
        menu = QMenu(self.search)
        menu.setToolTipsVisible(True)  # Qt's signature
        self.dimensions = {name: menu.addAction(name) for name in DIMENSIONS}
        for name, choice in self.dimensions.items():
            choice.setCheckable(True)  # Qt's signature
            choice.setChecked(True)
            choice.setToolTip(_TIPS[name])
            choice.toggled.connect(self.refresh)
        self.search.setMenu(menu)
        self.seconds = QDoubleSpinBox()
        self.seconds.setRange(0.0, 86_400.0)
        self.seconds.setDecimals(0)
        self.seconds.setSingleStep(30.0)
        self.seconds.setValue(120.0)
        self.seconds.setSuffix(" s")
        self.seconds.setSpecialValueText("none")
        self.seconds.setToolTip("The search ends then, and keeps the best so far")
        self.cap = QLineEdit()
        self.cap.setPlaceholderText("no cap")
        self.cap.setFixedWidth(26 * GRID)
        self.cap.setToolTip("Most bytes that may be live at any moment: 28GiB")
        self.judge = QComboBox()
        pass_wheel_on(self.judge)
        self.judge.setToolTip(
            "Who says which plan is fastest: where all is searched, a TPU's compiler judges every plan"
        )
        self.check = QCheckBox("verify on CPU devices")
        self.check.setChecked(True)
        self.check.setToolTip("Run the plan against the original, also in float64; a plan that differs is not bundled")
        self.path = QLineEdit()
        self.path.setAccessibleName("bundle to write")
        self.path.setToolTip("A folder, or a file that ends in .zip")
        self.browse = QPushButton("Browse …")
        self.browse.clicked.connect(self._ask)
        self.tune = QPushButton("Tune and bundle")
        self.tune.clicked.connect(self._tune)
        self.stop = QPushButton("Stop")
        self.stop.clicked.connect(exporter.stop)
        self.bundle = QPushButton("Bundle this plan")
        self.bundle.clicked.connect(self._bundle)
        self.add = QPushButton("Add as a variant")
        self.add.clicked.connect(self._add)
        self.copy = QPushButton("Copy as command line")
        self.copy.clicked.connect(lambda: exporter.copy(self.command()))
        self.bar = QProgressBar()
        self.bar.setRange(0, 1000)
        self.doing = QLabel()
        self.outcome = OutcomeText(host)
        self.table = TrialsTable(host)
        self.table.picked.connect(self._show_picked)
        self._lay_out()

    def _lay_out(self) -> None:
        settings = FlowLayout(gap=2 * GRID, margin=0)
        for caption, field in (
            ("search", self.search),
            ("time limit", self.seconds),
            ("memory cap", self.cap),
            ("chosen by", self.judge),
        ):
            settings.addWidget(_captioned(caption, field))
        settings.addWidget(self.check)
        goes = QHBoxLayout()
        goes.addWidget(QLabel("to"))
        goes.addWidget(self.path, 1)
        goes.addWidget(self.browse)
        buttons = FlowLayout(gap=2 * GRID, margin=0)
        for button in (self.tune, self.stop, self.bundle, self.add, self.copy):
            buttons.addWidget(button)
        going = QHBoxLayout()
        going.addWidget(self.bar)
        going.addWidget(self.doing, 1)
        self.bar.setFixedWidth(40 * GRID)
        self.doing.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        column = QVBoxLayout(self)
        column.setContentsMargins(3 * GRID, 2 * GRID, 3 * GRID, 2 * GRID)
        column.setSpacing(GRID)
        column.addWidget(self.known)
        for line in (settings, goes, buttons, going):
            column.addLayout(line)
        column.addWidget(self.outcome)
        column.addWidget(self.table, 1)
        self.table.setMinimumHeight(24 * GRID)

    # From the session and the jobs to the controls

    def refresh(self) -> None:
        entry, known, progress = self._host.store.state.active_entry, self._exporter.known, self._exporter.progress
        idle, there = progress.stage is Stage.IDLE, entry is not None
        self._show_known(known.said if there else "Open a module to tune it for its job.", able=known.able)
        self._show_targets()
        suggested = self._exporter.suggested(".bundle") if there else ""
        if self.path.text() in ("", self._suggested):
            self.path.setText(suggested)
        self._suggested = suggested
        able = idle and there and known.able
        count = sum(choice.isChecked() for choice in self.dimensions.values())
        every = count == len(DIMENSIONS)
        self.search.setText("order" if known.order_only else "everything" if every else f"{count} of {len(DIMENSIONS)}")
        self.search.setEnabled(able and not known.order_only)
        for widget in (self.seconds, self.cap, self.judge, self.check, self.path, self.browse, self.copy):
            widget.setEnabled(able)
        some = known.order_only or count > 0
        self.tune.setEnabled(able and some)
        self.tune.setToolTip("" if some else "Tick what is to be searched")
        self.stop.setVisible(not idle)
        self.table.show_trials(progress.trials, progress.base, progress.best)
        self._show_picked()
        self._show_going(progress)
        self.outcome.show_outcome(self._complaint or progress.outcome)

    def _show_picked(self) -> None:
        """What can be done with the picked plan. The table stays as it is: a click puts no rows in order."""
        plan, there = self.table.plan, self._host.store.state.active_entry is not None
        able = self._exporter.progress.stage is Stage.IDLE and there and self._exporter.known.able
        self.bundle.setEnabled(able and plan is not None)
        self.add.setEnabled(there and plan is not None)
        for button in (self.bundle, self.add):
            button.setToolTip(f"{plan.passes} | {plan.scheduler}" if plan is not None else "Nothing was tried yet")

    def _show_known(self, said: str, *, able: bool) -> None:
        theme = self._host.theme
        self.known.setText(said)
        self.known.setStyleSheet(f"color: {theme.muted if able else theme.error}")

    def _show_targets(self) -> None:
        wanted = [_MODEL, *self._exporter.targets]
        if [self.judge.itemText(n) for n in range(self.judge.count())] != wanted:
            self.judge.clear()
            self.judge.addItems(wanted)

    def _show_going(self, progress: Progress) -> None:
        idle = progress.stage is Stage.IDLE
        self.bar.setVisible(not idle)
        self.bar.setValue(round(progress.fraction * 1000))
        self.doing.setVisible(not idle or bool(progress.trials))
        possible = [t.makespan for t in progress.trials if t.makespan is not None]
        said = f"{len(progress.trials)} plans tried"
        if len(possible) < len(progress.trials):
            said += f", {len(progress.trials) - len(possible)} not possible"
        alike = [t.makespan for t in progress.trials if t.makespan is not None and not t.unlike]
        if alike and progress.base is not None:
            best = min(alike)
            said += f"; best so far {time_text(best)} ({gain_text(progress.base, best)})"
            said += f" by the costs of {progress.costs}" if progress.costs else ""
        doing = f"{progress.stage}: {progress.message}" if progress.message else str(progress.stage)
        self.doing.setText(said if idle else f"{said} · {doing}")
        self.doing.setToolTip(self.doing.text())

    # From the controls to the jobs

    def wish(self) -> Wish | None:
        """What the controls say; None, and the reason in its place, where that cannot be done."""
        self._complaint = None
        text = self.cap.text().strip()
        try:
            cap = parse_cap(text) if text else None
        except UsageError as error:
            self._complaint = Outcome(good=False, said=str(error), way_out="Write it as 28GiB, or leave it empty.")
            return None
        path = self.path.text().strip()
        if not path:
            self._complaint = Outcome(good=False, said="A place for the bundle is needed.", way_out="Name a folder.")
            return None
        target = self.judge.currentText() if self.judge.currentIndex() > 0 else ""
        searched = frozenset(name for name, choice in self.dimensions.items() if choice.isChecked())
        seconds = self.seconds.value() or None
        return Wish(path, searched, seconds, cap, self.check.isChecked(), target)

    def command(self) -> str:
        """The command that does the same as Tune and bundle."""
        session, wish = self._host.store.state, self.wish()
        entry = session.active_entry
        if entry is None or wish is None:
            self.refresh()
            return ""
        order_only = self._exporter.known.order_only
        every = wish.dimensions == frozenset(DIMENSIONS)
        return tune_command(
            str(Path(session.path).parent) if order_only else session.path,
            entry,
            wish.path,
            dimensions=DIMENSIONS if every else wish.dimensions,
            memory_cap=wish.memory_cap,
            time_limit=wish.seconds,
            target=wish.target,
            check=wish.check,
            order_only=order_only,
        )

    def _tune(self) -> None:
        wish = self.wish()
        if wish is not None and self._may_write(wish.path):
            self._exporter.tune(wish)
        self.refresh()

    def _bundle(self) -> None:
        wish, plan = self.wish(), self.table.plan
        if wish is not None and plan is not None and self._may_write(wish.path):
            self._exporter.bundle(wish, plan)
        self.refresh()

    def _may_write(self, path: str) -> bool:
        """Ask whether a bundle that is there may go; what is no bundle the exporter refuses without asking."""
        place = Path(path)
        there = place.is_file() if place.suffix == ".zip" else is_bundle(place)
        question = f"{place.name} is there already: a job may still run it. Put the new bundle in its place?"
        return not there or may_replace(self, "Bundle", question)

    def _add(self) -> None:
        plan = self.table.plan
        if plan is not None:
            self._host.store.become("Add what was tried", edits.added(self._host.store.state, plan))

    def _ask(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self, "Bundle", self.path.text(), "Bundles (*.bundle *.zip);;All files (*)",
            options=QFileDialog.Option.DontConfirmOverwrite,
        )  # fmt: skip
        if path:
            self.path.setText(path)

    def repaint_roles(self) -> None:
        """The theme is another."""
        self.table.repaint_roles()
        self.outcome.repaint_roles()
        self.refresh()


def _captioned(caption: str, field: QWidget) -> QWidget:
    holder = QWidget()
    line = QHBoxLayout(holder)
    line.setContentsMargins(0, 0, 0, 0)
    line.setSpacing(GRID)
    label = QLabel(caption)
    label.setBuddy(field)
    field.setAccessibleName(caption)
    line.addWidget(label)
    line.addWidget(field)
    return holder
