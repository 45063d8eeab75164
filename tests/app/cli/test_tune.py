"""`lapstrake tune`, as typed: what is bundled, what is not, against what, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app.cli.main import main
from engine.session.evaluation import Evaluator
from engine.session.plan import Plan, plain_plan
from engine.session.tuning import Trial, Tuning
from tests.places import SAMPLES

SAMPLE = str(SAMPLES / "mlp_fig3_forward_2x2_f32.hlo")
GAINS = str(SAMPLES / "mlp_fig3_train_8x8_large.hlo")

UNPARTITIONED = """HloModule step, num_partitions=2

ENTRY e {
  p = f32[16,8]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}
  w = f32[8,8]{1,0} parameter(1), sharding={replicated}
  y = f32[16,8]{1,0} dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT out = f32[16,8]{1,0} custom-call(y), custom_call_target="Sharding", sharding={devices=[2,1]<=[2]}
}
"""


def tune(*arguments: str, out: Path) -> int:
    return main(["tune", *arguments, "-o", str(out / "bundle"), "--no-verify"])


def test_the_gain_is_over_what_the_compiler_does_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune(GAINS, "--search", "scheduler", out=tmp_path) == 0
    out = capsys.readouterr().out
    assert re.search(r"^whole, asynchronous [\d.]+ .s → [\d.]+ .s \(−[\d.]+ %\); as loaded [\d.]+ .s \(", out, re.M)
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    assert manifest["predicted"]["against"] == "whole, asynchronous"
    assert manifest["predicted"]["tuned_us"] < manifest["predicted"]["against_us"]
    assert manifest["predicted"]["against_us"] < manifest["predicted"]["original_us"]
    report = (tmp_path / "bundle" / "report.html").read_text()
    assert re.search(r"<b>whole, asynchronous [\d.]+ .s, with the plan [\d.]+ .s \(.*; as loaded [\d.]+ .s \(", report)


def test_what_gains_nothing_is_not_bundled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = (
        "--search",
        "budget",
        "--passes",
        "decompose{forbid=all-reduce},async-permute{kinds=supported},fuse{policy=default}",
    )
    assert tune(SAMPLE, *options, out=tmp_path) == 0
    out = capsys.readouterr().out
    assert "no bundle was written" in out
    assert "--bundle-anyway" in out
    assert not (tmp_path / "bundle").exists()
    assert tune(SAMPLE, *options, "--require-gain", out=tmp_path) == 1
    assert tune(SAMPLE, *options, "--bundle-anyway", out=tmp_path) == 0
    out = capsys.readouterr().out
    assert "bundled all the same: " in out
    assert (tmp_path / "bundle" / "manifest.json").is_file()
    assert "gains nothing" in (tmp_path / "bundle" / "README.md").read_text()


def test_a_plan_that_is_named_is_bundled_and_its_loss_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune(SAMPLE, "--passes", "decompose{gate=off},async-permute", out=tmp_path) == 0
    out, err = capsys.readouterr()
    assert re.search(r"the plan is [\d.]+ .s slower than the module ", out)
    assert "best:" not in out
    assert "The plan has no fuse pass, but its compiler fuses" in err
    assert json.loads((tmp_path / "bundle" / "manifest.json").read_text())["plan"]["passes"].endswith(
        "fuse{policy=default}"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--order-only", "--passes", "decompose"), "does not go with --passes"),
        (("--order-only", "--search", "ring"), "does not go with --search"),
        (("--search", ""), "but nothing came"),
        (("--search", "speed"), "but 'speed' came"),
        (("--time-limit", "abc"), "a number of seconds above 0 was expected, but 'abc' came"),
        (("--time-limit", "nan"), "a number of seconds above 0 was expected, but 'nan' came"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune(SAMPLE, *options, out=tmp_path) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "_" not in err.partition("error:")[2]
    assert not (tmp_path / "bundle").exists()


def test_a_program_of_all_devices_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "before.hlo").write_text(UNPARTITIONED)
    assert tune(str(tmp_path / "before.hlo"), "--passes", "decompose", out=tmp_path) == 2
    err = capsys.readouterr().err
    assert "is not partitioned yet" in err
    assert "--xla_dump_hlo_pass_re=spmd-partitioning" in err
    assert not (tmp_path / "bundle").exists()


def test_a_bundle_is_not_tuned_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune(SAMPLE, "--passes", "decompose,async-permute,fuse", out=tmp_path) == 0
    bundle = tmp_path / "bundle"
    for again in (bundle, bundle / "tuned.hlo", bundle / "original.hlo.pb"):
        assert tune(str(again), out=tmp_path / "again") == 2
        assert "this is of a bundle, by which no job is recognised" in capsys.readouterr().err
    (tmp_path / "copy.hlo").write_bytes((bundle / "tuned.hlo").read_bytes())
    assert tune(str(tmp_path / "copy.hlo"), out=tmp_path / "again") == 2
    assert "carry a plan's tags (lapstrake=…)" in capsys.readouterr().err
    assert main(["report", str(bundle), "--quiet"]) == 0


def test_a_place_that_cannot_be_written_is_refused_before_the_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cli.tune_command._search", lambda *_: pytest.fail("it searched"))
    (tmp_path / "file").write_text("no folder", "utf-8")
    (tmp_path / "other" / "bundle").mkdir(parents=True)
    for name, said in (("file", "cannot write"), ("other", "exists and is no bundle")):
        assert tune(SAMPLE, out=tmp_path / name) == 2
        assert said in capsys.readouterr().err


def test_a_limit_in_which_nothing_can_be_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = str(SAMPLES / "mlp_fig3.hlo")
    assert main(["tune", sample, "--time-limit", "0.000001", "--no-verify", "-o", str(tmp_path / "b")]) == 2
    assert "passed before one plan was tried" in capsys.readouterr().err


ALONE = """HloModule step, num_partitions=2

ENTRY e {
  p = f32[16,8]{1,0} parameter(0)
  w = f32[8,8]{1,0} parameter(1)
  ROOT y = f32[16,8]{1,0} dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_a_module_without_collectives_has_nothing_to_tune(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "step.hlo").write_text(ALONE)
    assert tune(str(tmp_path / "step.hlo"), out=tmp_path) == 0
    out = capsys.readouterr().out
    assert "nothing to tune: the module has no collectives; no bundle was written" in out
    assert "--bundle-anyway" not in out
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize("more", [(), ("--bundle-anyway",)])
def test_where_no_plan_is_possible_there_is_no_best(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(evaluator: Evaluator, **_: object) -> Tuning:
        base = evaluator.evaluate(plain_plan(evaluator.module), "as loaded")
        trials = tuple(Trial(Plan("decompose", name), None, "it cannot be") for name in ("bottom-up", "top-down"))
        return Tuning(base, base, trials, finished=True)

    monkeypatch.setattr("app.cli.tune_command.tune", refuse)
    assert tune(SAMPLE, *more, out=tmp_path) == 0
    out = capsys.readouterr().out
    assert "nothing to tune: none of the 2 plans that were tried is possible: it cannot be" in out
    assert not re.search("best|bundled", out)
    assert not (tmp_path / "bundle").exists()
