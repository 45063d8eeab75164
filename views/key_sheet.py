"""The sheet of keys and gestures, made from the table of actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QTextBrowser, QVBoxLayout, QWidget

from views.theme import GRID

GESTURES = (
    ("zoom at the mouse", "Ctrl + wheel"),
    ("earlier, later", "Shift + wheel, Shift + drag, middle drag"),
    ("scroll the variants", "wheel"),
    ("select; add to the selection", "click; Ctrl + click"),
    ("select and zoom", "double click"),
    ("measure a stretch of time", "drag over the lanes"),
    ("make a variant active", "click its header"),
    ("compare the others with it", "click its pin"),
    ("end measuring, select nothing", "Escape"),
)


class KeySheet(QDialog):
    """What keys do, by where they work."""

    def __init__(self, groups: Mapping[str, Sequence[tuple[str, str]]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Keys and gestures")
        text = QTextBrowser()
        text.setFrameShape(QTextBrowser.Shape.NoFrame)
        text.setHtml(_html({**groups, "Mouse, in the timelines": GESTURES}))
        text.setAccessibleName("keys and gestures")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(text)
        self.resize(190 * GRID, 160 * GRID)


def _html(groups: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    columns, lengths = ["", ""], [0, 0]
    for title, rows in groups.items():
        shorter = lengths.index(min(lengths))
        lengths[shorter] += len(rows) + 2
        lines = "".join(
            f"<tr><td style='padding:1px 16px 1px 0'>{escape(what)}</td><td><b>{escape(keys)}</b></td></tr>"
            for what, keys in rows
        )
        columns[shorter] += f"<h4>{escape(title)}</h4><table>{lines}</table>"
    return f"<table width='100%'><tr><td valign=top>{columns[0]}</td><td valign=top>{columns[1]}</td></tr></table>"
