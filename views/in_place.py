"""Hands many lines or rectangles to QPainter at one go, as numbers that Qt reads where they lie."""

from __future__ import annotations

from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QLineF, QRectF
from shiboken6 import Shiboken

Floats = npt.NDArray[np.float64]
_FourNumbers = TypeVar("_FourNumbers", QLineF, QRectF)


def first_of(kind: type[_FourNumbers], numbers: Floats) -> _FourNumbers:
    """The first of the values that lie in `numbers`, for QPainter's methods that take a pointer and a count.

    `numbers`: at least one row of 4 doubles, which is what Qt's QLineF and QRectF are, without gaps; they must outlive
    the value.
    """
    if numbers.dtype != np.float64 or numbers.ndim != 2 or numbers.shape[1] != 4 or not len(numbers):
        raise ValueError(f"expected rows of 4 doubles, got {numbers.dtype} {numbers.shape}")
    if not numbers.flags.c_contiguous:
        raise ValueError("expected numbers without gaps between the rows")
    return cast(_FourNumbers, Shiboken.wrapInstance(numbers.ctypes.data, kind))
