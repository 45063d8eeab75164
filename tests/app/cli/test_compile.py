"""`lapstrake compile`, with a compiler that is not there, and with what one once predicted in its place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from app.cli import compile_command
from app.cli.main import BAD_ANSWER, BAD_USAGE, DONE, main
from engine.control import QUIET, Control
from engine.execute.compiling import Compiled
from engine.session.plan import Plan
from engine.session.production import PIN_BUDGET, Produced, Production
from engine.session.production_tuning import Searched
from engine.session.tuning import Trial
from engine.timeline.timeline import Metrics
from tests.extras import needs_libtpu
from tests.places import COMPILED, PARTITIONED
from tests.small import SMALL

NOTHING = Metrics(0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0)
MODULE = PARTITIONED / "a_v4-2x2x2_1d_1x8_d4096_L2_scan.hlo.gz"
SCHEDULE = COMPILED / "a_v4-2x2x2_1d_1x8_d4096_L2_scan_default.schedule.txt.gz"
COMMAND = ["compile", str(MODULE), "--target", "tpu:v4:2x2x2", "--quiet"]


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Plans that a compiler was asked for; its answer is a schedule from a file."""
    asked: list[Plan] = []

    def predict(
        production: Production, plan: Plan, *, scheduled_only: bool, control: Control = QUIET
    ) -> tuple[list[Produced], list[str]]:
        asked.append(plan)
        text = gzip.decompress(SCHEDULE.read_bytes()).decode()
        made = Compiled(
            production.target, "" if scheduled_only else "HloModule optimised", text, 1.5, {"libtpu": "0.0.51"}
        )
        return [production.judged(made, "TPU compiler, default")], ["ours: no hook"]

    monkeypatch.setattr(compile_command, "produce", predict)
    monkeypatch.setattr(compile_command, "check_installed", lambda target: None)
    monkeypatch.setattr(compile_command, "first_plan", lambda *_, **__: Searched((), finished=True))
    return asked


