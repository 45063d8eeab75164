"""The controls of the plan line. Each change is one undoable step; what it leads to comes from a job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPalette
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QLineEdit, QSlider, QWidget

from engine.chips.budget import Budget
from engine.chips.inference import check_machine
from engine.chips.library import chips, load_chip
from engine.errors import LapstrakeError, UsageError
from engine.quantities import bytes_text, parse_cap
from engine.schedule.registry import SCHEDULERS
from engine.session import edits
from engine.session.plan import BEST_PASSES, MachineSpec, Plan
from engine.session.session import Entry, Session
from views.flow import FlowLayout
from views.plan.choices import CHOICES, Choice, enabled, value_of, with_value
from views.plan.costs import CostsButton
from views.ports import Host, follow
from views.theme import GRID, axis_font
from views.wheel import pass_wheel_on

MOST_IN_FLIGHT = 16
"""Right end of the budget slider; larger budgets come from the command line and are shown as they are."""

_LONGEST = 160
"""Letters of why something was not taken that are shown: what was typed is part of it, and may be a whole text."""


class PlanLine(QWidget):
    """Machine and plan of the active entry."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self.chip = self._combo("Accelerator that the plan is for", self._set_machine)
        self.chip.addItems(chips())
        self.topology = self._line("Wiring of the chips: 4x4x4 on TPUs, NODESxGPUS on GPUs", self._set_machine, 7)
        self.mesh = self._line("Names and sizes of the mesh axes: x=8,y=8", self._set_machine, 9)
        self.choices = {choice.caption: self._choice(choice) for choice in CHOICES}
        self.scheduler = self._combo("Who puts the instructions in order", self._set_scheduler)
        self.scheduler.addItems(SCHEDULERS.names())
        self.budget = QSlider(Qt.Orientation.Horizontal)
        self.budget.setRange(1, MOST_IN_FLIGHT)
        self.budget.setPageStep(1)
        self.budget.setFixedWidth(22 * GRID)
        self.budget.setToolTip("How many asynchronous operations may be in flight at any moment")
        self.budget.setAccessibleName("budget")
        pass_wheel_on(self.budget)
        self.budget.valueChanged.connect(self._set_budget)
        self.budget_text = QLabel()
        self.cap = self._line("Most bytes that may be live at any moment: 28GiB", self._set_cap, 7)
        self.cap.setPlaceholderText("no cap")
        self.machine_trouble = _trouble("the machine", self.topology, self.mesh)
        self.cap_trouble = _trouble("the memory cap", self.cap)
        self._troubled: tuple[str, Plan, MachineSpec] | None = None
        """What was in force when something was not taken."""
        for field in (self.topology, self.mesh, self.cap):
            field.installEventFilter(self)
        self.costs = CostsButton(host)
        self._lay_out()
        follow(self, host.store, self._session_changed)
        self._session_changed(host.store.state, frozenset({"entries"}))

    def sizeHint(self) -> QSize:
        width = self.width() if self.width() > 100 else 1200
        return QSize(width, self.heightForWidth(width))

    def _lay_out(self) -> None:
        flow = FlowLayout(self, gap=2 * GRID)
        budget = QWidget()
        line = QHBoxLayout(budget)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self.budget)
        self.budget_text.setMinimumWidth(self.fontMetrics().horizontalAdvance("16 (chip's)"))
        line.addWidget(self.budget_text)
        for caption, widget in (
            ("chip", self.chip),
            ("topology", self.topology),
            ("mesh", self.mesh),
            *self.choices.items(),
            ("scheduler", self.scheduler),
            ("budget", budget),
            ("memory cap", self.cap),
            ("costs", self.costs),
        ):
            flow.addWidget(_captioned(caption, widget))
            if widget is self.mesh:
                flow.addWidget(self.machine_trouble)
            if widget is self.cap:
                flow.addWidget(self.cap_trouble)

    def _combo(self, tip: str, changed: Callable[[], None]) -> QComboBox:
        made = QComboBox()
        pass_wheel_on(made)
        made.setToolTip(tip)
        made.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        made.activated.connect(lambda _: changed())
        return made

    def _choice(self, choice: Choice) -> QComboBox:
        made = self._combo(choice.tip, lambda: self._set_choice(choice))
        made.addItems(choice.values)
        return made

    def _line(self, tip: str, changed: Callable[[], None], letters: int) -> QLineEdit:
        made = QLineEdit()
        made.setToolTip(tip)
        made.setPlaceholderText("inferred")
        made.setFixedWidth(self.fontMetrics().horizontalAdvance("0") * letters + 5 * GRID)
        made.editingFinished.connect(changed)
        return made

    # From the session to the controls

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if not changed & {"entries", "active"}:
            return
        entry = session.active_entry
        self.setEnabled(entry is not None)
        shown = entry or Entry("", Plan(BEST_PASSES))
        self._show_machine(shown)
        self._show_plan(shown)
        if entry is None:
            with QSignalBlocker(self.budget):
                self.budget.setValue(self.budget.minimum())
            self.budget.setEnabled(False)
            self.budget_text.clear()
        if (shown.key, shown.plan, shown.machine) != self._troubled:
            self._forget_trouble()

    def _show_machine(self, entry: Entry) -> None:
        spec = entry.machine
        _show(self.chip, spec.chip)
        machine = entry.variant.program.machine if entry.variant is not None else None
        self.topology.setText(spec.topology or "")
        self.topology.setPlaceholderText(machine.topology.text if machine is not None else "inferred")
        self.mesh.setText(spec.mesh or "")
        axes = ",".join(f"{name}={size}" for name, size in machine.mesh) if machine is not None else ""
        self.mesh.setPlaceholderText(axes or "inferred")

    def _show_plan(self, entry: Entry) -> None:
        plan, planned = entry.plan, entry.recording is None
        for control in (self.scheduler, self.budget, self.cap):
            control.setEnabled(planned)  # what was recorded follows no other plan
        for choice in CHOICES:
            box = self.choices[choice.caption]
            _show(box, value_of(plan, choice))
            box.setEnabled(planned and enabled(plan, choice))
        _show(self.scheduler, plan.scheduler)
        limit = entry.budget.total
        with QSignalBlocker(self.budget):
            self.budget.setValue(min(limit or MOST_IN_FLIGHT, MOST_IN_FLIGHT))
        own = plan.budget is None
        unknown = own and entry.variant is None
        text = "" if unknown else "no limit" if limit is None else str(limit)
        by_kind = ", by kind" if entry.budget.by_kind else ""
        self.budget_text.setText(f"{text} (chip's)".lstrip() if own else f"{text}{by_kind}")
        self.budget_text.setToolTip(f"in flight at most: {entry.budget}")
        self._show_cap()

    def _show_cap(self) -> None:
        entry = self._host.store.state.active_entry
        cap = entry.plan.memory_cap if entry is not None else None
        self.cap.setText(bytes_text(cap) if cap is not None else "")

    # From the controls to the session

    def _set_machine(self) -> None:
        session = self._host.store.state
        entry = session.active_entry
        if entry is None:
            return
        spec = replace(
            entry.machine,
            chip=self.chip.currentText(),
            topology=self.topology.text().strip() or None,
            mesh=self.mesh.text().strip() or None,
        )
        if spec.chip != entry.machine.chip:
            spec = replace(spec, topology=None)
        if spec == entry.machine:
            return
        facts = session.facts
        try:
            if facts is not None and facts.partitions:
                check_machine(load_chip(spec.chip), facts.partitions, spec.topology, spec.mesh)
        except LapstrakeError as error:
            # The machine in force stays in sight, as a cap does.
            self._show_machine(entry)
            self._say(self.machine_trouble, error)
            return
        self.machine_trouble.hide()
        self._host.store.become(f"Machine {spec.chip}", edits.on_machine(session, spec))

    def _set_choice(self, choice: Choice) -> None:
        value = self.choices[choice.caption].currentText()
        self._replan(f"{choice.caption.capitalize()} {value}", lambda plan: with_value(plan, choice, value))

    def _set_scheduler(self) -> None:
        name = self.scheduler.currentText()
        self._replan(f"Scheduler {name}", lambda plan: replace(plan, scheduler=name))

    def _set_budget(self, limit: int) -> None:
        entry = self._host.store.state.active_entry
        if entry is not None:
            budget = replace(entry.plan.budget or Budget(), total=limit)  # limits by kind stay
            self._replan(f"Budget {limit}", lambda plan: replace(plan, budget=budget), merge="budget")

    def _set_cap(self) -> None:
        text = self.cap.text().strip()
        try:
            cap = parse_cap(text) if text else None
        except UsageError as error:
            # The cap in force stays in sight, and why it is not another one beside it.
            self._show_cap()
            self._say(self.cap_trouble, error)
            return
        session = self._host.store.state
        entry = session.active_entry
        in_force = entry.plan.memory_cap if entry is not None else None
        if entry is None or text == (bytes_text(in_force) if in_force is not None else ""):
            return
        self.cap_trouble.hide()
        self._replan("Memory cap", lambda plan: replace(plan, memory_cap=cap))

    def _say(self, trouble: QLabel, error: LapstrakeError) -> None:
        entry = self._host.store.state.active_entry
        self._troubled = (entry.key, entry.plan, entry.machine) if entry is not None else None
        said = str(error)
        trouble.setText(said if len(said) <= _LONGEST else f"{said[:_LONGEST]} …")
        trouble.setToolTip(said)
        trouble.show()

    def _forget_trouble(self) -> None:
        self.machine_trouble.hide()
        self.cap_trouble.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # Escape may be a shortcut, which moves the focus: what was typed has to be gone before that.
        pressed = event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
        if pressed and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            self._show_machine(self._host.store.state.active_entry or Entry("", Plan(BEST_PASSES)))
            self._show_cap()
            self._forget_trouble()
        return super().eventFilter(watched, event)

    def _replan(self, label: str, change: Callable[[Plan], Plan], merge: str | None = None) -> None:
        session = self._host.store.state
        entry = session.active_entry
        if entry is not None:
            state = edits.planned(session, entry.key, change(entry.plan))
            self._host.store.become(label, state, merge=f"{merge} {entry.key}" if merge else None)


def _show(box: QComboBox, text: str) -> None:
    """Show a value, adding it where it is not among those offered (a user's own chip, a scheduler with options)."""
    with QSignalBlocker(box):
        if box.findText(text) < 0:
            box.addItem(text)
        box.setCurrentText(text)


def _trouble(what: str, *fields: QLineEdit) -> QLabel:
    """Says beside the fields why what was typed there was not taken, until something else is typed, or is in force."""
    made = QLabel()
    made.setObjectName("trouble")
    made.setForegroundRole(QPalette.ColorRole.BrightText)
    made.setAccessibleName(f"why {what} was not taken")
    made.hide()
    for field in fields:
        field.textEdited.connect(made.hide)
    return made


def _captioned(caption: str, widget: QWidget) -> QWidget:
    holder = QWidget()
    line = QHBoxLayout(holder)
    line.setContentsMargins(0, 0, 0, 0)
    line.setSpacing(GRID)
    label = QLabel(caption)
    label.setFont(axis_font())
    label.setForegroundRole(label.palette().ColorRole.PlaceholderText)
    label.setBuddy(widget)
    widget.setAccessibleName(caption)
    line.addWidget(label)
    line.addWidget(widget)
    return holder
