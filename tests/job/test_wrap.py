"""A decomposed plan in the job it was made for, and in jobs that differ from it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.job.processes import PLAN, SCRIPT, altered, bundled, captured, damaged, start, train

FIFTY = {"STEPS": "50", "PLAIN": "1", "RESTART": "20"}
CHANGES = {
    "shape": "argument tokens is int32[16, 8] as P('x', None), the plan was made for int32[8, 8] as P('x', None)",
    "mesh": "the mesh is {'x': 4, 'y': 2}, the plan was made for {'x': 2, 'y': 4}",
    "constant": "the program is another than the captured one",
    "donation": "as P('y', 'x'), the plan was made for float32[64, 32] as P('y', 'x'), donated (and 14 others)",
    "sharding": "argument tokens is int32[8, 8] as P(None, 'x'), the plan was made for int32[8, 8] as P('x', None)",
    "callback": "it calls back to the host",
}


def test_a_tuned_job_computes_the_same_losses(bundle: Path, tmp_path: Path) -> None:
    run, logged = train(tmp_path, BUNDLE=str(bundle), **FIFTY)
    assert run["steps"] == len(run["losses"]) == 50
    np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)
    assert "structure: applied" in run["said"]
    in_order, total = map(int, re.findall(r"order: \w+ ?applied \((\d+) of (\d+)", run["said"])[0])
    elsewhere = sum(map(int, re.findall(r"(\d+) elsewhere", run["said"])))  # none is not told
    # This compiler fuses less than the plan does: what it leaves by itself cannot always stand where its fusion would.
    assert in_order > 5 * elsewhere
    assert in_order + elsewhere > total / 3
    assert "fusion: " in run["said"]
    # The original was lowered to be compared, and never compiled; nothing is compiled again in the loop or after a
    # restart from a checkpoint.
    assert sum("train_step_lapstrake" in name for name in run["compiled"]) == 1
    assert "the original runs" not in logged


def test_merged_indices_reach_the_job(capture: Path, bundle: Path, tmp_path: Path) -> None:
    """A plan as the search by a compiler's cycles finds it: `flatten` is part of what a job runs."""
    passes = "flatten{indices=all},decompose{gate=off},async-permute"
    made = bundled(capture, tmp_path / "flat", "--passes", passes, "--scheduler", "top-down")
    manifest = json.loads((made / "manifest.json").read_text())
    assert manifest["plan"]["passes"] == f"{passes},fuse{{policy=default}}"  # as compilers fuse by themselves
    assert manifest["verification"]["done"]
    assert (made / "tuned.mlirbc").read_bytes() != (bundle / "tuned.mlirbc").read_bytes()
    run, logged = train(tmp_path, BUNDLE=str(made), STEPS="10", PLAIN="1")
    assert "structure: applied" in run["said"]
    np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)
    assert "the original runs" not in logged


def test_a_plan_of_order_alone_says_so(capture: Path, tmp_path: Path) -> None:
    """It has passes, and none of them changes the program: the job's compiler gets what it had."""
    made = bundled(capture, tmp_path / "b", "--passes", "async-permute", "--scheduler", "memory", "--no-verify")
    run, _ = train(tmp_path, BUNDLE=str(made), STEPS="2", PLAIN="1")
    assert run["said"].startswith("lapstrake: structure: nothing to apply, the plan changes order only; order: ")
    np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)


def test_a_warm_cache_tells_the_same(bundle: Path, tmp_path: Path) -> None:
    """Also what this jaxlib's hook does to donation, which is tried on a small function."""
    cached = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    cold, warm = (train(tmp_path, BUNDLE=str(bundle), STEPS="3", **cached)[0] for _ in range(2))
    assert "order: partly applied" in cold["said"]
    assert warm["said"] == cold["said"]
    assert warm["losses"] == cold["losses"]


@pytest.mark.parametrize("change", CHANGES)
def test_another_job_runs_its_own_function(bundle: Path, tmp_path: Path, change: str) -> None:
    run, logged = train(tmp_path, BUNDLE=str(bundle), CHANGE=change, STEPS="3", PLAIN="1")
    assert f"the original runs: {CHANGES[change]}" in run["said"] or CHANGES[change] in run["said"]
    assert "structure" not in run["said"]
    assert run["losses"] == run["plain"]
    assert logged.count("lapstrake: the original runs") == 1


@pytest.mark.parametrize(
    "name", ["tuned.mlirbc", *(pytest.param(n, marks=pytest.mark.full) for n in ("order.json", "manifest.json"))]
)
def test_a_changed_byte_is_noticed(bundle: Path, tmp_path: Path, name: str) -> None:
    run, _ = train(tmp_path, BUNDLE=str(damaged(bundle, tmp_path / "b", name)), STEPS="2", PLAIN="1")
    assert "the original runs" in run["said"]
    assert name in run["said"] or "no bundle that can be read" in run["said"]
    assert run["losses"] == run["plain"]


def test_strict_raises(bundle: Path, tmp_path: Path) -> None:
    broken = damaged(bundle, tmp_path / "b", "tuned.mlirbc")
    process = start(str(SCRIPT), cwd=tmp_path, BUNDLE=str(broken), CHANGE="strict", STEPS="1")
    _, logged = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "Mismatch: " in logged
    assert "tuned.mlirbc was changed" in logged


def test_another_jax_is_reported_and_a_zip_imported_from(bundle: Path, tmp_path: Path) -> None:
    older = altered(bundle, tmp_path / "b", lambda manifest: manifest["versions"].update(jax="0.9.0"))
    packed = shutil.make_archive(str(tmp_path / "bundle"), "zip", older)
    run, _ = train(tmp_path, BUNDLE=packed, STEPS="2", PLAIN="1")
    assert "structure: applied (made with jax 0.9.0)" in run["said"]
    np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)


def test_scheduling_groups_change_no_numbers(bundle: Path, tmp_path: Path) -> None:
    """What the job disables already stays disabled."""
    flags = "--xla_force_host_platform_device_count=8 --xla_disable_hlo_passes=rng-bit-generator-expander"
    run, _ = train(tmp_path, BUNDLE=str(bundle), GROUPS="1", STEPS="3", PLAIN="1", XLA_FLAGS=flags)
    np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)
    assert "structure: applied" in run["said"]
    assert "order: partly applied" in run["said"]


@pytest.mark.full
def test_a_ring_of_eight(tmp_path: Path) -> None:
    made = bundled(captured(tmp_path, MESH="1d"), tmp_path / "bundle", *PLAN)
    run, _ = train(tmp_path, BUNDLE=str(made), MESH="1d", **FIFTY)
    np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)
    assert "structure: applied" in run["said"]
    assert "order: partly applied" in run["said"]


@pytest.mark.full
def test_the_plan_that_is_found_without_being_named(capture: Path, tmp_path: Path) -> None:
    made = bundled(capture, tmp_path / "bundle", "--time-limit", "30")
    run, _ = train(tmp_path, BUNDLE=str(made), **FIFTY)
    np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)
    assert "structure: applied" in run["said"]
