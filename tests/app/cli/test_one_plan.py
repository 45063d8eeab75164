"""What no plan is named for has one answer: every command takes the best plan of the report, and says so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.cli.main import main
from engine.quantities import time_text
from engine.session.plan import WHOLE
from tests.places import SAMPLES

SAMPLE = str(SAMPLES / "mlp_fig3.hlo")
"""Under top-down a plan leaves a collective whole that the faster one, under bottom-up, decomposes."""
BEST = "decomposed, bottom-up"
CHIP = ("--chip", "tpu-v4")


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["report", SAMPLE, *CHIP, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def makespan_of(report: dict[str, Any], name: str) -> float:
    return next(float(v["makespan_us"]) for v in report["variants"] if v["name"] == name)


def test_the_table_of_collectives_is_the_best_variants(report: dict[str, Any], tmp_path: Path) -> None:
    assert report["candidates_of"] == BEST
    assert makespan_of(report, BEST) == min(v["makespan_us"] for v in report["variants"])
    verdicts = {c["id"]: c["chosen"] for c in report["candidates"]}
    assert verdicts == {"all-reduce": True, "all-gather": True, "all-gather.1": False, "all-gather.2": False}
    html = tmp_path / "report.html"
    assert main(["report", SAMPLE, *CHIP, "--html", str(html), "--quiet"]) == 0
    assert f"Collectives: 4, 2 decomposed in “{BEST}”" in html.read_text("utf-8")


def test_the_heading_and_the_notes_name_their_variant(
    report: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    html = tmp_path / "report.html"
    assert main(["report", SAMPLE, *CHIP, "--html", str(html)]) == 0
    said = capsys.readouterr()
    assert f"4 collectives, 2 decomposed in '{BEST}', 552 µs" in said.out
    whole = "all-gather is left whole: "
    for text in ("\n".join(report["notes"]), said.err, html.read_text("utf-8")):
        assert text.count(whole) == text.count(f"decomposed, top-down: {whole}") == 1


@pytest.mark.parametrize(
    "command",
    [
        ["explain", SAMPLE, "all-gather"],
        ["export", SAMPLE, "--to", "hlo", "-o", "-"],
        ["sweep", SAMPLE, "--over", "budget=8"],
    ],
    ids=lambda command: str(command[0]),
)
def test_commands_without_a_plan_take_the_reports_best(command: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*command, *CHIP]) == 0
    assert f"No plan was named; this is the best of the report's, '{BEST}', 552 µs: decompose" in capfd.readouterr().err


def test_where_decomposing_loses_nothing_is_said_to_be_decomposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is decomposed is faster than as loaded here, and slower than the module whole with its collectives
    asynchronous: heading, JSON, HTML and the commands all say that this is the best."""
    sample, html = [str(SAMPLES / "mlp_fig3_forward_2x2_f32.hlo"), *CHIP], tmp_path / "report.html"
    assert main(["report", *sample, "--json", "--html", str(html)]) == 0
    found = json.loads(capsys.readouterr().out)
    times = {v["name"]: v["makespan_us"] for v in found["variants"]}
    assert found["best"] == WHOLE
    assert times["as loaded"] > times[found["candidates_of"]] > times[WHOLE] == min(times.values())
    took = time_text(round(times[WHOLE] * 1e6))
    count = len(found["candidates"])
    assert f"Collectives: {count}, none decomposed in the best plan, “{WHOLE}”, {took}; the verd" in html.read_text(
        "utf-8"
    )
    assert main(["report", *sample, "--quiet"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        f"none decomposed in the best plan, '{WHOLE}', {took}; the verdicts are of '{found['candidates_of']}'" in said
    )
    assert main(["explain", *sample, "all-gather"]) == 0
    said = capsys.readouterr().err
    assert f"the best of the report's, '{WHOLE}', {took}" in said
    assert re.search("It decomposes nothing; '.*' takes", said)


def test_where_the_best_is_pruned_explain_is_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows that the gate decomposes and the report leaves whole."""
    sample = str(SAMPLES / "mlp_fig3_train_4x2_f32.hlo")
    assert main(["report", sample, *CHIP, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["explain", sample, found["candidates"][0]["collective"], *CHIP]) == 0
    said = capsys.readouterr().err
    assert f"'{found['candidates_of']}'" in said
    passes = next(v["passes"] for v in found["variants"] if v["name"] == found["candidates_of"])
    assert "losing=" in passes
    assert f": {passes} | " in said


def test_a_sweep_at_the_chips_budget_is_the_reports_row(
    report: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", SAMPLE, *CHIP, "--over", "budget=8", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    (budget,) = {v["budget"] for v in report["variants"] if v["name"] == BEST}
    assert row["budget"] == budget
    assert row["makespan_us"] == makespan_of(report, BEST)


def test_a_named_plan_is_taken_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", SAMPLE, "all-gather", *CHIP, "--scheduler", "top-down"]) == 0
    assert not re.search("No plan was named", capsys.readouterr().err)


def test_what_became_of_an_einsum_is_explained_piece_by_piece(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", SAMPLE, "dot.1", *CHIP]) == 0
    said = capsys.readouterr().out.split("\n\n")
    assert said[0].startswith("dot.1 became ")
    pieces = [text for text in said[1:] if "fusion is number" in text]
    assert len(pieces) > 1
    for text in pieces:
        assert re.search(r"It waits for [\w.-]+", text)
        assert "What waits for it: " in text
        assert re.search(r"it hides [\w.-]+ \([\d.]+ .s\)|No transfer is under way", text)
        assert "The scheduler's rule " in text
    assert any("it hides" in text for text in pieces)


def test_an_einsum_that_is_as_loaded_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", SAMPLE, "dot.1", *CHIP, "--passes", "", "--scheduler", "as-loaded"]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"It waits for all-gather[.\d]*,? .*which was there just before", out)
    assert "What waits for it: all-reduce; the first comes at once." in out
    assert "No passes were named" not in err
    assert main(["explain", SAMPLE, "dot.1", *CHIP, "--scheduler", "as-loaded"]) == 0
    assert "No passes were named; these are taken: decompose,async-permute" in capsys.readouterr().err


def test_what_waits_for_a_transfer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", SAMPLE, "all-gather.start", *CHIP, "--passes", "async-permute{kinds=all}"]) == 0
    out = capsys.readouterr().out
    assert "What waits for it: dot" in out
    assert "It waits for" in out
