"""The HLO tab: the active variant's module, or the base's and the active one's side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from engine.session import edits
from engine.session.matching import shown_in
from engine.session.session import Entry, Session
from engine.session.variant import Variant
from views.hlo_text.lines import Pair, definitions, side_by_side
from views.hlo_text.text_view import TextView
from views.ports import Host, follow
from views.theme import GRID


class HloPane(QWidget):
    """Text comes from a job, when the tab is looked at; it is kept for the modules seen last."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self._texts: dict[Variant, Sequence[str] | str] = {}
        self._shown: tuple[Variant | None, Variant | None] = (None, None)
        self._rows: tuple[Pair, ...] = ()
        self._where: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {})
        self._hit = -1
        self.left, self.right = TextView(host), TextView(host)
        self.left.setAccessibleName("HLO text of the base")
        self.message = QLabel()
        self.message.setMargin(3 * GRID)
        self.message.setWordWrap(True)
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.both = QCheckBox("side by side with the base")
        self.both.toggled.connect(lambda _: self.refresh())
        self.search = QLineEdit()
        self.search.setPlaceholderText("find in the text; Enter for the next")
        self.search.setClearButtonEnabled(True)
        self.search.setMaximumWidth(80 * GRID)
        self.search.returnPressed.connect(self.find_next)
        self.title = QLabel()
        line = QHBoxLayout()
        line.setContentsMargins(2 * GRID, GRID, 2 * GRID, 0)
        line.addWidget(self.title, 1)
        line.addWidget(self.both)
        line.addWidget(self.search)
        texts = QHBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(self.left)
        texts.addWidget(self.right)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(line)
        layout.addWidget(self.message)
        layout.addLayout(texts, 1)
        for view, side in ((self.left, "base"), (self.right, "active")):
            view.picked.connect(self._picker(side))
        left, right = self.left.verticalScrollBar(), self.right.verticalScrollBar()
        left.valueChanged.connect(lambda value: right.setValue(value) if self._rows else None)
        right.valueChanged.connect(lambda value: left.setValue(value) if self._rows else None)
        follow(self, host.store, self._session_changed)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        super().showEvent(event)
        self.refresh()

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"path"}:
            self._texts.clear()
        if not self.isVisible():
            return
        if changed & {"entries", "active", "base", "path"}:
            self.refresh()
        elif "selection" in changed:
            self._mark(session)

    def refresh(self) -> None:
        """Show the text of what is active now, asking for it if it is not there."""
        session = self._host.store.state
        active, base = session.active_entry, session.base_entry
        both = self.both.isChecked() and base is not active
        sides: tuple[Entry | None, Entry | None] = (base if both else None, active)
        variants = (sides[0].variant if sides[0] is not None else None, active.variant if active is not None else None)
        texts = [self._text(v) if v is not None else () for v in variants]
        trouble = next((t for t in texts if isinstance(t, str)), "")
        if active is None or active.variant is None:
            trouble = "Open a module to read its HLO." if active is None else "Waiting for the active variant."
        self.message.setText(trouble)
        self.message.setVisible(bool(trouble))
        self.right.setVisible(not trouble)
        self.left.setVisible(not trouble and sides[0] is not None)
        self.title.setText(_title(sides))
        if trouble or variants == self._shown:
            self._mark(session)
            return
        self._shown = variants
        left, right = ([] if isinstance(t, str) else t for t in texts)
        self._lay_out(left, right, both=sides[0] is not None)
        self._mark(session)

    def _text(self, variant: Variant) -> Sequence[str] | str:
        """Lines, or why there are none (yet)."""
        known = self._texts.get(variant)
        if known is not None:
            return known
        self._texts[variant] = "Printing …"
        self._shown = (None, None)

        def arrived(lines: Sequence[str] | str) -> None:
            self._texts[variant] = lines
            self.refresh()

        self._host.print_text(variant, arrived)
        return self._texts[variant]

    def _lay_out(self, left: Sequence[str], right: Sequence[str], *, both: bool) -> None:
        self._rows = side_by_side(left, right) if both else ()
        if not both:
            self.left.set_lines(())
            self.right.set_lines(right)
            self._where = ({}, definitions(right))
            return
        sides = (
            [left[row.left] if row.left >= 0 else "" for row in self._rows],
            [right[row.right] if row.right >= 0 else "" for row in self._rows],
        )
        changed = [(n, row) for n, row in enumerate(self._rows) if not row.equal]
        self.left.set_lines(
            sides[0],
            {n: "changed" if r.right >= 0 else "removed" for n, r in changed if r.left >= 0},
            [r.left for r in self._rows],
        )
        self.right.set_lines(
            sides[1],
            {n: "changed" if r.left >= 0 else "added" for n, r in changed if r.right >= 0},
            [r.right for r in self._rows],
        )
        self._where = (definitions(sides[0]), definitions(sides[1]))

    def _mark(self, session: Session) -> None:
        for view, where, entry in (
            (self.left, self._where[0], session.base_entry),
            (self.right, self._where[1], session.active_entry),
        ):
            if entry is None or entry.variant is None:
                continue
            found = entry.variant.program.module.instructions
            names = (found[i].name for i in shown_in(session, entry.key) if i in found)
            view.mark(frozenset(where[name] for name in names if name in where), reveal=view is self.right)

    def _picker(self, side: str) -> Callable[[str], None]:
        def picked(name: str) -> None:
            session = self._host.store.state
            entry = session.base_entry if side == "base" else session.active_entry
            if entry is None or entry.variant is None:
                return
            found = entry.variant.program.module.by_name.get(name)
            if found is not None:
                self._host.store.become("Select", edits.selected(session, entry.key, (found.id,)))

        return picked

    def find_next(self) -> None:
        """Go to the next line that contains what is searched."""
        wanted = self.search.text().lower()
        lines = self.right.lines
        if not wanted or not lines:
            return
        order = (*range(self._hit + 1, len(lines)), *range(self._hit + 1))
        found = next((n for n in order if wanted in lines[n].lower()), None)
        self.title.setText("nothing found" if found is None else f"line {found + 1:,} of {len(lines):,}")
        if found is not None:
            self._hit = found
            self.right.mark(frozenset({found}))


def _title(sides: tuple[Entry | None, Entry | None]) -> str:
    return "   |   ".join(f"{e.key}  {e.title}" for e in sides if e is not None)
