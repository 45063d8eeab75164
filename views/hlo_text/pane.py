"""The HLO tab: the active variant's module, or the base's and the active one's side by side."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from engine.session import edits
from engine.session.lookup import lookup
from engine.session.matching import shown_in
from engine.session.session import Entry, Session
from engine.session.variant import Variant
from views.elided import ElidedLabel
from views.hint import Hint, open_first
from views.hlo_text.lines import Printed
from views.hlo_text.steps import DifferenceSteps
from views.hlo_text.text_view import TextView
from views.ports import Gone, Host, follow, in_view
from views.stale import StaleNote
from views.theme import GRID

_Asked = tuple[Variant, Variant | None]
_KEPT = 4


class HloPane(QWidget):
    """Text comes from a job, when the tab is looked at; it is kept for the modules seen last."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._known: dict[_Asked, Printed | str] = {}
        self._gone = Gone(host.store.state)
        self._shown: Printed | str = ""
        self._hit = -1
        self._selected: frozenset[int] = frozenset()
        """Rows of what is selected in the session, as they were marked last."""
        self.base, self.active = TextView(host), TextView(host)
        self.base.setAccessibleName("HLO text of the base")
        self.message = Hint(host)
        self.both = QCheckBox("side by side with the base")
        self.both.toggled.connect(lambda _: self.refresh())
        self.steps = DifferenceSteps(host)
        self.steps.went.connect(self._frame)
        self.steps.hide()
        self.outline = QCheckBox("folded")
        self.outline.setToolTip("Every computation as its first line; a click in the margin folds or opens one")
        self.outline.toggled.connect(self.fold_all)
        self.search = QLineEdit()
        self.search.setPlaceholderText("find in the text")
        self.search.setToolTip("Enter goes to the next line that contains this, Shift+Enter to the one before")
        self.search.setClearButtonEnabled(True)
        self.search.setMinimumWidth(30 * GRID)
        self.search.setMaximumWidth(60 * GRID)
        self.search.installEventFilter(self)
        self.title = ElidedLabel()
        line = QHBoxLayout()
        line.setContentsMargins(2 * GRID, GRID, 2 * GRID, 0)
        line.addWidget(self.title, 1)
        line.addWidget(self.steps)
        line.addWidget(self.outline)
        line.addWidget(self.both)
        line.addWidget(self.search, 1)
        texts = QHBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(self.base)
        texts.addWidget(self.active)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(StaleNote(host))
        layout.addLayout(line)
        layout.addWidget(self.message)
        layout.addLayout(texts, 1)
        for view, of_base in ((self.base, True), (self.active, False)):
            view.picked.connect(self._picker(of_base=of_base))
            view.verticalScrollBar().valueChanged.connect(self._scroll_together)
        self.base.refolded.connect(lambda: self._fold_together(self.base, self.active))
        self.active.refolded.connect(lambda: self._fold_together(self.active, self.base))
        follow(self, host.store, self._session_changed)

    def came_into_view(self) -> None:
        """Do what was put off while nobody looked."""
        self.refresh()

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if "modules" in changed and self._gone.went(session):
            self._known.clear()
        if not in_view(self):
            return
        if changed & {"entries", "active", "base", "modules"}:
            self.refresh()
        elif changed & {"selection", "matches"}:
            self._mark(session)

    def refresh(self) -> None:
        """Show the text of what is active now, asking for it if it is not there."""
        session = self._host.store.state
        base, active = self._entries(session)
        shown = self._text(base, active)
        if isinstance(shown, str):
            self.message.setText(shown)
        elif shown is not self._shown:
            self.active.set_text(shown.text)
            self.base.set_text(shown.beside)
            self.steps.show_of(shown)
            self._hit, self._selected = -1, frozenset()
            self.fold_all(self.outline.isChecked())
        self._shown = shown
        there = isinstance(shown, Printed)
        if not there and (self.active.hasFocus() or self.base.hasFocus()):
            self.setFocus()  # keys go on working here while there is no text
        self.message.setVisible(not there)
        self.active.setVisible(there)
        beside = isinstance(shown, Printed) and shown.beside is not None
        self.base.setVisible(beside)
        self.steps.setVisible(beside)
        if there and self.hasFocus():
            self.active.setFocus()
        self.title.setText("   |   ".join(f"{e.key}  {session.title_of(e)}" for e in (base, active) if e is not None))
        self._mark(session)

    def _entries(self, session: Session) -> tuple[Entry | None, Entry | None]:
        """Base (None where only the active one is shown) and active entry."""
        base, active = session.base_entry, session.active_entry
        both = self.both.isChecked() and base is not active and base is not None and base.variant is not None
        return base if both else None, active

    def _text(self, base: Entry | None, active: Entry | None) -> Printed | str:
        """The text, or what to say in its place."""
        if active is None:
            return open_first("to read its HLO")
        if active.variant is None:
            return active.error or "Waiting for the active variant."
        asked = (active.variant, base.variant if base is not None else None)
        if asked not in self._known:
            while len(self._known) >= _KEPT:
                del self._known[next(iter(self._known))]
            self._known[asked] = "Printing …"
            self._host.print_text(*asked, self._arrival(asked))
        return self._known[asked]

    def _arrival(self, asked: _Asked) -> Callable[[Printed | str], None]:
        def arrived(found: Printed | str) -> None:
            if asked in self._known:
                self._known[asked] = found
                self.refresh()

        return arrived

    def _mark(self, session: Session) -> None:
        for view, entry in ((self.base, session.base_entry), (self.active, session.active_entry)):
            if entry is None or entry.variant is None:
                continue
            names = map(lookup(entry.variant).name, shown_in(session, entry.key))
            rows = frozenset(view.side.where[name] for name in names if name in view.side.where)
            fresh = view is self.active and rows != self._selected
            view.mark(rows, reveal=fresh)
            if not fresh:
                continue
            self._selected = rows
            if rows:
                self.steps.start_from(min(rows))
                self._frame(self.steps.current, reveal=False)

    def step(self, by: int) -> None:
        """Look at the next difference from the base, or the one before; the base comes beside the text if need be."""
        if self.both.isChecked():
            self.steps.step(by)
        else:
            self.both.setChecked(True)  # the texts are aligned by a job: how many differences there are comes first

    def _frame(self, rows: range, *, reveal: bool = True) -> None:
        for view in (self.base, self.active):
            view.frame(rows, reveal=reveal and view is self.active)

    def _picker(self, *, of_base: bool) -> Callable[[str], None]:
        def picked(name: str) -> None:
            session = self._host.store.state
            entry = session.base_entry if of_base else session.active_entry
            number = lookup(entry.variant).by_name(name) if entry is not None and entry.variant is not None else None
            if entry is not None and number is not None:
                self._host.store.become("Select", edits.selected(session, entry.key, (number,)))

        return picked

    def _scroll_together(self, value: int) -> None:
        if isinstance(self._shown, Printed) and self._shown.beside is not None:
            self.base.verticalScrollBar().setValue(value)
            self.active.verticalScrollBar().setValue(value)

    def fold_all(self, folded: bool) -> None:  # a signal's slot
        """Fold every computation to its first line, or open all."""
        folds = self.active.folds
        self.active.fold(folds.all_folded() if folded else folds.none_folded())

    def _fold_together(self, folded: TextView, other: TextView) -> None:
        """Rows of the two texts stand beside each other and have to stay there."""
        if isinstance(self._shown, Printed) and self._shown.beside is not None:
            alike = folded.folds.blocks.items() & other.folds.blocks.items()
            wanted = folded.folds.folded & {first for first, _ in alike}
            other.set_folds(replace(other.folds, folded=wanted))
            if wanted != folded.folds.folded:
                folded.set_folds(replace(folded.folds, folded=wanted))

    def step_hit(self, by: int = 1) -> None:
        """Go to the next line, or the one before, that contains what is searched, on either side."""
        wanted, sides = self.search.text().lower(), [self.active.side.lines]
        if isinstance(self._shown, Printed) and self._shown.beside is not None:
            sides.append(self.base.side.lines)
        if not wanted or not sides[0]:
            return
        hits = [n for n, lines in enumerate(zip(*sides, strict=True)) if any(wanted in line.lower() for line in lines)]
        if not hits:
            self.title.setText("nothing found")
            return
        at = (bisect_right(hits, self._hit) if by > 0 else bisect_left(hits, self._hit) - 1) % len(hits)
        self._hit = hits[at]
        self.title.setText(f"line {self._hit + 1:,} of {len(sides[0]):,}, {at + 1:,} of {len(hits):,} found")
        self.base.mark(frozenset({self._hit}), reveal=False)
        self.active.mark(frozenset({self._hit}))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.search and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.step_hit(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
                return True
            if event.key() == Qt.Key.Key_Escape:
                self.active.setFocus()
                return True
        return super().eventFilter(watched, event)
