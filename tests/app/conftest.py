"""The whole window for tests, with real workers; it asks nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from app.settings import Settings


@pytest.fixture(autouse=True)
def _discard(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not saved is given up: nobody is there to answer."""
    monkeypatch.setattr(QMessageBox, "question", lambda *_: QMessageBox.StandardButton.Discard)


@pytest.fixture
def explorer(qtbot: QtBot, tmp_path: Path) -> Iterator[Explorer]:
    """A window with settings of its own."""
    settings = Settings(tmp_path / "window.ini")
    settings.theme = "light"
    made = Explorer(settings)
    made.show()
    qtbot.waitExposed(made.window)
    yield made
    made.window.close()
    made.window.deleteLater()
    made.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
