"""A timeline of two variants on screen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QSize
from pytestqt.qtbot import QtBot

from engine.session.plan import AS_LOADED
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.timeline.axis import TimeRange
from views.timeline.view import TimelineView


@pytest.fixture
def host() -> FakeHost:
    return host_of(variant(1, plan=AS_LOADED, name="as loaded"), variant(1, overlap=True, name="decomposed"))


@pytest.fixture
def size() -> QSize:
    """Of the view, in pixels."""
    return QSize(1000, 640)


@pytest.fixture
def view(qtbot: QtBot, host: FakeHost, size: QSize) -> Iterator[TimelineView]:
    made = TimelineView(host, TimeRange())
    qtbot.addWidget(made)
    made.resize(size)
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.close()
