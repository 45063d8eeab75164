"""A form for a whole plan, made from the fields of passes and schedulers: every option there is, also of plugins."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFormLayout,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from engine import options
from engine.chips.budget import Budget
from engine.errors import UsageError
from engine.passes.pipeline import PASSES, Pipeline
from engine.quantities import bytes_text, parse_cap
from engine.schedule.registry import SCHEDULERS, parse_scheduler, show_scheduler
from engine.session import edits
from engine.session.plan import Plan
from views.ports import Host
from views.theme import GRID
from views.wheel import pass_wheel_on


class OptionsBox(QGroupBox):
    """The options of one part. What is left at its default is not written into a plan."""

    def __init__(self, name: str, part: type, *, optional: bool) -> None:
        super().__init__(name)
        self.name = name
        self.setCheckable(optional)
        self.setToolTip((part.__doc__ or "").partition("\n\n")[0].replace("\n    ", " ").replace("`", ""))
        self._rows: dict[str, tuple[options.OptionField, QComboBox | QLineEdit]] = {}
        form = QFormLayout(self)
        for field in options.fields_of(part):
            control = _control(field)
            control.setAccessibleName(f"{field.name} of {name}")
            self._rows[field.name] = field, control
            form.addRow(field.name, control)
        if not self._rows:
            form.addRow(QLabel("no options"))

    def controls(self) -> list[QComboBox | QLineEdit]:
        return [control for _, control in self._rows.values()]

    def show_options(self, given: dict[str, str]) -> None:
        """Show what a plan gives, defaults elsewhere."""
        for name, (field, control) in self._rows.items():
            text = given.get(name, given.get(name.replace("_", "-"), field.default))
            if isinstance(control, QComboBox):
                control.setCurrentText(text)
            else:
                control.setText("" if text == field.default else text)

    def text(self) -> str:
        """The part as a plan writes it."""
        given = []
        for name, (field, control) in self._rows.items():
            value = (control.currentText() if isinstance(control, QComboBox) else control.text()).strip()
            if value and value != field.default:
                given.append(f"{name}={value}")
        return f"{self.name}{{{','.join(given)}}}" if given else self.name


def _control(field: options.OptionField) -> QComboBox | QLineEdit:
    if field.choices:
        box = QComboBox()
        pass_wheel_on(box)
        box.addItems(field.choices)
        return box
    line = QLineEdit()
    hint = {"list": "names, separated by ;", "int": "a whole number", "float": "a number"}.get(field.kind, "")
    line.setPlaceholderText(field.default or hint)
    line.setToolTip(hint)
    return line


class PlanForm(QDialog):
    """A window beside the main one. From the active variant's plan on it makes another variant, or changes that one."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        entry = edits.planned_entry(host.store.state)
        plan = entry.plan if entry is not None else Plan()
        self._key = entry.key if entry is not None else ""
        self.setWindowTitle("A variant from all options")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.name = QLineEdit()
        self.name.setPlaceholderText("the plan in words")
        self.scheduler = QComboBox()
        pass_wheel_on(self.scheduler)
        self.scheduler.addItems(SCHEDULERS.names())
        self.budget, self.cap = QLineEdit(), QLineEdit()
        self.budget.setPlaceholderText("the chip's; 4; permute=4,total=5")
        self.budget.setToolTip("In flight at a moment: 4 of all kinds, or by kind as permute=4,gather=1,total=5")
        self.cap.setPlaceholderText("none; 16 GiB")
        self.passes = {name: OptionsBox(name, PASSES.load(name), optional=True) for name in PASSES.names()}
        self.schedulers = {n: OptionsBox(n, SCHEDULERS.load(n), optional=False) for n in SCHEDULERS.names()}
        self.said = QLabel()
        self.said.setWordWrap(True)
        self.said.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.add = QPushButton("Add variant")
        self.add.setDefault(True)
        self.change = QPushButton(f"Change {self._key}")
        self._lay_out()
        self._show(plan)
        self._connect()
        self._judge()

    def _lay_out(self) -> None:
        content = QWidget()
        column = QVBoxLayout()
        first = QWidget()
        first.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        head = QFormLayout(first)
        head.setContentsMargins(0, 0, 0, 0)
        for caption, control in (("name", self.name), ("budget", self.budget), ("memory cap", self.cap)):
            control.setAccessibleName(caption)
            head.addRow(caption, control)
        head.addRow("scheduler", self.scheduler)
        column.addWidget(first)
        for box in self.schedulers.values():
            column.addWidget(box)
        column.addStretch(1)
        passes = QVBoxLayout()
        for box in self.passes.values():
            passes.addWidget(box)
        passes.addStretch(1)
        beside = QHBoxLayout(content)
        beside.setSpacing(4 * GRID)
        beside.addLayout(column, 1)
        beside.addLayout(passes, 1)
        scroll = QScrollArea()
        scroll.setWidget(content)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        buttons = QHBoxLayout()
        close = QPushButton("Close")
        close.clicked.connect(self.close)
        buttons.addStretch(1)
        for button in (self.add, self.change, close):
            buttons.addWidget(button)
        whole = QVBoxLayout(self)
        whole.addWidget(scroll, 1)
        whole.addWidget(self.said)
        whole.addLayout(buttons)
        self.resize(200 * GRID, 165 * GRID)

    def _show(self, plan: Plan) -> None:
        given = {name: dict(values) for name, values in options.split(plan.passes)}
        for name, box in self.passes.items():
            box.setChecked(name in given)
            box.show_options(given.get(name, {}))
        ((scheduler, values),) = options.split(plan.scheduler)
        self.scheduler.setCurrentText(scheduler)
        for name, box in self.schedulers.items():
            box.show_options(dict(values) if name == scheduler else {})
        self.budget.setText(str(plan.budget) if plan.budget is not None else "")
        self.cap.setText(bytes_text(plan.memory_cap) if plan.memory_cap is not None else "")

    def _connect(self) -> None:
        boxes = (*self.passes.values(), *self.schedulers.values())
        for control in (self.scheduler, self.budget, self.cap, *(c for box in boxes for c in box.controls())):
            if isinstance(control, QComboBox):
                control.currentIndexChanged.connect(self._judge)
            else:
                control.textChanged.connect(self._judge)
        for box in self.passes.values():
            box.toggled.connect(self._judge)
        self.add.clicked.connect(self._add)
        self.change.clicked.connect(self._change)

    def plan(self) -> Plan:
        """What the form says. Raises UsageError with what is wrong."""
        chosen = ",".join(box.text() for box in self.passes.values() if box.isChecked())
        scheduler = self.schedulers[self.scheduler.currentText()].text()
        budget, cap = self.budget.text().strip(), self.cap.text().strip()
        return Plan(
            passes=str(Pipeline.parse(chosen)),
            scheduler=show_scheduler(parse_scheduler(scheduler)),
            budget=Budget.parse(budget) if budget else None,
            memory_cap=parse_cap(cap) if cap else None,
        )

    def _judge(self) -> None:
        """Say what the plan is, or what is wrong with it."""
        for name, box in self.schedulers.items():
            box.setVisible(name == self.scheduler.currentText() and bool(box.controls()))
        try:
            plan = self.plan()
        except UsageError as error:
            said, colour, fine = str(error), self._host.theme.error, False
        else:
            said, colour, fine = f"{plan.passes or 'no passes'} · {plan.scheduler}", self._host.theme.muted, True
        self.said.setText(said)
        self.said.setStyleSheet(f"color: {colour}")
        self.add.setEnabled(fine)
        self.change.setEnabled(fine and self._host.store.state.entry(self._key) is not None)

    def _add(self) -> None:
        session = self._host.store.state
        self._host.store.become("Add a variant", edits.added(session, self.plan(), self.name.text().strip()))

    def _change(self) -> None:
        session, plan = self._host.store.state, self.plan()
        state = edits.planned(session, self._key, plan)
        name = self.name.text().strip()
        if name:
            state = edits.renamed(state, self._key, name)
        self._host.store.become(f"Change {self._key}", state)
