"""What the tables of runs say, and which targets a module can be compiled for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.execute.targets import Target
from engine.session import edits
from engine.session.given import GivenFile, Recording, RecordingKind
from engine.session.plan import AS_LOADED, MachineSpec, Plan
from engine.session.session import Facts, Session
from engine.session.variant import Variant
from tests.views.fake_host import host_of
from tests.views.runs.fake_runner import CPU, GPU, TPU, timed, verified
from tests.views.synthetic import variant
from views.runs.rows import (
    origin_of,
    platform_facts,
    platform_title,
    rows_of,
    run_key,
    runnable,
    shortage,
    usual_choice,
)
from views.runs.runner import Outcome, Wish
from views.runs.targets import default_target, targets_for

BEST = Plan("decompose,async-permute", "bottom-up")


@pytest.fixture
def loaded() -> Variant:
    return variant(1, plan=AS_LOADED, name="as loaded")


@pytest.fixture
def ours() -> Variant:
    return variant(1, overlap=True, plan=BEST, name="decomposed")


def test_times_are_compared_with_those_of_the_base_in_the_same_run(loaded: Variant, ours: Variant) -> None:
    session = host_of(loaded, ours).store.state
    known = {loaded: timed(100, 104, 108), ours: timed(50, 51, 52)}
    first, second = rows_of(session, known.get)
    assert (first.key, first.ratio, first.median, first.spread) == ("A", "base", "104 µs", "4.00 µs")
    assert (second.ratio, second.told_apart) == ("0.490 ×", True)
    known[ours] = timed(98, 103, 160)
    assert rows_of(session, known.get)[1].told_apart is False
    known[ours] = timed(50, run=2)
    assert rows_of(session, known.get)[1].ratio == "another run"
    assert [row.ratio for row in rows_of(edits.based(session, "B"), known.get)] == ["base", "another run"]
    del known[loaded]
    assert [row.ratio for row in rows_of(session, known.get)] == [""]


def test_numbers_say_the_worst_error_and_its_place(loaded: Variant, ours: Variant) -> None:
    session = host_of(loaded, ours).store.state
    known = {v: Outcome(verification=verified(equal=equal)) for v, equal in ((loaded, True), (ours, False))}
    good, bad = rows_of(session, known.get)
    assert (good.equal, good.verdict, good.error) == (True, "equal", "2e-07 of 1e-05")
    assert (bad.equal, bad.verdict) == (False, "NOT EQUAL")
    assert bad.place == "result 0 f32[4], device 2, element [1], seed 3"
    (row,) = rows_of(session, {ours: Outcome(trouble="a custom-call cannot run here")}.get)
    assert (row.equal, row.verdict, row.place) == (None, "not run", "a custom-call cannot run here")


def test_only_plans_are_run(loaded: Variant, ours: Variant) -> None:
    session = host_of(loaded, ours).store.state
    for kind in RecordingKind:
        recording = Recording(kind, GivenFile(f"{kind}", str(kind)))
        session = edits.recorded(session, AS_LOADED, MachineSpec(), recording)
        session = edits.arrived(session, session.active, replace(loaded, recording=recording))
    assert [entry.key for entry in runnable(session)] == ["A", "B"]
    schedule, profile = (entry.key for entry in session.entries[-2:])
    assert run_key(edits.activated(session, profile)) == "A"  # whose plan was measured
    assert run_key(edits.activated(session, schedule)) == schedule
    assert usual_choice(edits.activated(edits.based(session, "B"), profile)) == {"A", "B"}
    changed = edits.planned(session, "B", AS_LOADED)
    assert [entry.key for entry in runnable(changed)] == ["A"]
    assert runnable(Session()) == ()


def test_where_results_come_from_is_said_with_what_they_cannot_say() -> None:
    assert origin_of([]) == ""
    both = replace(timed(5), verification=verified(equal=True))
    assert origin_of([both]) == (
        "measured on 8 CPU devices — verified on 8 CPU devices — proves numbers and structure, never overlap"
    )
    assert origin_of([replace(timed(5), origin="4 TPU devices")]) == "measured on 4 TPU devices"


def test_platforms_and_their_shortages_are_named(loaded: Variant) -> None:
    assert platform_title(CPU) == "CPU devices"
    assert platform_title(GPU) == "GPU: none"
    assert platform_title(TPU) == "1 × TPU v4"
    assert platform_facts(TPU) == "1 attached · 32.0 GiB each · libtpu 0.0.51"
    session = host_of(loaded).store.state
    session = edits.informed(session, "1", facts(8))
    assert shortage(session, CPU, Wish()) == ""
    assert shortage(session, TPU, Wish("tpu")) == "The module runs on 8 devices, but only 1 is attached."
    assert shortage(session, TPU, Wish("tpu", alone=True)) == ""
    assert shortage(session, GPU, Wish("gpu")) == "There are no GPU devices here: no plugin"
    assert shortage(session, None, Wish("gpu")) == ""


def facts(partitions: int) -> Facts:
    return Facts("m", 10, 1, partitions, scheduled=False, sha256="")


@given(st.integers(1, 4096))
def test_every_target_has_the_modules_number_of_devices(devices: int) -> None:
    for target in targets_for(devices):
        assert target.devices == devices
        assert Target.parse(str(target)) == target


@pytest.mark.parametrize(
    ("devices", "chip", "target"),
    [
        (8, "tpu-v4", "tpu:v4:2x2x2"),
        (4, "tpu-v5p", "tpu:v5p:2x2x1"),
        (64, "tpu-v4", "tpu:v4:4x4x4"),
        (8, "tpu-v5e", "tpu:v5e:2x4"),
        (8, "tpu-v2", "tpu:v2:2x2"),
        (8, "h100", "cuda:h100:1x1x8"),
        (16, "h100", "cuda:h100:1x2x8"),
        (6, "tpu-v4", "cuda:a100:1x1x6"),
        (8, "unheard-of", "tpu:v2:2x2"),
    ],
)
def test_the_target_is_the_chips_and_compact(devices: int, chip: str, target: str) -> None:
    assert str(default_target(devices, chip)) == target
