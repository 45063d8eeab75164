"""The pane Runs: on devices, and by a production compiler that needs none."""

from __future__ import annotations

from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from views.ports import Host
from views.runs.compiler import CompilerPage
from views.runs.devices import DevicesPage
from views.runs.runner import Runner
from views.theme import GRID


class RunsPane(QWidget):
    """Two pages; devices are looked for when the pane is first seen."""

    def __init__(self, host: Host, runner: Runner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._runner = runner
        self.devices = DevicesPage(host, runner)
        self.compiler = CompilerPage(host, runner)
        self.pages = QStackedWidget()
        self._group = QButtonGroup(self)
        line = QHBoxLayout()
        line.setContentsMargins(2 * GRID, GRID, 2 * GRID, 0)
        for number, (title, page) in enumerate((("On devices", self.devices), ("Production compiler", self.compiler))):
            button = QToolButton()
            button.setText(title)
            button.setCheckable(True)  # Qt's signature
            button.setAutoRaise(True)  # Qt's signature
            button.setChecked(number == 0)
            self._group.addButton(button, number)
            line.addWidget(button)
            self.pages.addWidget(page)
        line.addStretch(1)
        line.addWidget(self.devices.controls.bar)
        self._group.idClicked.connect(self._show)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(line)
        layout.addWidget(self.pages, 1)

    def came_into_view(self) -> None:
        """Show what was put off while nobody looked; look for devices the first time."""
        if not self._runner.platforms and not self._runner.looking:
            self._runner.look()
        self.devices.refresh()
        self.compiler.refresh()

    def show_devices(self) -> None:
        self._show(0)

    def show_compiler(self) -> None:
        self._show(1)
        self.compiler.target.setFocus()

    def _show(self, number: int) -> None:
        self._group.button(number).setChecked(True)  # Qt's signature
        self.pages.setCurrentIndex(number)
        self.devices.controls.bar.setVisible(number == 0)
        self.came_into_view()
