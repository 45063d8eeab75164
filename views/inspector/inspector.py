"""The pane at the right: the selected instruction, or the active variant where nothing is selected."""

from __future__ import annotations

from collections import OrderedDict

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from engine.session import edits
from engine.session.session import Entry, Session
from engine.session.variant import Variant
from views.fusion.harm import taken
from views.inspector import sections
from views.inspector.facts import AT_ONCE, UNASKED, candidate_of, decisions, is_executed, selected_instruction, size_of
from views.inspector.gate_bars import GateBars
from views.ports import Host, follow
from views.stale import StaleNote
from views.theme import GRID

_KEPT = 64
"""Explanations that are kept."""


class Inspector(QScrollArea):
    """Sections of text with links, and the gate's bars."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._said: OrderedDict[tuple[Variant, int], tuple[str, ...]] = OrderedDict()
        """What jobs found out about places, as long as it is of use."""
        self._asking: tuple[Variant, int] | None = None
        """The instruction whose place a job explains."""
        self._every_note = False
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Inspector")
        content = QWidget()
        layout = QVBoxLayout(content)
        layout.setContentsMargins(3 * GRID, 2 * GRID, 3 * GRID, 3 * GRID)
        layout.setSpacing(2 * GRID)
        self.above = _text()
        self.bars = GateBars(host)
        self.below = _text()
        for label in (self.above, self.below):
            label.linkActivated.connect(self._followed)
        layout.addWidget(StaleNote(host, _shown))
        layout.addWidget(self.above)
        layout.addWidget(self.bars)
        layout.addWidget(self.below)
        layout.addStretch(1)
        self.setWidget(content)
        follow(self, host.store, self._session_changed)
        self._session_changed(host.store.state, frozenset({"selection"}))

    def sizeHint(self) -> QSize:
        return QSize(66 * GRID, 100 * GRID)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if not changed & {"selection", "entries", "active", "base", "modules", "matches"}:
            return
        found = selected_instruction(session)
        if found is None:
            self.bars.set_terms(None)
            self.above.setText(sections.about_variant(session, every_note=self._every_note))
            self.below.setText("")
            return
        variant, instruction = found
        shown = _key_of(session, variant)
        candidate = candidate_of(session, variant, instruction.id)
        muted = self._host.theme.muted
        self.above.setText(
            "".join(
                (
                    sections.heading(instruction, muted, sections.home(session)),
                    sections.cost_table(variant, instruction, muted),
                    sections.verdict(candidate),
                )
            )
        )
        self.bars.set_terms(candidate.gate if candidate is not None else None)
        parts = (
            sections.times_table(session, muted),
            sections.waiting(session),
            sections.held_back(session),
            sections.early_fusion(self._host, session),
            self._place(session, shown, variant, instruction.id),
            sections.neighbours(variant, instruction, muted),
            sections.source_place(instruction, muted),
        )
        self.below.setText("".join(parts))

    def _followed(self, target: str) -> None:
        session = self._host.store.state
        found = selected_instruction(session)
        kind, _, number = target.partition(":")
        if kind == "explain" and found is not None:
            self._explain(session, _key_of(session, found[0]), found[0], int(number))
            self._say_again()
        if target == sections.NOTES:
            self._every_note = not self._every_note
            self._session_changed(session, frozenset({"selection"}))
        if kind == "try":
            self._try_others(session)
        if kind == "instruction" and found is not None:
            key = _key_of(session, found[0])
            self._host.store.become("Select", edits.selected(session, key, (int(number),)))

    def _place(self, session: Session, key: str, variant: Variant, instruction: int) -> str:
        """Why it is where it is: at once in small programs, by a job in larger ones."""
        asked = (variant, instruction)
        size = size_of(variant) if is_executed(variant, instruction) else 0
        if 0 < size <= AT_ONCE:
            return sections.decision(key, variant, instruction, decisions(variant, instruction), asking=False)
        if 0 < size <= UNASKED and asked not in self._said and self._asking != asked:
            self._explain(session, key, variant, instruction)
        return sections.decision(key, variant, instruction, self._said.get(asked), asking=self._asking == asked)

    def _explain(self, session: Session, key: str, variant: Variant, instruction: int) -> None:
        entry = session.entry(key)
        if entry is None:
            return
        asked = (variant, instruction)
        self._asking = asked

        def arrived(found: tuple[str, ...] | str) -> None:
            if self._asking == asked:
                self._asking = None
            if not found:
                return
            self._said[asked] = found if isinstance(found, tuple) else (found,)
            while len(self._said) > _KEPT:
                self._said.popitem(last=False)
            self._say_again()

        self._host.explain(entry, instruction, arrived)

    def _try_others(self, session: Session) -> None:
        """Have what else could be fused simulated, and say what each makes of the transfer."""
        entry = session.active_entry
        for early in sections.early_ones(session):
            if entry is None:
                return
            for choice in early.fusion.alternatives:
                asked = entry.asking(taken(entry.plan, choice))
                self._host.evaluate(f"trying: {choice.what}", asked, lambda _: self._say_again())

    def _say_again(self) -> None:
        self._session_changed(self._host.store.state, frozenset({"selection"}))


def _key_of(session: Session, variant: Variant) -> str:
    """Key of the entry that shows `variant`; of several that do, the selection's own."""
    return next((e.key for e in session.beside(session.selection.entry) if e.variant is variant), session.active)


def _shown(session: Session) -> Entry | None:
    """The entry whose variant is shown: that of the selected instruction, else the active one."""
    found = selected_instruction(session)
    if found is None:
        return session.active_entry
    return session.entry(_key_of(session, found[0]))


def _text() -> QLabel:
    made = QLabel()
    made.setTextFormat(Qt.TextFormat.RichText)
    made.setWordWrap(True)
    made.setAlignment(Qt.AlignmentFlag.AlignTop)
    made.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextBrowserInteraction | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    made.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
    return made
