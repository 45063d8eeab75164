"""What the tables say of a variant, whatever its name is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.cli.tables import show_variants
from engine.cost.costs import Origin
from tests.views.synthetic import variant


@pytest.mark.parametrize(
    ("origin", "mark"), [(Origin.MODEL, ""), (Origin.COMPILER, " [compiler]"), (Origin.MEASURED, " [measured]")]
)
def test_a_row_says_where_its_times_come_from(origin: Origin, mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    base, other = variant(name="as loaded"), variant(name="with [red] brackets")
    show_variants([base, replace(other, timeline=replace(other.timeline, source=origin))])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "brackets" in line]
    assert row.strip().startswith(f"with [red] brackets{mark}  ")
