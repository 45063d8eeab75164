"""Many rectangles in one call: a numpy array that Qt reads in place."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from views.in_place import Floats, first_of


class Rectangles:
    """A reusable buffer of QRectF."""

    def __init__(self) -> None:
        self._numbers = np.empty((0, 4))

    def draw(self, painter: QPainter, left: Floats, top: float, width: Floats, height: float | Floats) -> None:
        """Rectangles of one row with the painter's pen and brush."""
        if not len(left):
            return
        view = self._rows(len(left))
        view[:, 0] = left
        view[:, 1] = top
        view[:, 2] = width
        view[:, 3] = height
        painter.drawRects(first_of(QRectF, view), len(view))

    def draw_each(self, painter: QPainter, left: Floats, top: Floats, width: Floats, height: Floats) -> None:
        """Rectangles with a top of their own each."""
        if not len(left):
            return
        view = self._rows(len(left))
        for column, values in enumerate((left, top, width, height)):
            view[:, column] = values
        painter.drawRects(first_of(QRectF, view), len(view))

    def _rows(self, count: int) -> Floats:
        if count > len(self._numbers):
            self._numbers = np.empty((count, 4))
        return self._numbers[:count]
