"""Headers that stick stay as they are, whatever is selected, hovered or critical beneath them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from engine.session import edits
from engine.session.lanes import Lanes
from engine.session.plan import AS_LOADED
from tests.views.fake_host import host_of
from tests.views.synthetic import variant
from views.timeline.axis import TimeRange
from views.timeline.scene import AXIS
from views.timeline.stack import GAP, HEADER
from views.timeline.view import TimelineView


def strip(view: TimelineView, top: int, height: int) -> QImage:
    return view.viewport().grab(QRect(0, top, view.viewport().width(), height)).toImage()


@pytest.mark.parametrize("pinned", [False, True])
def test_an_outline_stays_beneath_headers_and_pinned_lanes(qtbot: QtBot, pinned: bool) -> None:
    host = host_of(variant(1, plan=AS_LOADED, name="as loaded"), variant(1, overlap=True, name="decomposed"))
    if pinned:
        host.store.become("Pin", replace(host.store.state, lanes=Lanes(pinned=("ICI x−", "ICI y+"))))
    view = TimelineView(host, TimeRange())
    qtbot.addWidget(view)
    view.resize(1000, 180)
    view.show()
    qtbot.waitExposed(view)
    held = [row for row in view.stack.of(1) if row.pinned]
    assert bool(held) == pinned
    top, _ = view.stack.span_of(1)
    view.verticalScrollBar().setValue(top + HEADER // 2 + 4)
    scene = view.scene()
    header, *lanes = scene.rows(1)
    assert scene.y(header.top) == AXIS
    shown = host.store.state.entries[1].variant
    assert shown is not None
    timeline = shown.timeline
    elsewhere = set(timeline.instruction[timeline.lane != 0].tolist())
    compute = tuple(set(timeline.instruction[timeline.lane == 0].tolist()) - elsewhere - {-1})
    ends = [AXIS + HEADER, *(round(scene.y(row.bottom)) + GAP for row in lanes if row.pinned)]
    before, below = strip(view, AXIS, max(ends) - AXIS), strip(view, max(ends), 40)
    view.toggle_arrows()
    host.store.become("Select", edits.selected(host.store.state, "B", compute))
    if not pinned:  # the critical path may run through the pinned lane itself
        view.toggle_critical()
    assert strip(view, max(ends), 40) != below
    assert strip(view, AXIS, max(ends) - AXIS) == before
