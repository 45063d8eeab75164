"""A tuned plan in the job it was made for, and in jobs that differ from it: each in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.cli.main import main

HERE = Path(__file__).parent
SCRIPT = HERE / "train.py"
CAPTURE = str(files("engine.export.payload").joinpath("lapstrake_capture.py"))
DEADLINE = 300


def python(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    # No import path of ours: what a job gets must stand alone.
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "JAX_PLATFORMS", "XLA_FLAGS")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def train(folder: Path, **environment: str) -> tuple[dict[str, Any], str]:
    """The job's JSON line, and what it logged."""
    done = python(str(SCRIPT), cwd=folder, **environment)
    assert done.returncode == 0, done.stderr[-2000:]
    content: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return content, done.stderr


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The training step captured, decomposed and bundled."""
    folder = tmp_path_factory.mktemp("job")
    done = python(CAPTURE, "--out", "captured", "--function", "train_step", str(SCRIPT), cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    source = folder / "captured" / "train_step" / "partitioned.hlo"
    plan = ("--passes", "decompose{gate=off},async-permute,fuse", "--scheduler", "bottom-up")
    assert main(["tune", str(source), *plan, "-o", str(folder / "bundle"), "--quiet"]) == 0
    return folder / "bundle"


def changed(run: dict[str, Any], expected: str) -> None:
    assert "structure applied" not in run["said"]
    assert "the original runs" in run["said"]
    assert expected in run["said"]


def test_the_plan_gives_the_same_losses(bundle: Path, tmp_path: Path) -> None:
    plain, _ = train(tmp_path)
    tuned, logged = train(tmp_path, BUNDLE=str(bundle))
    assert "structure applied" in tuned["said"]
    assert "order" in tuned["said"]
    assert "not applied" not in tuned["said"]
    assert tuned["steps"] == plain["steps"] == 50
    np.testing.assert_allclose(tuned["losses"], plain["losses"], rtol=1e-5)
    assert "lapstrake" not in logged


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("shape", "its shape is [64, 64], the plan was made for [32, 64]"),
        ("mesh", "the mesh is {'x': 4, 'y': 2}"),
        ("constant", "the program is another"),
        ("donation", "its donation is False"),
        ("sharding", "its sharding is"),
    ],
)
def test_another_job_runs_its_own_function(bundle: Path, tmp_path: Path, change: str, said: str) -> None:
    plain, _ = train(tmp_path, CHANGE=change, STEPS="3")
    tuned, logged = train(tmp_path, BUNDLE=str(bundle), CHANGE=change, STEPS="3")
    changed(tuned, said)
    assert tuned["losses"] == plain["losses"]
    assert logged.count("the original runs") == 1


def test_a_changed_byte_is_noticed(bundle: Path, tmp_path: Path) -> None:
    for name in ("tuned.mlirbc", "order.json", "manifest.json"):
        damaged = tmp_path / name.replace(".", "-")
        damaged.mkdir()
        for file in bundle.iterdir():
            (damaged / file.name).write_bytes(file.read_bytes())
        content = bytearray((damaged / name).read_bytes())
        content[len(content) // 2] ^= 1
        (damaged / name).write_bytes(content)
        run, _ = train(tmp_path, BUNDLE=str(damaged), STEPS="2")
        assert "the original runs" in run["said"]
        assert name in run["said"] or "no bundle that can be read" in run["said"]


def test_strict_raises(bundle: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in bundle.iterdir():
        (damaged / file.name).write_bytes(file.read_bytes())
    (damaged / "tuned.mlirbc").write_bytes(b"")
    done = python(str(SCRIPT), cwd=tmp_path, BUNDLE=str(damaged), CHANGE="strict", STEPS="1")
    assert done.returncode != 0
    assert "Mismatch" in done.stderr
