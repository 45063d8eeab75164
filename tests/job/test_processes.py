"""A job of two processes: all of them run the plan, or none does."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.job.processes import PLAN, SCRIPT, altered, bundled, damaged, dumped, start


def pair(folder: Path, bundles: tuple[Path, Path], **environment: str) -> list[dict[str, Any]]:
    """What the two processes printed; each has 4 of the 8 devices."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    started = [
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
    ended = [process.communicate(timeout=200) for process in started]
    assert [process.returncode for process in started] == [0, 0], ended[0][1][-1500:] + ended[1][1][-1500:]
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


@pytest.mark.full
def test_one_refused_order_is_installed_nowhere(order_bundle: Path, tmp_path: Path) -> None:
    broken = damaged(order_bundle, tmp_path / "b", "order.json")
    first, second = pair(tmp_path, (broken, order_bundle), ROUTE="install")
    assert "order: not installed" in first["said"]
    assert "order: not installed, process 0: " in second["said"]
