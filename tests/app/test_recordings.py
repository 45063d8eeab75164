"""Profiles as variants, with real workers: of a run just made, and of the user's own from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from engine.control import QUIET
from engine.cost.costs import Origin
from engine.export.xplane import xplane_bytes
from engine.hlo.hlo_pb2 import HloProto
from engine.hlo.reading import read_here
from engine.profile.xspace_pb2 import XSpace
from engine.session import edits
from engine.session.evaluation import Evaluator
from engine.session.plan import AS_LOADED
from engine.session.variant import Variant
from engine.timeline.timeline import Category, LaneKind
from tests.app.waiting import LONG, active, wait
from tests.places import SAMPLES
from views.runs.runner import Stage, Task, Wish

SAMPLE = SAMPLES / "mlp_fig2_forward_4_f32.hlo"


def test_a_run_is_profiled_shown_saved_and_opened_again(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    before = active(explorer)
    explorer.runs.start(Task.PROFILE, (before.key,), Wish(repeats=2))
    wait(qtbot, explorer)
    assert explorer.runs.progress.stage == Stage.DONE, explorer.runs.progress.text
    shown = active(explorer)
    assert not shown.error
    assert shown.variant is not None
    assert shown.variant.source is Origin.MEASURED
    assert shown.plan == before.plan
    assert shown.title == f"{before.title}, measured on 4 CPU devices"
    measured = explorer.recordings.measured(shown)
    assert measured is not None
    assert measured.events == measured.matched > 0
    assert not measured.unmatched
    assert not measured.overlaps
    assert any("synchronously" in note for note in shown.variant.notes)
    assert any("events belong to an instruction" in job.message for job in explorer.jobs())

    (tmp_path / "saved").mkdir()
    place = tmp_path / "saved" / "a.lapstrake"
    explorer.saving.save_to(str(place))
    assert {path.suffix for path in place.parent.iterdir()} == {".lapstrake", ".pb"}
    explorer.open(str(place))
    wait(qtbot, explorer)
    again = active(explorer)
    assert again.recording == shown.recording
    assert again.variant is not None
    assert again.variant.metrics == shown.variant.metrics

    explorer.perform("use-as-costs")
    wait(qtbot, explorer)
    priced = explorer.store.state.entry(before.key)
    assert priced is not None
    assert priced.variant is not None
    assert [used.origin for used in priced.variant.program.imported] == [Origin.MEASURED]
    assert priced.variant.program.imported[0].used > 0
    explorer.perform("undo")
    assert not edits.costs_of(explorer.store.state)


def as_profile(variant: Variant) -> bytes:
    """What a TPU would have written, had it taken exactly the predicted times, and run one operation more."""
    space = XSpace.FromString(xplane_bytes(variant.timeline, variant.program.module))
    del space.warnings[:]
    (plane,) = space.planes
    number = max(plane.event_metadata) + 1
    plane.event_metadata[number].id = number
    plane.event_metadata[number].name = "%nobody.1 = f32[4]{0} fusion()"
    line = next(line for line in plane.lines if line.name == "XLA Ops")
    line.events.add(metadata_id=number, offset_ps=0, duration_ps=5)
    return space.SerializeToString()


def as_trace(variant: Variant) -> bytes:
    """The same as a Chrome trace."""
    timeline, module = variant.timeline, variant.program.module
    rows = zip(
        timeline.instruction.tolist(), timeline.lane, timeline.start, timeline.duration, timeline.category, strict=True
    )
    events: list[dict[str, object]] = [
        {
            "ph": "X",
            "pid": 1,
            "tid": int(timeline.lanes[lane].kind),
            "ts": int(start) / 1e6,
            "dur": int(duration) / 1e6,
            "name": module.instructions[instruction].name,
        }
        for instruction, lane, start, duration, category in rows
        if category != Category.EXPOSED
    ]
    events.append({"ph": "X", "pid": 1, "tid": 0, "ts": 0, "dur": 0.000001, "name": "nobody.1"})
    for tid, name in ((LaneKind.COMPUTE, "XLA Ops"), (LaneKind.TRANSFER, "Async XLA Ops")):
        events.append({"ph": "M", "pid": 1, "tid": int(tid), "name": "thread_name", "args": {"name": name}})
    events.append({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:TPU:0"}})
    return json.dumps({"traceEvents": events}).encode()


@pytest.mark.parametrize("suffix", [".xplane.pb", ".json"])
def test_a_profile_of_the_users_own_is_of_the_plan_that_it_fits(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path, suffix: str
) -> None:
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    session = explorer.store.state
    variant = session.entries[0].variant
    assert variant is not None
    place = tmp_path / f"run{suffix}"
    place.write_bytes(as_trace(variant) if suffix == ".json" else as_profile(variant))
    explorer.open(str(place))
    wait(qtbot, explorer)
    shown = active(explorer)
    assert not shown.error
    assert shown.recording is not None
    assert shown.plan == session.entries[0].plan
    assert shown.variant is not None
    assert shown.variant.source is Origin.MEASURED
    measured = explorer.recordings.measured(shown)
    assert measured is not None
    assert all(one.predicted == one.measured for one in measured.observations if one.measured)
    assert [(one.name, one.count) for one in measured.unmatched] == [("nobody.1", 1)]
    assert any("no instruction is called nobody.1 ×1" in job.message for job in explorer.jobs())
    assert any("nobody.1" in note for note in shown.variant.notes)


def test_a_profile_of_another_program_says_so_in_place(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    space = XSpace()
    plane = space.planes.add(name="/device:TPU:0")
    plane.event_metadata[1].id = 1
    plane.event_metadata[1].name = "%stranger.1 = f32[4]{0} fusion()"
    plane.lines.add(name="XLA Ops").events.add(metadata_id=1, duration_ps=5)
    place = tmp_path / "run.xplane.pb"
    place.write_bytes(space.SerializeToString())
    explorer.open(str(place))
    wait(qtbot, explorer)
    assert "stranger.1" in active(explorer).error
    assert active(explorer).variant is None
    place.write_bytes(b"\x0a\x00")
    explorer.open(str(place))
    wait(qtbot, explorer)
    assert any("profile" in job.error for job in explorer.jobs())
    before = active(explorer)
    variant = explorer.store.state.entries[0].variant
    assert variant is not None
    place.write_bytes(xplane_bytes(variant.timeline, variant.program.module))
    explorer.open(str(place))
    wait(qtbot, explorer)
    assert active(explorer) == before
    assert any("predicted by Lapstrake" in job.error for job in explorer.jobs())


def test_a_profile_is_opened_alone_with_the_module_that_it_brings_along(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path
) -> None:
    module = read_here(SAMPLE.read_bytes(), SAMPLE.name, QUIET)
    variant = Evaluator(module).evaluate(AS_LOADED)
    space = XSpace.FromString(as_profile(variant))
    place = tmp_path / "job.xplane.pb"
    place.write_bytes(space.SerializeToString())
    explorer.open(str(place))
    qtbot.waitUntil(lambda: bool(explorer.jobs()) and explorer.jobs()[0].state != "running", timeout=LONG)
    assert "brings no module" in explorer.jobs()[0].error
    held = space.planes.add(name="/host:metadata")
    held.event_metadata[1].name = module.name
    proto = HloProto(hlo_module=module.proto).SerializeToString()
    held.event_metadata[1].stats.add(metadata_id=1, bytes_value=proto)
    place.write_bytes(space.SerializeToString())
    explorer.open(str(place))
    qtbot.waitUntil(lambda: len(explorer.store.state.entries) > 3, timeout=LONG)
    wait(qtbot, explorer)
    shown = active(explorer)
    assert not shown.error
    assert shown.recording is not None
    assert shown.recording.file.path == str(place)
    assert shown.variant is not None
    assert shown.variant.source is Origin.MEASURED
    (tmp_path / "saved").mkdir()
    explorer.saving.save_to(str(tmp_path / "saved" / "a.lapstrake"))
    assert Path(explorer.store.state.path).parent == tmp_path / "saved"
    assert Path(explorer.store.state.path).is_file()
