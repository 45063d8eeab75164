"""A job of two processes: all of them run the plan, or none does."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.job.processes import PLAN, SCRIPT, altered, bundled, damaged, dumped, start


def started(folder: Path, bundles: tuple[Path, Path], **environment: str) -> list[subprocess.Popen[str]]:
    """Two processes; each has 4 of the 8 devices."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    return [
        start(
            str(SCRIPT),
            cwd=folder,
            COORDINATOR=coordinator,
            PROCESS=str(number),
            BUNDLE=str(bundle),
            XLA_FLAGS="--xla_force_host_platform_device_count=4",
            STEPS="3",
            PLAIN="1",
            **environment,
        )
        for number, bundle in enumerate(bundles)
    ]


def pair(folder: Path, bundles: tuple[Path, Path], **environment: str) -> list[dict[str, Any]]:
    """What the two processes printed."""
    both = started(folder, bundles, **environment)
    ended = [process.communicate(timeout=200) for process in both]
    assert [process.returncode for process in both] == [0, 0], ended[0][1][-1500:] + ended[1][1][-1500:]
    return [json.loads(out.strip().splitlines()[-1]) for out, _ in ended]


@pytest.mark.full
def test_both_run_the_plan(bundle: Path, tmp_path: Path) -> None:
    for run in pair(tmp_path, (bundle, bundle)):
        assert "structure: applied" in run["said"]
        np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)


@pytest.mark.full
def test_both_run_the_plan_of_a_dump(tmp_path: Path) -> None:
    """Each compiles its step once more; one that is not the dumped one stops both."""
    made = bundled(dumped(tmp_path), tmp_path / "bundle", *PLAN)
    for run in pair(tmp_path, (made, made)):
        assert "structure: applied (made from a dump" in run["said"]
        np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)
    for run in pair(tmp_path, (made, made), CHANGE="constant"):
        assert "the step after partitioning, on each device: it has other instructions or constants" in run["said"]
        assert run["losses"] == run["plain"]


@pytest.mark.full
def test_two_bundles_are_not_mixed(bundle: Path, tmp_path: Path) -> None:
    other = altered(bundle, tmp_path / "other", lambda manifest: manifest.update(measured={}))
    for run in pair(tmp_path, (bundle, other)):
        assert "the processes differ" in run["said"]
        assert run["losses"] == run["plain"]


def test_one_damaged_bundle_stops_both(bundle: Path, tmp_path: Path) -> None:
    first, second = pair(tmp_path, (bundle, damaged(bundle, tmp_path / "b", "tuned.mlirbc")))
    assert "the original runs: process 1: " in first["said"]
    assert "tuned.mlirbc was changed after it was written" in first["said"]
    assert "the original runs: " in second["said"]
    assert first["losses"] == first["plain"] == second["losses"]


def test_both_turn_to_the_original_and_back(bundle: Path, tmp_path: Path) -> None:
    """Where jit would make another program in both; each step is the plan's in both, or in none."""
    for run in pair(tmp_path, (bundle, bundle), TURN="precise"):
        assert "structure: applied" in run["said"]
        assert "the original ran 1 time: jax_default_matmul_precision is highest (was None)" in run["said"]
        np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)


@pytest.mark.full
def test_caches_that_one_clears_turn_nothing(bundle: Path, tmp_path: Path) -> None:
    """It is the same program still, so nobody waits for the other."""
    for run in pair(tmp_path, (bundle, bundle), TURN="cleared in one"):
        assert "structure: applied" in run["said"]
        assert "the original ran" not in run["said"]
        np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)


def test_one_that_turns_alone_ends_with_a_reason(bundle: Path, tmp_path: Path) -> None:
    """Rather than run its original while the other runs the plan: they would wait for each other without end."""
    both = started(tmp_path, (bundle, bundle), TURN="precise in one", PATIENCE_S="5")
    try:
        assert both[1].stderr is not None
        said = next(line for line in both[1].stderr if "Mismatch: " in line)
    finally:
        for process in both:
            process.kill()
            process.communicate()
    assert re.search(r"from here on the original is to run, because jax_default_matmul_precision is highest", said)
    assert "but not every process came here within 5 s" in said


@pytest.mark.full
def test_one_refused_order_is_installed_nowhere(order_bundle: Path, tmp_path: Path) -> None:
    broken = damaged(order_bundle, tmp_path / "b", "order.json")
    first, second = pair(tmp_path, (broken, order_bundle), ROUTE="install")
    assert "order: not installed" in first["said"]
    assert "order: not installed, process 0: " in second["said"]
