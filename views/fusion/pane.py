"""The Fusion tab: decisions sorted by harm; for the picked one its inside, what it waits for, and its alternatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QGridLayout,
    QLabel,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QSizePolicy,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from engine.passes.fusion import Alternative
from engine.quantities import counted_text, time_text
from engine.session import edits
from engine.session.session import Entry, Session
from engine.session.variant import Variant
from engine.timeline.timeline import Metrics
from views.fusion.decision_table import MOST, DecisionTable
from views.fusion.diagram import Diagram
from views.fusion.early import early_dones, tried_of
from views.fusion.harm import FusionRow, fusion_rows, taken
from views.fusion.inside import inside_of
from views.fusion.strips import Strips
from views.fusion.words import Gain, compared, gain_of, inside_text
from views.hint import Hint, open_first
from views.menu_text import verbatim
from views.ports import Host, follow, in_view
from views.stale import StaleNote
from views.theme import GRID

_MOST_EARLY = 4
_NARROW = 900
"""Pixels of width below which the graph comes under the words."""


def counted_harm(exposed: Sequence[int]) -> str:
    """How many decisions expose transfers, and how many of them all are listed: `exposed` in picoseconds, of each."""
    harmful = sum(time > 0 for time in exposed)
    decisions = counted_text(len(exposed), "decision")
    if not harmful:
        first = f" The first {MOST} are listed." if len(exposed) > MOST else ""
        one = "it makes no compute wait" if len(exposed) == 1 else "none makes compute wait"
        return f"{decisions}, {one} for a transfer it does not need.{first}"
    worst = f" The {MOST} worst are listed." if len(exposed) > MOST else ""
    verb = "exposes" if harmful == 1 else "expose"
    return f"{harmful:,} of {decisions} {verb} transfers, {time_text(sum(exposed))} together.{worst}"


class FusionPane(QWidget):
    """Alternatives are predicted when a fusion is picked; taking one is one undoable step."""

    comfortable = 84 * GRID
    """Pixels of height in which alternatives and both timelines can be seen together."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._variant: Variant | None = None
        self._rows: tuple[FusionRow, ...] = ()
        self.text = Hint(host)
        self.table = DecisionTable()
        self.table.currentCellChanged.connect(lambda *_: self._picked())
        self.inside = QLabel()
        self.inside.setWordWrap(True)
        self.inside.setTextFormat(Qt.TextFormat.RichText)
        self.inside.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.inside.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.choices = QGridLayout()
        self.choices.setColumnStretch(0, 1)
        self.diagram = Diagram(host)
        self.figures = QLabel()
        self.figures.setWordWrap(True)
        self.strips = Strips(host)
        self._tried: Alternative | None = None
        self.early = QLabel()
        self.early.setWordWrap(True)
        self._beside = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._beside.addWidget(self.inside, 1)
        self._beside.addWidget(self.diagram, 2)
        self._split = QSplitter()
        self._lay_out()
        follow(self, host.store, self._session_changed)
        stop = host.watch_predicted(self._show_choices)
        self.destroyed.connect(lambda *_: stop())
        self.refresh()

    def _lay_out(self) -> None:
        self._split.addWidget(self.table)
        self._split.addWidget(self._detail())
        self._split.setSizes([400, 600])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(StaleNote(self._host))
        layout.addWidget(self.text)
        layout.addWidget(self._split, 1)

    def _detail(self) -> QScrollArea:
        """What is shown of the picked decision."""
        detail = QWidget()
        lines = QVBoxLayout(detail)
        lines.setContentsMargins(3 * GRID, 0, 2 * GRID, 2 * GRID)
        lines.addWidget(self.early)
        lines.addLayout(self.choices)
        lines.addWidget(self.figures)
        lines.addWidget(self.strips)
        lines.addLayout(self._beside)
        lines.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(detail)
        return scroll

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < _NARROW
        self._beside.setDirection(QBoxLayout.Direction.TopToBottom if narrow else QBoxLayout.Direction.LeftToRight)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.table.paint_harm(self._host.theme)
            self.diagram.redraw()
            self._show_choices()

    def came_into_view(self) -> None:
        """List what was put off while nobody looked."""
        self.refresh()

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"entries", "active", "modules"} and in_view(self):
            self.refresh()

    def refresh(self) -> None:
        """List the active variant's fusions."""
        session = self._host.store.state
        variant = session.active_variant
        if variant is not self._variant or variant is None:
            self._variant = variant
            self._rows = fusion_rows(variant) if variant is not None else ()
            self.table.show_rows(self._rows, self._host.theme)
        self.text.setText(self._said(session))
        self._split.setVisible(bool(self._rows))

    def _said(self, session: Session) -> str:
        entry = session.active_entry
        if entry is None:
            return open_first("to see what fusion does to overlap")
        if entry.variant is None:
            return "Waiting for the active variant."
        if not self._rows:
            if edits.options_of(entry.plan, "fuse") is None:
                return f"The plan of {entry.key} fuses nothing. Set “fusion” in the plan line to see decisions."
            return f"Nothing in {entry.key} can be fused."
        return f"{entry.key}: {counted_harm([row.exposed for row in self._rows])}"

    def _current(self) -> FusionRow | None:
        row = self.table.currentRow()
        return self._rows[row] if 0 <= row < len(self._rows) else None

    def _picked(self) -> None:
        row, session = self._current(), self._host.store.state
        entry = session.active_entry
        self._tried = None
        self.strips.clear()
        self.figures.clear()
        self.diagram.show_inside(inside_of(self._variant, row.fusion) if row and self._variant else None)
        if row is None or entry is None:
            self._show_choices()
            return
        if in_view(self):
            asked = [entry.asking(taken(entry.plan, choice)) for choice in row.fusion.alternatives]
            self._host.predict("trying another fusion", asked)
            if not session.selection.has(entry.key, row.fusion.instruction) and self.table.hasFocus():
                ids = (row.fusion.instruction,)
                self._host.store.become("Select", edits.selected(session, entry.key, ids))
        self._show_choices()

    def _show_choices(self) -> None:
        while (item := self.choices.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        row, entry = self._current(), self._host.store.state.active_entry
        self._say()
        if row is None or entry is None or entry.variant is None:
            return
        for number, choice in enumerate(row.fusion.alternatives):
            answer = self._host.predicted(entry.asking(taken(entry.plan, choice)))
            gain = gain_of(answer, entry.variant.metrics)
            for column, widget in enumerate((self._previewer(choice), self._gain(answer, gain, entry.variant.metrics))):
                widget.setToolTip(f"{choice.what}: {gain.in_words}")
                self.choices.addWidget(widget, number, column)
            button = QPushButton(f"Take {gain.time}" if gain.time else "Take")
            button.setToolTip(f"{choice.what}: {gain.in_words}. One step that Undo takes back.")
            button.setAccessibleName(f"take: {choice.what}")
            button.setEnabled(not isinstance(answer, str))
            button.clicked.connect(self._taker(choice))
            self.choices.addWidget(button, number, 2)
        if self._tried is None:
            self._preview_best(row, entry)

    def _previewer(self, choice: Alternative) -> QRadioButton:
        button = QRadioButton(verbatim(choice.what))
        button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        button.setAccessibleName(f"compare: {choice.what}")
        button.setChecked(choice == self._tried)
        button.clicked.connect(lambda: self.preview(choice))
        return button

    def _preview_best(self, row: FusionRow, entry: Entry) -> None:
        """As soon as every alternative is predicted."""
        answers = [(self._host.predicted(entry.asking(taken(entry.plan, c))), c) for c in row.fusion.alternatives]
        if any(answer is None for answer, _ in answers):
            return
        found = [(answer.makespan, n) for n, (answer, _) in enumerate(answers) if isinstance(answer, Metrics)]
        if found:
            self.preview(answers[min(found)[1]][1])

    def preview(self, choice: Alternative) -> None:
        """Show both timelines around the picked fusion, as it is and with another decision."""
        row, entry = self._current(), self._host.store.state.active_entry
        if row is None or entry is None or entry.variant is None or entry.stale:
            return
        self._tried = choice
        now = entry.variant

        def arrived(then: Variant | str) -> None:
            still = self._host.store.state.active_variant is now and self._tried == choice and self._current() is row
            if not still:
                return
            if isinstance(then, str):
                self.figures.setText(then)
                return
            self.strips.compare(row.fusion, now, then, choice.what)
            self.figures.setText(compared(now.metrics, then.metrics))
            self._say()

        self.figures.setText(f"trying: {choice.what} …")
        self._host.evaluate(f"trying: {choice.what}", entry.asking(taken(entry.plan, choice)), arrived)

    def _say(self) -> None:
        """The inside in words, and for each transfer that comes too early what could be done."""
        row, entry = self._current(), self._host.store.state.active_entry
        if row is None or entry is None or self._variant is None:
            self.inside.clear()
            self.early.clear()
            return
        tried = tried_of(self._host, entry, row.fusion)
        found = early_dones(self._variant, row.fusion)
        said = [one.said(tried) for one in found[:_MOST_EARLY]]
        if len(found) > _MOST_EARLY:
            said.append(f"and {len(found) - _MOST_EARLY} more")
        self.early.setText("\n".join(said))
        self.early.setVisible(bool(said))
        self.inside.setText(inside_text(row))

    def _gain(self, answer: Metrics | str | None, gain: Gain, now: Metrics) -> QLabel:
        label = QLabel(gain.part)
        if isinstance(answer, Metrics):
            theme = self._host.theme
            label.setStyleSheet(f"color: {theme.gain if answer.makespan < now.makespan else theme.muted}")
        return label

    def _taker(self, choice: Alternative) -> Callable[[], None]:
        def take() -> None:
            session = self._host.store.state
            entry = session.active_entry
            if entry is not None:
                plan = taken(entry.plan, choice)
                self._host.store.become(
                    choice.what[:1].upper() + choice.what[1:], edits.planned(session, entry.key, plan)
                )

        return take
