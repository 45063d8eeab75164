"""The strip under the timelines shows what they show, and as faint where that is of an earlier plan."""

from __future__ import annotations

from dataclasses import replace

from pytestqt.qtbot import QtBot

from engine.session.plan import Plan
from tests.views.fake_host import host_of
from tests.views.synthetic import variant
from views.timeline.axis import TimeRange
from views.timeline.overview import Overview


def test_an_earlier_plan_is_drawn_faint(qtbot: QtBot) -> None:
    host = host_of(variant(1))
    time_range = TimeRange()
    overview = Overview(host, time_range)
    qtbot.addWidget(overview)
    overview.resize(600, 24)
    fresh = overview.grab().toImage()
    session = host.store.state
    (entry,) = session.entries
    host.store.reset(replace(session, entries=(replace(entry, plan=Plan("decompose", "top-down")),)))
    assert overview.grab().toImage() != fresh
    host.store.reset(session)
    assert overview.grab().toImage() == fresh
