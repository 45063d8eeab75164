"""The question that comes before something that is there is written over."""

from __future__ import annotations

from PySide6.QtWidgets import QMessageBox, QWidget

_Button = QMessageBox.StandardButton


def may_replace(parent: QWidget, title: str, question: str) -> bool:
    """Whether the user says so; Cancel is what Enter and Escape choose."""
    answer = QMessageBox.question(parent, title, question, _Button.Save | _Button.Cancel, _Button.Cancel)
    return answer == _Button.Save
