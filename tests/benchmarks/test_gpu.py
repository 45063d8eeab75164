"""The script for GPUs, tried on the CPU: no GPU was at hand, and everything but the device is the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.gpu import PROGRAMS, main
from engine.hlo.reading import read_here
from engine.profile.reading import read_profile
from engine.session.evaluation import Evaluator
from engine.session.measured import measured_variant
from engine.session.plan import AS_LOADED, MachineSpec


def test_a_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--platform", "cpu", "--quick", "--repeats", "2", "--output", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "times of a CPU say nothing of a GPU" in out
    assert out.count("equal on 1 cpu device") == 3 * len(PROGRAMS)
    assert "NOT EQUAL" not in out
    results = json.loads((tmp_path / "results.json").read_text())
    assert {row["policy"] for row in results["instructions"]} == {"none", "default", "overlap"}
    for name in PROGRAMS:
        saved = read_profile(str(tmp_path / f"{name}.default.xplane.pb.gz"))
        module = read_here((tmp_path / f"{name}.default.hlo.gz").read_bytes(), name)
        variant = Evaluator(module, MachineSpec("h100")).evaluate(AS_LOADED)
        assert measured_variant(variant, saved).unmatched == ()


def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main(["--quick"]) == 2
    assert "gpu" in capsys.readouterr().err
