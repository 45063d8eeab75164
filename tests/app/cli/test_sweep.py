"""The table of `lapstrake sweep` keeps to the page, cuts nothing, and says which file a row is of."""

from __future__ import annotations

import json

import pytest

from app.cli.main import main
from tests.places import SAMPLES

SAMPLE, OTHER = (str(SAMPLES / f"{name}.hlo") for name in ("mlp_fig3", "mlp_fig2_forward_4_f32"))


@pytest.fixture(autouse=True)
def page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def _lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["sweep", *arguments, "--quiet"]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_best_is_marked_and_limits_by_kind_are_said_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _lines(capsys, SAMPLE, "--over", "budget=1..3")
    assert [line.split()[0] for line in lines if line.endswith(" ◂")] == ["2"]
    assert [line.split()[-3:] for line in lines if line[:1] in ("1", "3")] == [["1", "of", "1"], ["2", "of", "3"]]
    assert "◂ the first within 1 % of the best" in lines
    assert "in flight at most permute=4,gather=2 of these kinds" in lines
    assert max(map(len, lines)) <= 100


def test_a_budget_of_kinds_alone_is_in_the_column(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _lines(capsys, SAMPLE, "--over", "budget=permute=4,5")
    assert any(line.endswith("2 of permute=4  ◂") for line in lines)
    assert "in flight at most permute=4,gather=2 of these kinds at 5" in lines


def test_rows_of_several_files_say_which(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _lines(capsys, SAMPLE, OTHER, "--over", "partitions")
    begin = lines.index(next(line for line in lines if line.startswith("8 ")))
    assert [line.strip() for line in lines[begin + 1 : begin + 4 : 2]] == [SAMPLE, OTHER]
    assert lines[begin + 2].startswith("4 ")
    assert main(["sweep", SAMPLE, OTHER, "--over", "partitions", "--quiet", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["file"], row["value"]) for row in rows] == [(SAMPLE, "8"), (OTHER, "4")]


def test_why_no_order_fits_is_under_the_row(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _lines(capsys, SAMPLE, "--over", "budget=1", "--memory-cap", "60MiB", "--scheduler", "bottom-up")
    begin = lines.index(next(line for line in lines if line.startswith("1 ")))
    assert lines[begin].split() == ["1", "823", "µs"]
    assert "MiB" in lines[begin + 1]
    assert not any("◂" in line for line in lines)
