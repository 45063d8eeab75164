"""Compares results element by element: how far off, where, and whether that is what rounding explains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import PrimitiveType

_MANTISSA = {
    hlo_pb2.F64: 40,  # 52 bits: leaves room for the reference, which is no better
    hlo_pb2.C128: 40,
    hlo_pb2.BF16: 8,
    hlo_pb2.F16: 11,
    hlo_pb2.F8E5M2: 3,
    hlo_pb2.F8E5M2FNUZ: 3,
    hlo_pb2.F8E4M3: 4,
    hlo_pb2.F8E4M3FN: 4,
    hlo_pb2.F8E4M3FNUZ: 4,
    hlo_pb2.F8E4M3B11FNUZ: 4,
    hlo_pb2.F8E3M4: 5,
    hlo_pb2.F8E8M0FNU: 1,
    hlo_pb2.F6E3M2FN: 3,
    hlo_pb2.F6E2M3FN: 4,
    hlo_pb2.F4E2M1FN: 2,
}
_SINGLE = 1e-5
"""f32 sums of a few thousand terms in another order differ by about 1e-6 of the largest result (measured)."""

FLOAT64 = 1e-9
"""Largest error between two modules that are both computed in float64: rounding gives about 1e-15, in deep and badly
conditioned programs a few thousand times as much."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The element of one result array, over all devices, that is furthest off."""

    error: float
    """|found - expected| of that element over the largest |expected| of the array; infinite for NaN and a number."""
    device: int
    index: tuple[int, ...]
    found: str
    expected: str


def tolerance(element_type: PrimitiveType, group_size: int) -> float:
    """Largest error relative to the largest result that another order of additions explains; 0 for integers.

    N partial sums round N times: N·2^-m for a type of m significant bits (notes of the ring's arithmetic: measured
    at most 8.1e-3 for bf16 at N = 8, where this gives 3.1e-2).
    """
    if element_type in (hlo_pb2.F32, hlo_pb2.C64):
        return _SINGLE
    bits = _MANTISSA.get(element_type)
    return 0.0 if bits is None else max(2, group_size) * 2.0**-bits


def compare(found: list[npt.NDArray[Any]], expected: list[npt.NDArray[Any]]) -> Difference:
    """The worst difference of one result array given by device. Shapes must be equal."""
    largest = max((_largest(array) for array in expected), default=0.0)
    worst = Difference(0.0, 0, (), "", "")
    for device, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a.size == 0:
            continue
        distance = _distance(a, b)
        place = int(np.argmax(distance))
        error = float(distance.ravel()[place])
        relative = error / largest if largest > 0 and np.isfinite(error) else error
        if relative > worst.error or (device == 0 and worst.error == 0):
            index = tuple(int(k) for k in np.unravel_index(place, a.shape))
            worst = Difference(relative, device, index, _shown(a[index]), _shown(b[index]))
    return worst


def is_finite(results: list[list[npt.NDArray[Any]]]) -> bool:
    return all(bool(np.isfinite(_wide(a)).all()) for pieces in results for a in pieces)


def is_zero(results: list[list[npt.NDArray[Any]]]) -> bool:
    """Whether every floating-point result is zero everywhere; False when there is none."""
    numbers = [a for pieces in results for a in pieces if _is_number(a) and a.size]
    return bool(numbers) and all(not _wide(a).any() for a in numbers)


def _is_number(array: npt.NDArray[Any]) -> bool:
    return array.dtype.kind not in "biu" and "int" not in array.dtype.name


def _wide(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if _is_number(array):
        return array.astype(np.float64)
    return array if array.dtype.kind in "biu" else array.astype(np.int8)


def _largest(array: npt.NDArray[Any]) -> float:
    if not array.size:
        return 0.0
    if not _is_number(array):
        return 0.0  # integers are compared as they are: one off is wrong
    size = np.abs(_wide(array))
    finite = size[np.isfinite(size)]
    return float(finite.max()) if finite.size else 0.0


def _distance(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """|a - b|; infinite where only one is finite or they are different infinities, 0 where both are NaN."""
    if not _is_number(a) and not _is_number(b):
        unequal: npt.NDArray[np.float64] = (a != b).astype(np.float64)
        return unequal
    x, y = _wide(a), _wide(b)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(x - y).astype(np.float64)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    apart: npt.NDArray[np.float64] = np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))
    return apart


def _shown(value: Any) -> str:
    if not _is_number(np.asarray(value)):
        return str(value)
    return f"{complex(value):.6g}" if np.asarray(value).dtype.kind == "c" else f"{float(value):.6g}"
