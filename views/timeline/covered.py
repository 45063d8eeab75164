"""What headings that stick cover of the lanes: outlines and arrows of lanes that scrolled away stay beneath them."""

from __future__ import annotations

from PySide6.QtCore import QRect
from PySide6.QtGui import QRegion

from views.timeline.scene import Scene
from views.timeline.stack import GAP, HEADER, Row, RowKind


def uncovered(scene: Scene) -> QRegion:
    """The lanes without the headers over them, where those are seen."""
    region = QRegion(scene.lanes)
    for number in range(len(scene.session.entries)):
        for row in scene.rows(number):
            if row.kind == RowKind.HEADER:
                region -= _strip(scene, row, HEADER)
    return region


def uncovered_of(scene: Scene, lanes: QRegion, place: Row) -> QRegion:
    """`lanes` as far as a row may draw on them: one that scrolls lies beneath the pinned ones of its entry."""
    if place.pinned:
        return lanes
    for row in scene.rows(place.entry):
        if row.pinned:
            lanes = lanes - _strip(scene, row, row.height + GAP)
    return lanes


def _strip(scene: Scene, row: Row, height: int) -> QRegion:
    return QRegion(QRect(0, round(scene.y(row.top)), scene.width, height))
