"""Where something stands in a picture, and places to come back to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF

from engine.layout.picture import Picture
from views.graph.folds import Key


@dataclass(frozen=True)
class Bookmark:
    """What was open, and what was looked at."""

    opened: frozenset[Key]
    centre: tuple[float, float]
    scale: float


def head_of(picture: Picture | None, item: int | None) -> QPointF | None:
    """The middle of a node's upper edge, None where it is not shown."""
    position = picture.position(item) if picture is not None and item is not None else None
    if picture is None or position is None:
        return None
    return QPointF(float(picture.left[position] + picture.width[position] / 2), float(picture.top[position]))


def first_of(picture: Picture) -> QPointF:
    """Where reading begins: the head of the node in the uppermost row that is nearest to the middle."""
    shown = np.flatnonzero(~picture.opened)
    heads = picture.left[shown] + picture.width[shown] / 2
    row = picture.top[shown] <= picture.top[shown].min() + 1
    best = shown[np.argmin(np.where(row, np.abs(heads - picture.width[0] / 2), np.inf))]
    return QPointF(float(picture.left[best] + picture.width[best] / 2), float(picture.top[best]))


def nearest(picture: Picture, point: QPointF) -> int:
    """The item of the node that is nearest to a point; frames do not count."""
    far = np.abs(picture.left + picture.width / 2 - point.x()) + np.abs(picture.top - point.y())
    return int(picture.items[np.argmin(np.where(picture.opened, np.inf, far))])


def any_in(picture: Picture, area: QRectF) -> bool:
    """Whether any node is in an area."""
    seen = (picture.left < area.right()) & (picture.left + picture.width > area.left()) & ~picture.opened
    seen &= (picture.top < area.bottom()) & (picture.top + picture.height > area.top())
    return bool(seen.any())
