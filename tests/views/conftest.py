"""Fixtures of the window's tests: no test may leave widgets, timers or subscriptions behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QTimer
from PySide6.QtWidgets import QApplication


@pytest.fixture(autouse=True)
def no_leaks(qapp: QApplication) -> Iterator[None]:
    """Fails a test that leaves a window, a running timer or a thread."""
    threads = set(threading.enumerate())
    yield
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    QCoreApplication.processEvents()
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    left = [w for w in qapp.topLevelWidgets() if w.isVisible()]
    timers = [t for w in qapp.topLevelWidgets() for t in w.findChildren(QTimer) if t.isActive()]
    for widget in qapp.topLevelWidgets():
        widget.close()
        widget.deleteLater()
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert not left, f"widgets left open: {left}"
    assert not timers, f"timers left running: {timers}"
    assert not set(threading.enumerate()) - threads
