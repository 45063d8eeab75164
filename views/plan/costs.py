"""Where the times of plans come from: the model, and the files whose times replace its own, in order of precedence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.cost.costs import Origin
from engine.cost.program import UsedCosts
from engine.session import edits
from engine.session.given import GivenFile
from engine.session.session import Session
from views.icons import icon
from views.menu_text import verbatim
from views.ports import Host, follow
from views.theme import GRID, axis_font, code_font

_ORIGINS = {
    Origin.MODEL: "Lapstrake",
    Origin.COMPILER: "compiler",
    Origin.MEASURED: "measured",
    Origin.TABLE: "your table",
}
_TALLEST = 40 * GRID


@dataclass(frozen=True, slots=True)
class Rank:
    """A source of times, and what is used of it in the active variant."""

    title: str
    origin: str
    said: str
    file: GivenFile | None = None
    """None for what cannot be removed: the model, and estimates that the module carries."""
    left: tuple[str, ...] = ()
    """Names that are not used, each with the reason."""


def ranks_of(session: Session) -> tuple[Rank, ...]:
    """Sources of times, the one that wins first."""
    files = {file.path: file for file in edits.costs_of(session)}
    variant = session.active_variant
    used = variant.program.imported if variant is not None else ()
    known = {found.source for found in used}
    waiting = [Rank(file.name, "", _waiting(session), file) for path, file in files.items() if path not in known]
    ranked = [_rank(found, files.get(found.source)) for found in reversed(used)]
    return (*reversed(waiting), *ranked, Rank("model", "model", "prices everything else"))


def _rank(found: UsedCosts, file: GivenFile | None) -> Rank:
    said = f"{found.used:,} times used"
    if found.scaled:
        said += f" ({len(found.scaled):,} of them over what passes made of its einsum)"
    left = tuple(_left(found))
    if left:
        said += f", {len(left):,} not"
    title = file.name if file is not None else found.source
    return Rank(title, _ORIGINS.get(found.origin, ""), said, file, left)


def _left(found: UsedCosts) -> Iterator[str]:
    for names, why in (
        (found.unmatched, "no instruction is called that"),
        (found.callers, "a loop, call or conditional has the time of what it runs"),
        (found.inside, "lies in a fusion, which is priced whole"),
        (found.gone, "the passes of the active variant replace it, and the model prices what comes of it"),
    ):
        for name in names:
            yield f"{name}: {why}"


def _waiting(session: Session) -> str:
    entry = session.active_entry
    if entry is not None and entry.error:
        return f"not used: the active variant {'was cancelled' if entry.stopped else 'failed'}"
    if entry is not None and entry.recording is not None:
        return "prices the plans, not what was recorded"
    return "waiting for the active variant"


class CostsButton(QToolButton):
    """In the plan line: says how many files price the plans, and opens the list of them."""

    def __init__(self, host: Host, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._host = host
        self.setToolTip("Where the times of plans come from, and files whose times replace the model's")
        self.setAccessibleName("costs")
        self.clicked.connect(self.open_list)
        follow(self, host.store, self._session_changed)
        self._session_changed(host.store.state, frozenset({"entries"}))

    def open_list(self) -> None:
        """Show the list under the button."""
        CostsList(self._host, self).open_under(self)

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if "entries" in changed:
            files = edits.costs_of(session)
            self.setText(
                "model" if not files else verbatim(files[0].name) if len(files) == 1 else f"{len(files)} files"
            )


class CostsList(QFrame):
    """Sources of times, the one that wins first; files can be removed, and names that were not used are listed."""

    def __init__(self, host: Host, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self._host = host
        self.rows = QGridLayout()
        self.rows.setHorizontalSpacing(4 * GRID)
        self.rows.setVerticalSpacing(GRID)
        self.left = QPlainTextEdit()
        self.left.setReadOnly(True)  # Qt's signature
        self.left.setFont(code_font())
        self.left.setAccessibleName("times that are not used")
        self.left.setMaximumHeight(_TALLEST)
        caption = QLabel("Times by instruction name, the first that has one wins; among equals the file imported last.")
        caption.setFont(axis_font())
        more = QPushButton("Import costs …")
        more.clicked.connect(self._import)
        line = QHBoxLayout()
        line.addWidget(more)
        line.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(3 * GRID, 3 * GRID, 3 * GRID, 3 * GRID)
        layout.addWidget(caption)
        layout.addLayout(self.rows)
        layout.addWidget(self.left)
        layout.addLayout(line)
        follow(self, host.store, self._session_changed)
        self.refresh()

    def open_under(self, button: QWidget) -> None:
        self.adjustSize()
        self.move(button.mapToGlobal(QPoint(0, button.height())))
        self.show()

    def refresh(self) -> None:
        ranks = ranks_of(self._host.store.state)
        while (item := self.rows.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        for row, rank in enumerate(ranks):
            self._fill(row, rank)
        names = [name for rank in ranks for name in rank.left]
        self.left.setPlainText("\n".join(names))
        self.left.setVisible(bool(names))
        self.adjustSize()

    def _fill(self, row: int, rank: Rank) -> None:
        title = QLabel(rank.title)
        if rank.file is not None:
            title.setToolTip(rank.file.path)
        self.rows.addWidget(title, row, 0)
        for column, text in enumerate((rank.origin, rank.said), start=1):
            label = QLabel(text)
            label.setForegroundRole(label.palette().ColorRole.PlaceholderText)
            self.rows.addWidget(label, row, column)
        if rank.file is not None:
            file = rank.file
            button = QToolButton()
            button.setAutoRaise(True)  # Qt's signature
            button.setIcon(icon("x", self._host.theme.text))
            button.setToolTip(f"Do not use {file.name} any more")
            button.setAccessibleName(f"remove {file.name}")
            button.clicked.connect(lambda: self._remove(file))
            self.rows.addWidget(button, row, 3)

    def _remove(self, file: GivenFile) -> None:
        session = self._host.store.state
        kept: Sequence[GivenFile] = [other for other in edits.costs_of(session) if other != file]
        self._host.store.become(f"Remove costs {file.name}", edits.with_costs(session, kept))

    def _import(self) -> None:
        self.close()
        self._host.perform("import-costs")

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if changed & {"entries", "active"}:
            self.refresh()
