"""Fixtures of the window's tests: no test may leave widgets, timers or subscriptions behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QTimer
from PySide6.QtWidgets import QApplication

from engine.session.plan import AS_LOADED
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import BEST, variant


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


@pytest.fixture
def host() -> FakeHost:
    """A module as loaded, and decomposed."""
    return host_of(variant(1, plan=AS_LOADED, name="as loaded"), variant(1, overlap=True, plan=BEST, name="decomposed"))
