"""What the tables say of a variant, whatever its name is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli.main import main
from app.cli.paper import PIPE_WIDTH
from app.cli.tables import show_trials, show_variants
from engine.cost.costs import Origin
from engine.session.plan import Plan
from engine.session.tuning import Trial, Tuning
from tests.places import SAMPLES
from tests.views.synthetic import variant

SAMPLE = str(SAMPLES / "mlp_fig3_train_2x4_bf16.hlo")


@pytest.mark.parametrize(
    ("origin", "mark"), [(Origin.MODEL, ""), (Origin.COMPILER, " [compiler]"), (Origin.MEASURED, " [measured]")]
)
def test_a_row_says_where_its_times_come_from(
    origin: Origin, mark: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    base, other = variant(name="as loaded"), variant(name="with [red] brackets")
    show_variants([base, replace(other, timeline=replace(other.timeline, source=origin))])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "brackets" in line]
    assert row.strip().startswith(f"with [red] brackets{mark}  ")


def test_plans_of_one_time_share_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    base = variant(name="as loaded")
    slower = replace(base.metrics, makespan=3 * base.metrics.makespan)
    passes = "decompose{unroll=2},async-permute"
    trials = [Trial(Plan(passes, name), base.metrics) for name in ("bottom-up", "top-down")]
    show_trials(Tuning(base, base, (*trials, Trial(Plan("", "memory"), slower)), finished=True))
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "chip's" in line]
    assert [(row[0], row[-1]) for row in rows] == [("decompose{unroll=2},", "2"), ("–", "1")]


def test_what_is_alike_and_does_not_fit_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    base = variant(name="as loaded")
    large = replace(base.metrics, peak_memory=1 << 50)
    alike = [replace(variant(name=name), metrics=large) for name in ("bottom-up", "top-down")]
    show_variants([base, *alike])
    out = capsys.readouterr().out
    assert out.count("HBM") == 1
    assert "▲ bottom-up; top-down: Its peak memory" in out
    assert len([line for line in out.splitlines() if line.strip().startswith("bottom-up; top-down  ")]) == 1


def test_collectives_that_no_pass_looked_at_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", SAMPLE, "--passes", "", "--quiet"]) == 0
    said = "10 collectives, none looked at: the plan has no decompose"
    assert said in capsys.readouterr().out
    assert main(["report", SAMPLE, "--passes", "", "--quiet", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["unjudged"], found["module"]["collectives"], found["candidates"]) == (said, 10, [])
    assert main(["report", SAMPLE, "--passes", "decompose", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unjudged"] is None


@pytest.mark.parametrize(
    "command", [("report", "--html"), ("report", "--plot"), ("sweep", "--over", "budget=1", "--plot")]
)
def test_a_missing_folder_is_named_before_the_work(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = command
    assert main([name, SAMPLE, *options, str(tmp_path / "none" / "out.svg")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, "refused before the module is read, of which there are notes"
    assert f"there is no folder {tmp_path / 'none'}" in err


WIDTHS = (60, 80, 100, 120, 200)


@pytest.mark.parametrize("width", WIDTHS)
def test_reports_keep_to_the_page_and_cut_no_figure(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is too narrow for the figures is exceeded rather than figures cut; words are wrapped."""
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["report", SAMPLE, "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= max(width, 80)
    assert not any("…" in line for line in lines)
    ends = {len(line.rstrip()) for line in lines if line.startswith(("● ", "○ "))}
    assert len(ends) == 1, "figures stand in columns"


def test_reports_that_are_piped_are_a_page_wide(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["report", SAMPLE, "--quiet"]) == 0
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= PIPE_WIDTH
