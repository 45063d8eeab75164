"""What the program is, in a box beside the window."""

from __future__ import annotations

from importlib.metadata import version

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget


def show_about(window: QWidget) -> None:
    """The window stays usable meanwhile."""
    box = QMessageBox(window)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle("About Lapstrake")
    box.setText(f"Lapstrake {version('lapstrake')}")
    box.setInformativeText(
        "Decompose, schedule and see the collectives of an XLA job overlap with its einsums.\n"
        "Apache-2.0. Icons: Lucide, ISC."
    )
    box.setModal(False)
    box.show()
