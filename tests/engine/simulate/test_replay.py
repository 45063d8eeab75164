"""Our simulation of the compiler's order with the compiler's costs comes to the compiler's totals."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.costs import Origin
from engine.cost.scheduled_module import read_scheduled_module
from engine.simulate.replay import Replay, replay
from tests.places import COMPILED

FILES = sorted(path.name for path in COMPILED.glob("*.schedule.txt.gz"))


@pytest.fixture(scope="module", params=FILES)
def played(request: pytest.FixtureRequest) -> Replay:
    path = COMPILED / request.param
    predicted = read_scheduled_module(gzip.decompress(path.read_bytes()).decode(), str(path))
    return replay(predicted, machine_for(predicted.module, load_chip("tpu-v4")))


def test_totals_are_the_compilers(played: Replay) -> None:
    assert [total for total in played.totals if not total.runs_loops]
    for total in played.totals:
        assert total.ours == pytest.approx(total.compiler, rel=1e-3), total.computation
        assert total.whole >= total.ours or not total.runs_loops


def test_loop_rows_are_the_compilers(played: Replay) -> None:
    assert played.loops
    for row in played.loops:
        assert row.ours == pytest.approx(row.compiler, rel=1e-3), row.loop
        assert row.whole >= row.ours


def test_the_timeline_says_whose_times_it_shows(played: Replay) -> None:
    timeline = played.simulation.timeline
    assert timeline.source == Origin.COMPILER
    assert timeline.makespan == played.simulation.metrics.makespan
    known = set(played.program.module.instructions)
    assert set(np.unique(timeline.instruction).tolist()) <= known
