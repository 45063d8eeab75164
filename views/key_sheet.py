"""The sheet of keys and gestures, made from the table of actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QTextBrowser, QVBoxLayout, QWidget

from views.theme import GRID, Theme

Rows = Sequence[tuple[str, Sequence[str]]]
"""What is done, with the keys or gestures that do it, each alone."""

GESTURES: Rows = (
    ("Zoom at the mouse", ("Ctrl + wheel",)),
    ("Earlier, later", ("Shift + wheel", "Shift + drag", "middle drag")),
    ("Scroll the variants", ("wheel",)),
    ("Select", ("click",)),
    ("Add to the selection", ("Ctrl + click",)),
    ("Select and zoom", ("double click",)),
    ("Measure a stretch of time", ("drag over the lanes",)),
    ("Make a variant active", ("click its header",)),
    ("Compare the others with it", ("click its pin",)),
    ("Move, pin or hide a lane", ("drag its name", "right click on it")),
    ("End measuring, select nothing", ("Escape",)),
)

_COLUMNS = 3


class KeySheet(QDialog):
    """What keys do, by where they work."""

    def __init__(self, groups: Mapping[str, Rows], theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Keys and gestures")
        self.text = QTextBrowser()
        self.text.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.text.setHtml(_html({**groups, "Mouse, in the timelines": GESTURES}, theme))
        self.text.setAccessibleName("keys and gestures")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(2 * GRID, 0, 0, 0)
        layout.addWidget(self.text)
        self.resize(300 * GRID, 180 * GRID)


def columns_of(groups: Mapping[str, Rows], count: int) -> list[dict[str, Rows]]:
    """Groups in their order, in columns of about the same height."""
    columns: list[dict[str, Rows]] = [{} for _ in range(count)]
    share = sum(len(rows) + 2 for rows in groups.values()) / count
    before = 0.0
    for heading, rows in groups.items():
        middle = before + (len(rows) + 2) / 2
        columns[min(count - 1, int(middle / share))][heading] = rows
        before += len(rows) + 2
    return columns


def _html(groups: Mapping[str, Rows], theme: Theme) -> str:
    cells = "".join(
        f"<td valign=top width='{100 // _COLUMNS}%'>{''.join(_table(*group, theme) for group in column.items())}</td>"
        for column in columns_of(groups, _COLUMNS)
    )
    return f"<table width='100%'><tr>{cells}</tr></table>"


def _table(heading: str, rows: Rows, theme: Theme) -> str:
    lines = "".join(
        f"<tr><td style='padding:2px 12px 2px 0'>{escape(what)}</td><td style='padding:2px 0'>{_caps(keys, theme)}</td>"
        "</tr>"
        for what, keys in rows
    )
    return f"<h4>{escape(heading)}</h4><table>{lines}</table>"


def _caps(keys: Sequence[str], theme: Theme) -> str:
    """Keys as caps, so that commas, dots and plus signs are seen as keys."""
    caps = (f"<b style='background:{theme.band}'>&nbsp;{escape(key)}&nbsp;</b>" for key in keys)
    return f" <span style='color:{theme.muted}'>or</span> ".join(caps)
