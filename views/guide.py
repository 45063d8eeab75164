"""First steps: a list that ticks itself off as the user goes along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QGridLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from engine.session.session import Session
from views.ports import Host, follow
from views.theme import GRID, axis_font


@dataclass(frozen=True)
class StepText:
    """A step: what to do, why, which action does it, and how to see that it was done."""

    title: str
    why: str
    action: str
    done: Callable[[Session], bool]


STEPS = (
    StepText(
        "Open a sample",
        "A and the variants below it show the module as it is and with its collectives decomposed. "
        "Hatched stretches of the compute lane wait for a transfer: that is what is to be gained.",
        "open-sample",
        lambda session: session.facts is not None,
    ),
    StepText(
        "Click a hatched gap",
        "It selects the transfer that is waited for. The inspector says why it is exposed and what decomposing it "
        "saves; the same instruction is outlined in every variant.",
        "",
        lambda session: bool(session.selection),
    ),
    StepText(
        "Move the budget",
        "The plan line acts on the active variant, the one with the bar at its left. The picture follows at once; "
        "undo takes it back.",
        "budget-down",
        lambda session: any(e.plan.budget is not None for e in session.entries),
    ),
    StepText(
        "Add a variant and compare",
        "A copy of the active variant is added below; its gain is against the pinned one. The tab “Compare” lists all, "
        "and tries every combination for you.",
        "duplicate",
        lambda session: len(session.entries) > 3,
    ),
    StepText("Save the session", "Plans, marks and what is compared go into one small file.", "save", lambda _: False),
)

_WIDTH = 130 * GRID


class Guide(QDialog):
    """A window beside the main one; nothing waits for it."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("First steps")
        self.setModal(False)
        self._marks: list[QLabel] = []
        grid = QGridLayout()
        grid.setHorizontalSpacing(3 * GRID)
        grid.setVerticalSpacing(3 * GRID)
        grid.setColumnStretch(1, 1)
        for row, step in enumerate(STEPS):
            mark = QLabel()
            self._marks.append(mark)
            grid.addWidget(mark, row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(_step_text(step), row, 1)
            if step.action:
                button = QPushButton("Do it")
                button.setAccessibleName(step.title)
                button.clicked.connect(_performer(host, step.action))
                grid.addWidget(button, row, 2, Qt.AlignmentFlag.AlignTop)
        keys = host.keys_of("palette")
        last = QLabel(f"Every command is in the list that {keys} opens; ? shows all keys.")
        last.setFont(axis_font())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4 * GRID, 4 * GRID, 4 * GRID, 4 * GRID)
        layout.setSpacing(4 * GRID)
        layout.addLayout(grid)
        layout.addWidget(last)
        follow(self, host.store, lambda session, _: self._tick(session))
        self._tick(host.store.state)
        layout.addStretch(1)
        self.resize(_WIDTH, layout.totalHeightForWidth(_WIDTH))

    def _tick(self, session: Session) -> None:
        for mark, step in zip(self._marks, STEPS, strict=True):
            done = step.done(session)
            mark.setText("☑" if done else "☐")
            mark.setAccessibleName("done" if done else "to do")


def _step_text(step: StepText) -> QLabel:
    label = QLabel(f"<b>{step.title}</b><br>{step.why}")
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.RichText)
    label.setMinimumWidth(80 * GRID)
    return label


def _performer(host: Host, action: str) -> Callable[[], None]:
    return lambda: host.perform(action)
