"""Light or dark: what the user chose, or what the system says."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication

from app.settings import Settings
from views.theme import DARK, Theme, chosen_theme, dress


class Looks(QObject):
    """Dresses the application, and again whenever another theme is chosen."""

    def __init__(self, settings: Settings, parent: QObject) -> None:
        super().__init__(parent)
        self._settings = settings
        self.theme: Theme = chosen_theme(settings.theme)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._look)
        dress(self.theme)

    def choose(self, choice: str) -> None:
        """``light``, ``dark`` or ``system``."""
        self._settings.theme = choice
        self._look()

    def toggle(self) -> None:
        self.choose("light" if self.theme is DARK else "dark")

    def _look(self) -> None:
        theme = chosen_theme(self._settings.theme)
        if theme is not self.theme:
            self.theme = theme
            dress(theme)
