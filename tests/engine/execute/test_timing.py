"""Measurements take their turns, and the machine is asked what it has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import InputError, UnsupportedError, UsageError, WorkerError
from engine.execute.devices import platforms_found
from engine.execute.timing import Entrant, RunOptions, Timing, measure
from engine.hlo.reading import read_here
from tests.engine.execute.texts import ENDLESS, GATHERED, SUMMED


def test_modules_are_timed_in_turn() -> None:
    module = read_here(GATHERED.encode())
    found = measure([Entrant("a", module), Entrant("b", module)], RunOptions(repeats=5, warmup=1, deadline=60.0))
    assert [t.name for t in found.timings] == ["a", "b"]
    assert (found.platform, found.devices) == ("cpu", 4)
    assert [len(t.times) for t in found.timings] == [5, 5]
    assert all(0 < time < 10**13 for t in found.timings for time in t.times)
    assert "synchronously" in found.notes[0]


def test_median_and_spread() -> None:
    timing = Timing("m", (5, 1, 3, 2, 4))
    assert (timing.median, timing.spread) == (3, 2)
    assert Timing("m", (7,)).spread == 0


def test_zeros_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "zeros.npz"
    np.savez(file, x=np.zeros((4, 8), np.float32))
    module = read_here(SUMMED.encode())
    with pytest.raises(InputError, match="all inputs are zero"):
        measure([Entrant("m", module)], RunOptions(inputs=str(file), deadline=60.0))


def test_devices_that_are_not_there_are_said() -> None:
    for platform in platforms_found():
        if platform.problem:
            with pytest.raises(UnsupportedError, match=r"no devices of that platform are attached: .+"):
                measure([Entrant("m", read_here(SUMMED.encode()))], RunOptions(platform=platform.name, deadline=60.0))


def test_wrong_uses() -> None:
    module = read_here(SUMMED.encode())
    with pytest.raises(UsageError, match="at least one repeat"):
        measure([Entrant("m", module)], RunOptions(repeats=0))
    with pytest.raises(UsageError, match="differ in their parameters"):
        measure([Entrant("m", module), Entrant("n", read_here(GATHERED.encode()))])
    endless = read_here(ENDLESS.encode())
    with pytest.raises(WorkerError, match="did not end within 2 s"):
        measure([Entrant("m", endless)], RunOptions(deadline=2.0))


def test_platforms_have_devices_or_a_reason() -> None:
    found = {platform.name: platform for platform in platforms_found()}
    assert list(found) == ["cpu", "gpu", "tpu"]
    assert found["cpu"].count >= 1
    assert found["cpu"].kind
    assert all(platform.count or platform.problem for platform in found.values())
