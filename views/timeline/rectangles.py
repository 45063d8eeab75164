"""Many rectangles in one call: a numpy array that Qt reads in place."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pyqtgraph.Qt.internals import PrimitiveArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

Floats = npt.NDArray[np.float64]


class Rectangles:
    """A reusable buffer of QRectF."""

    def __init__(self) -> None:
        self._buffer = PrimitiveArray(QRectF, 4)

    def draw(self, painter: QPainter, left: Floats, top: float, width: Floats, height: float | Floats) -> None:
        """Rectangles of one row with the painter's pen and brush."""
        if not len(left):
            return
        self._buffer.resize(len(left))
        view = self._buffer.ndarray()
        view[:, 0] = left
        view[:, 1] = top
        view[:, 2] = width
        view[:, 3] = height
        painter.drawRects(*self._buffer.drawargs())

    def draw_each(self, painter: QPainter, left: Floats, top: Floats, width: Floats, height: Floats) -> None:
        """Rectangles with a top of their own each."""
        if not len(left):
            return
        self._buffer.resize(len(left))
        view = self._buffer.ndarray()
        for column, values in enumerate((left, top, width, height)):
            view[:, column] = values
        painter.drawRects(*self._buffer.drawargs())
