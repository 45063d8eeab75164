"""Names of files that were typed without the ending that says what they hold."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QMessageBox, QWidget

_Button = QMessageBox.StandardButton


def ended(window: QWidget, path: str, ending: str) -> str:
    """`path` with an ending; empty where a file of that name exists and stays: the dialog asked about the other one."""
    if Path(path).suffix:
        return path
    whole = Path(f"{path}{ending}")
    if not whole.exists():
        return str(whole)
    said = f"{whole.name} exists already. Overwrite it?"
    answer = QMessageBox.question(window, "Exists already", said, _Button.Save | _Button.Cancel, _Button.Cancel)
    return str(whole) if answer == _Button.Save else ""
