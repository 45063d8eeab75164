"""A plan made from a bare dump: the job knows itself again by its module after partitioning."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from app.cli.main import main
from tests.job.processes import HERE, PLAN, SCRIPT, bundled, damaged, dumped, python, train
from tests.job.test_wrap import FIFTY

DUMP_CHANGES = {
    "shape": "the step after partitioning, on each device: argument",
    "mesh": "the step after partitioning, on each device: argument",
    "constant": "the step after partitioning, on each device: it has other instructions or constants",
    "donation": "state['m']['down'] is f32[16,16]{1,0}, the plan was made for f32[16,16]{1,0}, donated (and 14 others)",
    "sharding": "the step after partitioning, on each device: argument",
    "callback": "it calls back to the host",
}


@pytest.fixture(scope="module")
def dump_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from the dump of a copy of the script that lies elsewhere: source lines and paths do not matter."""
    folder = tmp_path_factory.mktemp("dump")
    return bundled(dumped(folder), folder / "bundle", *PLAN)


def test_the_bundle_says_that_it_is_one_of_a_dump(dump_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = json.loads((dump_bundle / "manifest.json").read_text())
    assert manifest["signature"] is None
    assert manifest["fingerprint"]["kind"] == "partitioned"
    readme = (dump_bundle / "README.md").read_text()
    assert "compiles the step once more at its start" in " ".join(readme.split())


def test_the_dumped_job_runs_the_plan(dump_bundle: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cached = {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    run, logged = train(tmp_path, BUNDLE=str(dump_bundle), **FIFTY, **cached)
    np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)
    assert re.search(
        r"structure: applied \(made from a dump: the step was compiled once more, to compare it, in \d+\.\d s\)",
        run["said"],
    )
    assert "order: partly applied" in run["said"]
    assert "the original runs" not in logged
    # The plan's step and, after the tuned one, the plain one: what was compiled to be compared is not kept.
    kept = [file for file in cache.iterdir() if "jit_train_step-" in file.name and "atime" not in file.name]
    assert len(kept) == 1


@pytest.mark.parametrize("change", DUMP_CHANGES)
def test_another_job_runs_its_own_function(dump_bundle: Path, tmp_path: Path, change: str) -> None:
    run, logged = train(tmp_path, BUNDLE=str(dump_bundle), CHANGE=change, STEPS="3", PLAIN="1")
    assert DUMP_CHANGES[change] in run["said"]
    assert "structure" not in run["said"]
    assert run["losses"] == run["plain"]
    assert logged.count("lapstrake: the original runs") == 1


def test_a_changed_byte_is_noticed(dump_bundle: Path, tmp_path: Path) -> None:
    run, _ = train(tmp_path, BUNDLE=str(damaged(dump_bundle, tmp_path / "b", "tuned.mlirbc")), STEPS="2", PLAIN="1")
    assert "tuned.mlirbc was changed after it was written" in run["said"]
    assert run["losses"] == run["plain"]


def test_a_dump_of_another_stage_fits_no_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the compiler had scheduled, or not yet partitioned, is no module that a job can be compared with."""
    flags = "--xla_dump_to=dump --xla_dump_large_constants --xla_force_host_platform_device_count=8"
    python(str(SCRIPT), cwd=tmp_path, XLA_FLAGS=flags, STEPS="1")
    (scheduled,) = (tmp_path / "dump").glob("*.jit_train_step.*cpu_after_optimizations.txt")
    made = bundled(scheduled, tmp_path / "bundle", "--passes", "", "--scheduler", "memory", "--no-verify")
    run, _ = train(tmp_path, BUNDLE=str(made), STEPS="2", PLAIN="1")
    assert "a dump of what a compiler had scheduled, which no job can be compared with" in run["said"]
    assert run["losses"] == run["plain"]
    assert main(["tune", str(scheduled), "--order-only", "-o", str(tmp_path / "b"), "--quiet"]) == 2
    assert "--order-only needs a folder that lapstrake capture wrote" in capsys.readouterr().err


def test_donation_is_compared_where_jit_chooses_how_results_lie(tmp_path: Path) -> None:
    """Before its compiler has paired them with results, a module names its donated arguments in another way."""
    flags = "--xla_force_host_platform_device_count=8 --xla_dump_to=dump --xla_dump_hlo_pass_re=spmd-partitioning"
    python(str(HERE / "steps.py"), "reads_around", cwd=tmp_path, XLA_FLAGS=f"{flags} --xla_dump_large_constants")
    (found,) = (tmp_path / "dump").glob("*.jit_step.*after_spmd-partitioning*.txt")
    made = bundled(found, tmp_path / "bundle", *PLAN)
    said = [
        json.loads(python(str(HERE / "steps.py"), "reads_around", str(made), cwd=tmp_path, CHANGE=change)[0])["said"]
        for change in ("", "donation")
    ]
    assert "structure: applied (made from a dump" in said[0]
    kind = "f32[8,64]{1,0}"
    assert f"argument w is {kind}, the plan was made for {kind}, donated: dump and tune it again" in said[1]


def test_steps_that_jit_knows_the_mesh_of(tmp_path: Path) -> None:
    """Arguments by name, one that jit drops, numbers from Python, one donated; results whose sharding jit chose."""
    flags = "--xla_force_host_platform_device_count=8 --xla_dump_to=dump --xla_dump_hlo_pass_re=spmd-partitioning"
    python(str(HERE / "steps.py"), "named_arguments", cwd=tmp_path, XLA_FLAGS=f"{flags} --xla_dump_large_constants")
    (found,) = (tmp_path / "dump").glob("*.jit_step.*after_spmd-partitioning*.txt")
    made = bundled(found, tmp_path / "bundle", *PLAN)
    out, _ = python(str(HERE / "steps.py"), "named_arguments", str(made), cwd=tmp_path)
    run = json.loads(out)
    assert "structure: applied (made from a dump" in run["said"]
    for one, other in zip(run["tuned"], run["plain"], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    assert run["tuned about"] == run["plain about"]
    assert run["tuned deleted"] == run["plain deleted"]
