"""Files given to a session besides its module, with real workers: costs that price plans, schedules that are shown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app import kept
from app.explorer import Explorer
from engine.cost.costs import Origin
from engine.session import edits
from engine.session.commands import report_command
from engine.session.given import Recording, RecordingKind, take
from engine.session.plan import AS_LOADED
from engine.session.session import Entry
from tests.app.waiting import LONG, active, wait
from tests.places import COMPILED, SAMPLES
from views.plan.costs import ranks_of

SAMPLE = SAMPLES / "mlp_fig2_forward_4_f32.hlo"
SCHEDULE = COMPILED / "a_v4-2x2x2_1d_1x8_d4096_L2_scan_default.schedule.txt.gz"
SCHEDULED = COMPILED / "a_v4-2x2x2_1d_1x8_d4096_L2_scan_default.hlo.gz"


def test_costs_price_plans_and_are_undone_saved_and_removed(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "costs.csv"
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    variant = active(explorer).variant
    assert variant is not None
    name = next(
        name
        for graph in variant.program.graphs.values()
        for name, opcode in zip(graph.names, graph.opcodes, strict=True)
        if opcode in ("dot", "fusion")
    )
    broken = tmp_path / "broken.csv"
    broken.write_text("neither\n", "utf-8")
    explorer.imports.add_costs(str(broken))
    qtbot.waitUntil(lambda: bool(explorer.window.notices.texts()), timeout=LONG)
    table.write_text(f"name,us\n{name},123456\nnobody,5\n", "utf-8")
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([str(table)], ""))
    explorer.perform("import-costs")
    wait(qtbot, explorer)
    priced = active(explorer)
    assert priced.variant is not None
    assert priced.variant.metrics.makespan > 123_456_000_000
    assert not any("broken.csv" in text for text in explorer.window.notices.texts()), "what failed before is mended"
    (rank, model) = ranks_of(explorer.store.state)
    assert (rank.title, rank.origin, rank.said) == ("costs.csv", "your table", "1 times used, 1 not")
    assert rank.left == ("nobody: no instruction is called that",)
    assert model.title == "model"
    assert report_command("step.hlo", priced).endswith(f"--costs {table}")
    assert explorer.window.plan_line.costs.text() == "costs.csv"
    place = tmp_path / "a.lapstrake"
    assert explorer.documents.save(str(place)) == ""

    explorer.perform("undo")
    assert active(explorer).variant is variant
    explorer.open(str(place))
    wait(qtbot, explorer)
    again = active(explorer).variant
    assert again is not None
    assert again.metrics == priced.variant.metrics

    file = priced.machine.costs[0]
    place.write_text(place.read_text("utf-8").replace(file.sha256, "0" * 64), "utf-8")
    explorer.open(str(place))
    wait(qtbot, explorer)
    assert "not what it was" in active(explorer).error
    session = explorer.store.state
    explorer.store.become("Remove", edits.with_costs(session, ()))
    wait(qtbot, explorer)
    assert not active(explorer).error


def test_a_schedule_dropped_on_the_window_is_a_variant_whose_times_can_price_plans(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path
) -> None:
    explorer.open(str(SCHEDULE))
    assert "open the module that it belongs to first" in explorer.window.notices.texts()[0]
    module = tmp_path / "step.hlo.gz"
    shutil.copy(SCHEDULED, module)
    explorer.open(str(module))
    wait(qtbot, explorer)
    assert explorer.window.notices.texts() == ()
    explorer.open(str(SCHEDULE))
    wait(qtbot, explorer)
    shown = active(explorer)
    assert shown.variant is not None
    assert shown.variant.source is Origin.COMPILER
    assert not explorer.window.plan_line.scheduler.isEnabled()
    explorer.perform("verify")
    assert "Only variants that show a plan are run" in explorer.runs.progress.text
    explorer.perform("use-as-costs")
    wait(qtbot, explorer)
    assert active(explorer).variant is shown.variant
    assert [file.name for file in edits.costs_of(explorer.store.state)] == [SCHEDULE.name]
    explorer.store.undo()
    explorer.perform("undo")
    assert active(explorer).recording is None


def test_a_file_that_is_none_says_so_in_the_log(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    bad = tmp_path / "costs.csv"
    bad.write_text("dot.1,soon\ndot.2,later\n", "utf-8")
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    explorer.open(str(bad))
    wait(qtbot, explorer)
    assert not edits.costs_of(explorer.store.state)
    assert "microseconds were expected" in explorer.jobs()[0].error
    assert "microseconds were expected" in explorer.window.notices.texts()[0]
    torn = tmp_path / "dump.txt"
    torn.write_text("hlo_module {\n}\n", "utf-8")
    explorer.open(str(torn))
    wait(qtbot, explorer)
    assert "ScheduleProto" in active(explorer).error


def test_what_belongs_to_another_module_is_refused_by_name(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    before = explorer.store.state
    table = tmp_path / "costs.csv"
    table.write_text("name,us\nother.1,5\nother.2,6\n", "utf-8")
    for path, said in ((SCHEDULE, "of 8 devices"), (table, "none of its 2 names is there (other.1, other.2)")):
        explorer.imports.add_costs(str(path))
        wait(qtbot, explorer)
        assert said in explorer.window.notices.texts()[0]
        assert explorer.store.state == before
    explorer.open(str(SCHEDULE))
    wait(qtbot, explorer)
    assert "on 4 devices was expected, but this one is of 8 devices" in active(explorer).error
    explorer.perform("undo")
    assert explorer.store.state.entries == before.entries


def test_costs_of_which_little_is_used_are_doubted_and_can_be_taken_back(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path
) -> None:
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    table = tmp_path / "costs.csv"
    table.write_text("name,us\nall-gather,5\n" + "".join(f"other.{n},6\n" for n in range(9)), "utf-8")
    explorer.open(str(table))
    wait(qtbot, explorer)
    assert edits.costs_of(explorer.store.state)
    assert (
        "Only 1 of the 10 names in costs.csv are instructions of jit_mlp_forward" in explorer.window.notices.texts()[0]
    )
    explorer.window.notices.take("Do not use them")
    assert not edits.costs_of(explorer.store.state)


def test_a_profile_of_another_module_is_doubted(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)

    def event(name: str, start: int) -> dict[str, object]:
        args = {"hlo_op": name, "hlo_module": "jit_other"}
        return {"ph": "X", "pid": 1, "tid": 1, "ts": start, "dur": 5, "name": name, "args": args}

    trace = tmp_path / "run.trace.json"
    names = ["all-gather", *(f"fusion.{n}" for n in range(9))]
    trace.write_text(json.dumps({"traceEvents": [event(name, 10 * n) for n, name in enumerate(names)]}), "utf-8")
    explorer.open(str(trace))
    wait(qtbot, explorer)
    shown = active(explorer)
    assert shown.variant is not None
    (said,) = explorer.window.notices.texts()
    assert "Only 1 of 10 events in run.trace.json belong to an instruction of jit_mlp_forward" in said
    assert any("Only 1 of 10 events" in note for note in shown.variant.notes)


def test_a_trace_in_an_empty_window_says_what_to_open_first(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    trace = tmp_path / "run.trace.json"
    trace.write_text('{"traceEvents": []}', "utf-8")
    explorer.open(str(trace))
    qtbot.waitUntil(lambda: bool(explorer.window.notices.texts()), timeout=LONG)
    (said,) = explorer.window.notices.texts()
    assert "Chrome or Perfetto trace (JSON)" in said
    assert "Open the HLO of the module that was run first" in said


def test_recordings_of_our_own_move_beside_the_session(tmp_path: Path) -> None:
    folder = tmp_path / kept.FOLDER
    file = kept.keep(str(folder), b"profile", ".xplane.pb")
    assert take(file.path) == (file, b"profile")
    entry = Entry("A", AS_LOADED, recording=Recording(RecordingKind.PROFILE, file))
    session = edits.opened("step.hlo", [("", AS_LOADED)], entry.machine)
    session = edits.recorded(session, AS_LOADED, entry.machine, Recording(RecordingKind.PROFILE, file))
    (tmp_path / "saved").mkdir()
    moved = kept.moved_beside(session, str(tmp_path / "saved" / "a.lapstrake"), folder)
    recording = moved.entries[-1].recording
    assert recording is not None
    assert recording.file == file
    assert Path(recording.file.path).parent == tmp_path / "saved"
    assert Path(recording.file.path).read_bytes() == b"profile"
    kept.prune(folder)
    assert Path(file.path).is_file()
