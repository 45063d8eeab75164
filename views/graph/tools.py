"""The line over the graph: what is shown, how it is coloured, parts of it, and what the colours mean."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QSpinBox, QToolButton, QVBoxLayout, QWidget

from engine.layout.figures import Figure
from views.elided import ElidedLabel
from views.flow import FlowLayout
from views.graph.legend import Legend
from views.ports import Host
from views.theme import GRID, axis_font
from views.wheel import pass_wheel_on

_MOST_HOPS = 9
_TIPS = {
    Figure.KIND: "What each node does, in the colours of the timelines",
    Figure.TIME: "Time of a whole execution, loops multiplied; of what the plan's result still has",
    Figure.BYTES: "Bytes moved to and from HBM in one execution",
    Figure.SLACK: "How much later it could end before its first user is late; of a group, the least",
    Figure.EXPOSED: "Time in which compute waits for it, loops multiplied",
    Figure.MEMORY: "Bytes of the buffers that it defines",
    Figure.DECISION: "What the passes decided about it",
}


class Tools(QWidget):
    """Asks; the pane does."""

    chosen = Signal(int)
    coloured = Signal(str)
    around = Signal()
    paths = Signal()
    everything = Signal()
    listed = Signal(bool)

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.choices = QComboBox()
        self.choices.setAccessibleName("what the graph shows")
        self.choices.setToolTip("The active variant, one of its passes before and after, or the base beside it")
        self.choices.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.choices.currentIndexChanged.connect(self.chosen)
        self.colours = QComboBox()
        self.colours.setAccessibleName("colour nodes by")
        for figure in Figure:
            self.colours.addItem(f"by {figure}", figure)
            self.colours.setItemData(self.colours.count() - 1, _TIPS[figure], Qt.ItemDataRole.ToolTipRole)
        self.colours.currentIndexChanged.connect(lambda _: self._recoloured())
        self._hops = QSpinBox()
        self._hops.setRange(1, _MOST_HOPS)
        self._hops.setValue(2)
        self._hops.setSuffix(" hops")
        self._hops.setAccessibleName("hops around the selection")
        pass_wheel_on(self.choices, self.colours, self._hops)
        self._around = _button("Around", "Show only what is that many hops from the selection (G)", self.around)
        self._paths = _button("Paths", "Show all paths between the two selected nodes (P)", self.paths)
        self._everything = _button("Whole module", "Leave this part (Backspace)", self.everything)
        self._everything.hide()
        self._list = _button("Table", "The shown nodes as a table (T)", None)
        self._list.setCheckable(True)
        self._list.toggled.connect(self.listed)
        self.legend = Legend(host)
        self._said = ElidedLabel()
        self._said.setFont(axis_font())
        self._said.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
        self._said.setContentsMargins(0, GRID - 1, 0, 0)  # on one line with the first row of the legend
        row = QWidget()
        flow = FlowLayout(row, gap=2 * GRID)
        widgets = (
            self.choices,
            self.colours,
            self._hops,
            self._around,
            self._paths,
            self._everything,
            self._list,
        )
        for widget in widgets:
            flow.addWidget(widget)
        second = QHBoxLayout()
        second.setContentsMargins(0, 0, 2 * GRID, GRID)
        second.addWidget(self.legend, 2)
        second.addWidget(self._said, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(row)
        column.addLayout(second)

    @property
    def figure(self) -> Figure:
        return Figure(self.colours.currentData())

    @property
    def hops(self) -> int:
        return self._hops.value()

    def set_choices(self, titles: Sequence[str], current: int) -> None:
        """What can be shown, and what is; nobody is told."""
        with QSignalBlocker(self.choices):
            if [self.choices.itemText(n) for n in range(self.choices.count())] != list(titles):
                self.choices.clear()
                self.choices.addItems(titles)
            self.choices.setCurrentIndex(current)

    def set_ready(self, ready: bool) -> None:  # as Qt's setters
        """Whether there is a graph to act on."""
        for widget in (self.colours, self._hops, self._around, self._paths, self._list, self.legend):
            widget.setEnabled(ready)
        self.choices.setEnabled(self.choices.count() > 0)
        if not ready:
            self.say("")

    def set_part(self, text: str) -> None:
        """Offer the way back from a part."""
        self._everything.setVisible(bool(text))

    def set_listed(self, on: bool) -> None:  # as Qt's setters
        with QSignalBlocker(self._list):
            self._list.setChecked(on)

    def say(self, text: str) -> None:
        """One line at the right."""
        self._said.setText(text)

    @property
    def said(self) -> str:
        return self._said.text()

    def _recoloured(self) -> None:
        self.colours.setToolTip(_TIPS[self.figure])
        self.coloured.emit(str(self.figure))


def _button(text: str, tip: str, signal: object) -> QToolButton:
    button = QToolButton()
    button.setText(text)
    button.setToolTip(tip)
    emit = getattr(signal, "emit", None)
    if emit is not None:
        button.clicked.connect(lambda _: emit())
    return button
