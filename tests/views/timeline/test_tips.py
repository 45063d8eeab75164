"""What is cut in headers and in the column of names is told in full."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from engine.session.plan import AS_LOADED
from tests.patience import LONG
from tests.views.fake_host import host_of
from tests.views.synthetic import variant
from views.timeline.axis import TimeRange
from views.timeline.scene import AXIS
from views.timeline.stack import HEADER, RowKind
from views.timeline.tips import tip_at
from views.timeline.view import TimelineView


def test_headers_and_lanes_say_what_they_are_in_full(qtbot: QtBot) -> None:
    name = "a name that is far longer than any header has room for, " * 4
    view = TimelineView(host_of(variant(1, plan=AS_LOADED, name=name)), TimeRange())
    qtbot.addWidget(view)
    view.resize(500, 400)
    view.show()
    scene = view.scene()
    header = QPointF(200, AXIS + HEADER / 2)
    assert name.strip() in tip_at(scene, header)
    assert tip_at(scene, QPointF(4, header.y())) == "Fold or open"
    assert "Compare" in tip_at(scene, QPointF(scene.width - 4, header.y()))
    for row in scene.rows(0):
        if row.kind in (RowKind.COMPUTE, RowKind.TRANSFER, RowKind.MEMORY):
            assert tip_at(scene, QPointF(20, scene.y(row.top) + row.height / 2)) == row.label
            assert tip_at(scene, QPointF(300, scene.y(row.top) + row.height / 2)) == ""
    place = header.toPoint()
    QApplication.sendEvent(view.viewport(), QHelpEvent(QHelpEvent.Type.ToolTip, place, view.mapToGlobal(QPoint(5, 5))))
    qtbot.waitUntil(lambda: name.strip() in QToolTip.text(), timeout=LONG)
    QToolTip.hideText()
    view.close()
