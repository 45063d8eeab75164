"""Predictions stay near what others published."""

from __future__ import annotations

import pytest

from benchmarks.published import GOAL, main, points


def test_every_point_is_near_or_says_why() -> None:
    found = list(points())
    assert len(found) >= 14
    for point in found:
        assert abs(point.error) <= GOAL or point.reason, point.case
    assert sum(abs(point.error) <= GOAL for point in found) >= len(found) - 2


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "540B inference" in capsys.readouterr().out
