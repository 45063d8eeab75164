"""One kind of file of the active variant: what is in it, where it goes, and how that ended."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.export.contents import FORMATS
from engine.session.commands import export_command
from views.export.outcome_text import OutcomeText
from views.export.permission import may_replace
from views.export.port import Exporter
from views.ports import Host
from views.theme import GRID


class FilePage(QWidget):
    """Follows the format that is chosen and the variant that is active.

    A path that was typed stays as long as its module is the active one; what it ends in follows the format.
    """

    def __init__(self, host: Host, exporter: Exporter) -> None:
        super().__init__()
        self._host = host
        self._exporter = exporter
        self._format = next(iter(FORMATS))
        self._suggested = ""
        self._of = ""
        """Path of the module that the path in the field was given for."""
        self.what = QLabel()
        self.what.setWordWrap(True)
        self.path = QLineEdit()
        self.path.setAccessibleName("file to write")
        self.path.returnPressed.connect(self._export)
        self.browse = QPushButton("Browse …")
        self.browse.clicked.connect(self._ask)
        self.export = QPushButton("Export")
        self.export.clicked.connect(self._export)
        self.copy = QPushButton("Copy as command line")
        self.copy.clicked.connect(lambda: exporter.copy(self.command()))
        self.outcome = OutcomeText(host)
        line = QHBoxLayout()
        line.addWidget(QLabel("to"))
        line.addWidget(self.path, 1)
        line.addWidget(self.browse)
        buttons = QHBoxLayout()
        buttons.addWidget(self.export)
        buttons.addWidget(self.copy)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(3 * GRID, 2 * GRID, 3 * GRID, 2 * GRID)
        column.setSpacing(2 * GRID)
        column.addWidget(self.what)
        column.addLayout(line)
        column.addLayout(buttons)
        column.addWidget(self.outcome)
        column.addStretch(1)

    def choose(self, to: str) -> None:
        """Show another format."""
        before, self._format = FORMATS[self._format].suffix, to
        path = self.path.text()
        if path.endswith(before) and path != self._suggested:
            self.path.setText(path.removesuffix(before) + FORMATS[to].suffix)
        self.refresh()

    def refresh(self) -> None:
        kind, entry = FORMATS[self._format], self._host.store.state.active_entry
        writing = self._exporter.writing
        mine = writing.format == self._format
        self.what.setText(f"<b>{kind.title}</b> of {_named(entry.key if entry else '')}. {kind.holds}")
        suggested = self._exporter.suggested(f".{entry.key}{kind.suffix}") if entry is not None else ""
        module = self._host.store.state.path
        if module != self._of or self.path.text() in ("", self._suggested):
            self.path.setText(suggested)
        self._of, self._suggested = module, suggested
        ready = entry is not None and entry.variant is not None and not entry.stale
        self.export.setEnabled(ready and not writing.running)
        self.export.setText("Exporting …" if writing.running and mine else "Export")
        self.export.setToolTip("" if ready else "Waiting for the active variant" if entry else "Open a module first")
        for widget in (self.path, self.browse, self.copy):
            widget.setEnabled(entry is not None)
        self.outcome.show_outcome(writing.outcome if mine else None)

    def command(self) -> str:
        """The command that writes the same file."""
        session = self._host.store.state
        entry = session.active_entry
        return "" if entry is None else export_command(session.path, entry, self._format, self.path.text())

    def _export(self) -> None:
        path = self.path.text().strip()
        if self.export.isEnabled() and path and self._may_write(path):
            self._exporter.write(self._format, path)

    def _may_write(self, path: str) -> bool:
        """Ask whether a file that is there may go; what must not go at all the exporter refuses without asking."""
        if not Path(path).is_file() or self._exporter.kept(path):
            return True
        question = f"{Path(path).name} is there already. Write the {FORMATS[self._format].title} over it?"
        return may_replace(self, "Export", question)

    def _ask(self) -> None:
        kind = FORMATS[self._format]
        path, _ = QFileDialog.getSaveFileName(
            self, f"Export {kind.title}", self.path.text(), f"{kind.title} (*{kind.suffix});;All files (*)",
            options=QFileDialog.Option.DontConfirmOverwrite,
        )  # fmt: skip
        if path:
            self.path.setText(path)


def _named(key: str) -> str:
    return key or "the active variant"