def test_a_table_of_variants(plans: list[Plan], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([*COMMAND, "-o", str(tmp_path / "made")]) == DONE
    out = capsys.readouterr().out
    assert "TPU compiler, default" in out
    assert "libtpu 0.0.51" in out
    assert "no time here was measured" in out
    assert plans == [compile_command.DEFAULT_PLAN]
    made = tmp_path / "made"
    assert sorted(f.name for f in made.iterdir()) == ["TPU-compiler-default.hlo", "TPU-compiler-default.schedule.txt"]
    assert (made / "TPU-compiler-default.hlo").read_text() == "HloModule optimised"


@needs_libtpu
def test_the_tpu_compiler_without_a_tpu(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The compiler itself, in its process: what continuous integration installs the extra for. 3 s."""
    (tmp_path / "small.hlo").write_text(SMALL)
    command = ["compile", str(tmp_path / "small.hlo"), "--target", "tpu:v4:2x2x2", "--json", "-o", str(tmp_path)]
    assert main(command) == DONE
    said = capsys.readouterr()
    assert "inferred" not in said.err
    report = json.loads(said.out)["compiler"]
    assert report["versions"]["libtpu"]
    assert [text for text in report["missing"] if "nothing in the module is asynchronous" not in text] == []
    whole, decomposed, ours, pinned = report["variants"]
    assert whole["name"] == "TPU compiler, without decomposition"
    assert (whole["permutes_each_way"], decomposed["permutes_each_way"]) == (0, 1)
    assert pinned["pinned"]
    assert pinned["cycles"] <= ours["cycles"]
    assert all(variant["cycles"] > variant["waiting_cycles"] > 0 for variant in report["variants"])
    text = (tmp_path / "TPU-compiler-without-decomposition.hlo").read_text()
    assert "is_scheduled=true" in text
    assert "all-gather(" in text


def test_json(plans: list[Plan], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--json", "--scheduler", "improve", "--budget", "3"]) == DONE
    report = json.loads(capsys.readouterr().out)
    assert report["schema"] == 1
    assert report["compiler"]["target"] == "tpu:v4:2x2x2"
    assert report["compiler"]["missing"] == ["ours: no hook"]
    (variant,) = report["compiler"]["variants"]
    assert variant["cycles"] > variant["waiting_cycles"] >= 0
    assert variant["cycles_per_microsecond"] == 1050
    assert variant["counts"] == (variant["permutes_each_way"] <= 1)
    assert report["variants"][0]["source"] == "compiler"
    assert (plans[0].passes, plans[0].scheduler, str(plans[0].budget)) == ("flatten,decompose", "improve", "3")


def test_where_no_plan_is_named_the_fastest_of_a_few_is_shown(
    plans: list[Plan], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    best = Plan("flatten", "as-loaded", PIN_BUDGET)
    trials = (Trial(best, NOTHING), Trial(Plan("flatten,decompose", "bottom-up"), None, "refused"))
    monkeypatch.setattr(compile_command, "first_plan", lambda *_, **__: Searched(trials, finished=True))
    assert main(COMMAND) == DONE
    assert "2 plans tried, 1 not possible\n" in capsys.readouterr().out
    assert main([*COMMAND, "--scheduler", "memory"]) == DONE
    assert "plans tried" not in capsys.readouterr().out
    assert plans == [best, Plan("flatten,decompose", "memory", PIN_BUDGET)]


def test_where_the_compiler_needs_no_plan_that_is_said(
    plans: list[Plan], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The compiler in place of the real one predicts its default alone, so that nothing of ours is faster."""
    trials = (Trial(Plan("", "as-loaded", PIN_BUDGET), NOTHING), Trial(Plan("flatten", "bottom-up"), None, "refused"))
    monkeypatch.setattr(compile_command, "first_plan", lambda *_, **__: Searched(trials, finished=True, clock=1050.0))
    assert main(COMMAND) == DONE
    out = capsys.readouterr().out
    assert "nothing is gained: TPU compiler, default takes" in out
    assert "none of ours was predicted" in out
    assert 'the fastest of ours: --passes "" --scheduler as-loaded' in out
    assert "not possible" in out
    assert main([*COMMAND, "--json"]) == DONE
    assert json.loads(capsys.readouterr().out)["compiler"]["search"]["nothing_gained"] is True


def test_nothing_predicted_is_a_bad_answer(
    plans: list[Plan], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compile_command, "produce", lambda *_, **__: ([], ["nothing asynchronous"]))
    assert main(COMMAND) == BAD_ANSWER
    assert "predicted no schedule" in capsys.readouterr().out
    assert not plans


def test_a_missing_compiler_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(COMMAND) == BAD_USAGE
    assert "pip install 'lapstrake[tpu]'" in capsys.readouterr().err


def test_a_target_of_another_size_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND[:2], "--target", "tpu:v4:2x2x1", "--quiet"]) == BAD_USAGE
    assert "8 devices" in capsys.readouterr().err


def test_a_search_says_what_it_tried(
    plans: list[Plan], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    best = Plan("decompose{gate=off}", "top-down", PIN_BUDGET)
    trials = (Trial(best, NOTHING), Trial(Plan("flatten", "top-down"), None, "refused"))
    monkeypatch.setattr(compile_command, "tune_production", lambda *_, **__: Searched(trials, finished=False))
    assert main([*COMMAND, "--tune"]) == DONE
    out = capsys.readouterr().out
    assert "2 plans tried, 1 not possible, stopped at the time limit" in out
    assert '--passes "decompose{gate=off}" --scheduler top-down' in out
    assert plans == [best]
    assert main([*COMMAND, "--tune", "--json"]) == DONE
    search = json.loads(capsys.readouterr().out)["compiler"]["search"]
    assert [trial["why_not"] for trial in search["trials"]] == ["", "refused"]
    assert main([*COMMAND, "--tune", "--passes", "decompose"]) == BAD_USAGE
    assert "--passes" in capsys.readouterr().err
