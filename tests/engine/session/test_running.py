"""Variants that run on CPU devices: each in its order, and every event of their profiles belongs to an instruction."""

from __future__ import annotations

import numpy as np
import pytest

from engine.cost.costs import Origin
from engine.errors import UsageError
from engine.execute.timing import RunOptions
from engine.hlo.reading import read_here
from engine.session.evaluation import Evaluator
from engine.session.plan import Plan, plain_plan
from engine.session.running import Run, run_variants
from engine.timeline.timeline import Category, LaneKind
from tests.places import SAMPLES


@pytest.fixture(scope="module")
def run() -> Run:
    module = read_here((SAMPLES / "mlp_fig2_forward_4_f32.hlo").read_bytes(), "mlp")
    evaluator = Evaluator(module)
    rolled = Plan("decompose{gate=off,form=rolled,ring=one,unroll=1},async-permute,fuse", "top-down")
    variants = [evaluator.evaluate(plain_plan(module), "as loaded"), evaluator.evaluate(rolled, "rolled")]
    return run_variants(variants, RunOptions(repeats=3, warmup=1, profile=True, deadline=120.0))


def test_variants_are_timed_on_the_devices_they_need(run: Run) -> None:
    assert (run.platform, run.devices, run.kind) == ("cpu", 4, "cpu")
    assert [ran.timing.name for ran in run.ran] == ["as loaded", "rolled"]
    assert all(len(ran.timing.times) == 3 and min(ran.timing.times) > 0 for ran in run.ran)
    assert any("synchronously" in note for note in run.notes)


def test_the_executable_is_issued_in_the_chosen_order(run: Run) -> None:
    for ran in run.ran:
        order = ran.timing.order
        assert order is not None
        assert order.whole, str(order)
        assert order.kept >= 4
        assert str(order).startswith(f"order kept ({order.kept} of ")


def test_every_event_of_a_cpu_profile_belongs_to_an_instruction(run: Run) -> None:
    for ran in run.ran:
        measured = ran.measured
        assert measured is not None
        assert measured.unmatched == ()
        assert measured.events == measured.matched > 0
        assert measured.executions == 3
        assert measured.platform == "cpu"
        assert not measured.overlaps
        timed = {o.name for o in measured.observations if o.measured}
        transfers = {o.name for o in measured.observations if o.predicted and o.transfer}
        assert transfers <= timed
        assert all(o.error is None or o.error >= -1 for o in measured.observations)


def test_the_timeline_is_a_measurement(run: Run) -> None:
    measured = run.ran[1].measured
    assert measured is not None
    timeline, metrics = measured.variant.timeline, measured.variant.metrics
    assert measured.variant.source is Origin.MEASURED
    assert measured.predicted.source is Origin.MODEL
    assert metrics.makespan == timeline.makespan == int((timeline.start + timeline.duration).max())
    assert metrics.overlap_fraction == 0  # CPU devices hide nothing
    assert metrics.lower_bound == metrics.peak_memory == 0
    assert any("overlap is not shown" in note for note in measured.notes)
    loops = timeline.category == Category.LOOP
    program = measured.variant.program
    trips = zip(timeline.instruction[loops].tolist(), timeline.repeat[loops].tolist(), strict=True)
    assert dict(trips) == dict(program.trips)
    assert max(program.trips.values()) == 3  # a ring of four moves three times
    inside = (timeline.depth == 1) & (timeline.category == Category.PERMUTE)
    assert set(timeline.iteration[inside].tolist()) == {0, 1, 2}
    for number, lane in enumerate(timeline.lanes):
        mine = (timeline.lane == number) & ~loops
        start = timeline.start[mine]
        assert (np.diff(start) >= 0).all()
        assert (start[1:] >= (start + timeline.duration[mine])[:-1]).all(), lane
        assert lane.kind in (LaneKind.COMPUTE, LaneKind.TRANSFER)


def test_nothing_to_run_is_said() -> None:
    with pytest.raises(UsageError, match="at least one variant"):
        run_variants([])
