from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QImage, QPainter

from views.in_place import Floats, first_of


def test_every_row_is_painted_where_it_lies() -> None:
    image = QImage(20, 20, QImage.Format.Format_Grayscale8)
    image.fill(Qt.GlobalColor.white)
    rows = np.array([[1.0, 2.0, 3.0, 4.0], [10.0, 12.0, 5.0, 6.0]])
    painter = QPainter(image)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(Qt.GlobalColor.black)
    painter.drawRects(first_of(QRectF, rows), len(rows))
    painter.end()
    black = {(x, y) for x in range(20) for y in range(20) if image.pixelColor(x, y) == Qt.GlobalColor.black}
    assert black == {(x, y) for x in range(1, 4) for y in range(2, 6)} | {
        (x, y) for x in range(10, 15) for y in range(12, 18)
    }


def test_lines_are_two_points() -> None:
    assert first_of(QLineF, np.array([[1.0, 2.0, 3.0, 4.0]])) == QLineF(1, 2, 3, 4)


@pytest.mark.parametrize(
    "numbers",
    [np.empty((0, 4)), np.zeros((2, 3)), np.zeros((2, 4), np.float32), np.zeros((2, 8))[:, ::2], np.zeros(4)],
    ids=["none", "three columns", "floats", "gaps", "one row without rows"],
)
def test_other_memory_is_refused(numbers: Floats) -> None:
    with pytest.raises(ValueError, match="expected"):
        first_of(QRectF, numbers)
