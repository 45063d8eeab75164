"""Errors relative to the largest value, with their place."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from engine.execute.comparing import compare, tolerance
from engine.hlo import hlo_pb2


def test_the_worst_element_over_all_devices() -> None:
    expected = [np.zeros((2, 3)), np.full((2, 3), 4.0)]
    found = [array.copy() for array in expected]
    found[0][1, 2] = 0.5
    found[1][0, 1] = 5.0
    worst = compare(found, expected)
    assert (worst.error, worst.device, worst.index) == (0.25, 1, (0, 1))
    assert (worst.found, worst.expected) == ("5", "4")


@pytest.mark.parametrize(
    ("found", "expected", "error"),
    [
        (np.nan, np.nan, 0.0),
        (np.inf, np.inf, 0.0),
        (np.inf, -np.inf, math.inf),
        (np.nan, 1.0, math.inf),
        (1.0, np.inf, math.inf),
        (0.0, -0.0, 0.0),
    ],
)
def test_numbers_that_are_none(found: float, expected: float, error: float) -> None:
    assert compare([np.array([found, 2.0])], [np.array([expected, 2.0])]).error == error


def test_all_zero_expected_is_absolute() -> None:
    assert compare([np.array([0.25])], [np.array([0.0])]).error == 0.25


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_, ml_dtypes.int4])
def test_integers_differ_or_not(dtype: npt.DTypeLike) -> None:
    a, b = np.array([0, 1, 1]).astype(dtype), np.array([0, 1, 0]).astype(dtype)
    assert compare([a], [a]).error == 0.0
    assert compare([a], [b]).error == 1.0
    assert compare([a], [b]).index == (2,)


def test_low_precision_and_empty_arrays() -> None:
    a = np.array([1.0, 2.0]).astype(ml_dtypes.bfloat16)
    assert compare([a], [a.astype(np.float64) + 0.5]).error == pytest.approx(0.2)
    assert compare([np.zeros((0, 3))], [np.zeros((0, 3))]).error == 0.0
    assert compare([np.array([1 + 1j])], [np.array([1 + 2j])]).error == pytest.approx(1 / math.sqrt(5))


def test_tolerances() -> None:
    assert tolerance(hlo_pb2.F32, 64) == 1e-5
    assert tolerance(hlo_pb2.BF16, 8) == 8 / 256
    assert tolerance(hlo_pb2.BF16, 1) == 2 / 256
    assert tolerance(hlo_pb2.S32, 8) == tolerance(hlo_pb2.PRED, 8) == 0.0
    assert tolerance(hlo_pb2.F64, 8) < 1e-10
