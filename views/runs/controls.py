"""The controls of a run: where, how often, with which inputs, and which variants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QPushButton,
    QSpinBox,
    QToolButton,
    QWidget,
)

from engine.execute.devices import Platform
from engine.session.session import Session
from views.flow import FlowLayout
from views.icons import icon
from views.menu_text import verbatim
from views.runs.rows import platform_facts, platform_title, runnable, usual_choice
from views.runs.runner import Runner, Task, Wish
from views.theme import GRID, Theme, axis_font
from views.wheel import pass_wheel_on

_MOST = 2**31 - 1
_TIPS = {
    Task.RUN: "Time the chosen variants, one after the other in turn",
    Task.VERIFY: "Compare what the chosen variants and the module as loaded compute",
    Task.PROFILE: "Time the chosen variants and show what was measured as timelines",
}


class Controls(QWidget):
    """One row, or two where it is narrow; the buttons stand apart."""

    def __init__(
        self, runner: Runner, changed: Callable[[], None], do: Callable[[Task], None], copy: Callable[[Task], None]
    ) -> None:
        """`changed` follows a choice, `do` a button; `copy` copies the command for what a button does."""
        super().__init__()
        self._runner = runner
        self._changed = changed
        self.inputs_path = ""
        self.alone = False
        self.platform = QComboBox()
        pass_wheel_on(self.platform)
        self.platform.setToolTip("Devices to run on")
        self.platform.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.platform.addItem("CPU devices", "cpu")
        self.platform.activated.connect(lambda _: self._set_alone(alone=False))
        self.repeats = _spin(1, 10_000, 10, "How often each variant is timed; the median and the quartiles are shown")
        self.seed = _spin(0, _MOST, 0, "Of the random inputs; indices stay in range, zeros are never drawn for timing")
        self.seeds = _spin(1, 100, 1, "How many sets of inputs are verified with")
        self.as_job = QCheckBox("as a job")
        self.as_job.setToolTip("Compile as jit does in a job, every pass on; devices that are not CPUs always do")
        self.copy = QToolButton()
        self.copy.setAutoRaise(True)  # Qt's signature
        self.copy.setToolTip("Copy as command line")
        self.copy.setAccessibleName("copy as command line")
        self.copy.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.copy.setMenu(QMenu(self.copy))
        for task in Task:
            self.copy.menu().addAction(task.value).triggered.connect(lambda _=False, task=task: copy(task))
        self.inputs = QToolButton()
        self.inputs.setToolTip("Random inputs, or an .npz file with an array for each parameter")
        self.inputs.clicked.connect(self._choose_inputs)
        self.buttons = {task: QPushButton(task.value) for task in Task}
        flow = FlowLayout(self, gap=2 * GRID)
        for caption, widget in (
            ("on", self.platform),
            ("repeats", self.repeats),
            ("seed", self.seed),
            ("sets", self.seeds),
            ("inputs", self.inputs),
        ):
            flow.addWidget(_label(caption, widget))
            flow.addWidget(widget)
        flow.addWidget(self.as_job)
        self.bar = QWidget()
        """The buttons, for whoever has room for them."""
        line = QHBoxLayout(self.bar)
        line.setContentsMargins(0, 0, 0, 0)
        for task, button in self.buttons.items():
            button.setToolTip(_TIPS[task])
            button.clicked.connect(lambda _=False, task=task: do(task))
            line.addWidget(button)
        line.addWidget(self.copy)
        self._show_inputs()

    def wish(self) -> Wish:
        """What the controls say."""
        return Wish(
            platform=str(self.platform.currentData()),
            repeats=self.repeats.value(),
            seed=self.seed.value(),
            seeds=self.seeds.value(),
            inputs=self.inputs_path,
            alone=self.alone,
            as_job=self.as_job.isChecked(),
        )

    def chosen_platform(self) -> Platform | None:
        """What is known of the chosen platform."""
        name = self.platform.currentData()
        return next((p for p in self._runner.platforms if p.name == name), None)

    def choose(self, platform: str, *, alone: bool = False) -> None:
        """Choose a platform, or one device of it alone, as if by hand."""
        self.platform.setCurrentIndex(max(0, self.platform.findData(platform)))
        self._set_alone(alone=alone)

    def refresh(self, theme: Theme, *, enabled: bool) -> None:
        """Show the platforms that are known."""
        self.copy.setIcon(icon("copy", theme.text))
        self.as_job.setEnabled(self.platform.currentData() == "cpu")
        chosen = self.platform.currentData()
        if self._runner.platforms:
            with QSignalBlocker(self.platform):
                self.platform.clear()
                for platform in self._runner.platforms:
                    self.platform.addItem(platform_title(platform), platform.name)
                    row = self.platform.count() - 1
                    self.platform.setItemData(row, platform_facts(platform), Qt.ItemDataRole.ToolTipRole)
                self.platform.setCurrentIndex(max(0, self.platform.findData(chosen)))
        for button in self.buttons.values():
            button.setEnabled(enabled)

    def _set_alone(self, *, alone: bool) -> None:
        self.alone = alone
        self._changed()

    def _choose_inputs(self) -> None:
        if self.inputs_path:
            self.inputs_path = ""
        else:
            path, _ = QFileDialog.getOpenFileName(self, "Inputs of a run", "", "Arrays (*.npz);;All files (*)")
            self.inputs_path = path
        self._show_inputs()
        self._changed()

    def _show_inputs(self) -> None:
        name = Path(self.inputs_path).name
        self.inputs.setText(verbatim(f"{name} ✕") if name else "random …")
        self.inputs.setAccessibleName(f"inputs from {name}: click for random ones" if name else "inputs: random")
        self.seed.setEnabled(not name)
        self.seeds.setEnabled(not name)


class Choice(QListWidget):
    """Which variants to run: base and active, until the user says otherwise."""

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__()
        self._own: dict[str, bool] = {}
        """What the user set, by key."""
        self._changed = changed
        self.setAccessibleName("variants to run")
        self.setFrameShape(QListWidget.Shape.NoFrame)
        self.setUniformItemSizes(True)  # Qt's signature
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)  # Qt's signature
        self.itemChanged.connect(self._toggled)

    def keys(self) -> tuple[str, ...]:
        """Keys of the chosen entries."""
        items = (self.item(row) for row in range(self.count()))
        return tuple(i.data(Qt.ItemDataRole.UserRole) for i in items if i.checkState() == Qt.CheckState.Checked)

    def forget(self) -> None:
        self._own.clear()

    def refresh(self, session: Session) -> None:
        usual = usual_choice(session)
        with QSignalBlocker(self):
            self.clear()
            for entry in runnable(session):
                item = QListWidgetItem(f"{entry.key}  {entry.title}")
                item.setToolTip(entry.title)
                item.setData(Qt.ItemDataRole.UserRole, entry.key)
                item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
                chosen = self._own.get(entry.key, entry.key in usual)
                item.setCheckState(Qt.CheckState.Checked if chosen else Qt.CheckState.Unchecked)
                self.addItem(item)

    def _toggled(self, item: QListWidgetItem) -> None:
        self._own[item.data(Qt.ItemDataRole.UserRole)] = item.checkState() == Qt.CheckState.Checked
        self._changed()


def _spin(least: int, most: int, value: int, tip: str) -> QSpinBox:
    made = QSpinBox()
    pass_wheel_on(made)
    made.setRange(least, most)
    made.setValue(value)
    made.setToolTip(tip)
    made.setFixedWidth(18 * GRID)
    return made


def _label(caption: str, widget: QWidget) -> QLabel:
    label = QLabel(caption)
    label.setFont(axis_font())
    label.setForegroundRole(label.palette().ColorRole.PlaceholderText)
    label.setBuddy(widget)
    widget.setAccessibleName(caption)
    return label
