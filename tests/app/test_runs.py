"""Runs from the window, with real workers: times, numbers, what goes wrong in place, and the window alive after it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from app.kept import keep
from app.run_work import Compilation
from engine.control import Control
from engine.cost.costs import Origin
from engine.session.given import RecordingKind
from engine.session.plan import MachineSpec
from tests.app.waiting import LONG, wait
from tests.engine.execute.texts import DEADLOCK, ENDLESS, sorting
from tests.places import COMPILED, PARTITIONED, SAMPLES
from views.runs.rows import rows_of
from views.runs.runner import CompiledRow, Stage, Task, Wish

SAMPLE = SAMPLES / "mlp_fig2_forward_4_f32.hlo"
MODULE = PARTITIONED / "a_v4-2x2x2_1d_1x8_d4096_L2_scan.hlo.gz"
SCHEDULE = COMPILED / "a_v4-2x2x2_1d_1x8_d4096_L2_scan_default.schedule.txt.gz"


def test_variants_are_timed_and_verified_against_each_other(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    explorer.runs.start(Task.RUN, ("A", "B"), Wish(repeats=3))
    assert explorer.runs.progress.job
    assert explorer.runs.progress.title == "timing A, B on 4 CPU devices"
    wait(qtbot, explorer)
    assert explorer.runs.progress.stage == Stage.DONE, explorer.runs.progress.text
    assert any("synchronously" in note for note in explorer.runs.progress.notes)
    explorer.runs.start(Task.VERIFY, ("A", "B"), Wish(seed=5))
    wait(qtbot, explorer)
    rows = rows_of(explorer.store.state, explorer.runs.outcome)
    assert [(row.key, row.equal) for row in rows] == [("A", True), ("B", True)]
    assert rows[0].ratio == "base"
    assert rows[1].ratio.endswith("×")
    checks = [entry.check for entry in explorer.store.state.entries[:2]]
    assert all(check is not None and check.equal and "seed 5" in check.text for check in checks)


def die(*given: object, control: Control) -> None:
    os._exit(3)


@pytest.mark.parametrize(("task", "target"), [(Task.RUN, "run"), (Task.VERIFY, "verify_variant")])
def test_a_crash_ends_as_a_message_and_the_next_run_works(
    qtbot: QtBot, explorer: Explorer, monkeypatch: pytest.MonkeyPatch, task: Task, target: str
) -> None:
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    start = explorer.job_list.start

    def elsewhere(title: str, asked: str, *given: object, **more: object) -> int:
        instead = {f"app.run_work:{target}": "tests.app.test_runs:die"}.get(asked, asked)
        return start(title, instead, *given, **more)  # type: ignore[arg-type] # the arguments are passed on as they came

    monkeypatch.setattr(explorer.job_list, "start", elsewhere)
    explorer.runs.start(task, ("B",), Wish(repeats=1))
    wait(qtbot, explorer)
    progress = explorer.runs.progress
    assert progress.stage == Stage.FAILED
    assert "exit code 3" in progress.text
    monkeypatch.undo()
    explorer.runs.start(task, ("B",), Wish(repeats=1))
    wait(qtbot, explorer)
    assert explorer.runs.progress.stage == Stage.DONE


STARVED = pytest.mark.skipif(sys.platform != "linux", reason="the worker is limited as Linux does it")


@pytest.mark.parametrize(
    ("text", "instead", "said"),
    [
        pytest.param(DEADLOCK, "stuck", "deadlock: devices wait for each other", id="deadlock"),
        pytest.param(ENDLESS, "soon", "did not end within 8 s", id="endless loop", marks=pytest.mark.full),
        pytest.param(sorting(1 << 28), "starved", "ran out of memory on 4 CPU devices", id="memory", marks=STARVED),
    ],
)
def test_a_run_that_ends_badly_says_how_and_the_window_goes_on(
    qtbot: QtBot,
    explorer: Explorer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    text: str,
    instead: str,
    said: str,
) -> None:
    (tmp_path / "bad.hlo").write_text(text)
    explorer.open(str(tmp_path / "bad.hlo"))
    wait(qtbot, explorer)
    start = explorer.job_list.start

    def elsewhere(title: str, asked: str, *given: object, **more: object) -> int:
        return start(title, asked.replace("app.run_work:run", f"tests.app.endings:{instead}"), *given, **more)  # type: ignore[arg-type] # the arguments are passed on as they came

    monkeypatch.setattr(explorer.job_list, "start", elsewhere)
    explorer.runs.start(Task.RUN, ("A",), Wish(repeats=1))
    wait(qtbot, explorer)
    progress = explorer.runs.progress
    assert progress.stage == Stage.FAILED
    assert said in progress.text
    monkeypatch.undo()
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    explorer.runs.start(Task.RUN, ("A",), Wish(repeats=1))
    wait(qtbot, explorer)
    assert explorer.runs.progress.stage == Stage.DONE, explorer.runs.progress.text


def test_a_run_can_be_cancelled(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    explorer.runs.start(Task.RUN, ("A", "B"), Wish(repeats=10_000))
    explorer.runs.start(Task.RUN, ("A",), Wish())  # one at a time: nothing happens
    qtbot.waitUntil(lambda: explorer.jobs()[0].fraction > 0.3, timeout=LONG)
    explorer.cancel(explorer.runs.progress.job)
    qtbot.waitUntil(lambda: explorer.runs.progress.stage == Stage.CANCELLED, timeout=LONG)
    assert rows_of(explorer.store.state, explorer.runs.outcome) == ()


def test_opening_another_module_forgets_runs(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    explorer.runs.start(Task.RUN, ("A",), Wish(repeats=1))
    wait(qtbot, explorer)
    assert len(rows_of(explorer.store.state, explorer.runs.outcome)) == 1
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    assert explorer.runs.progress.stage == Stage.IDLE
    assert rows_of(explorer.store.state, explorer.runs.outcome) == ()


def test_the_platforms_of_this_machine_are_found(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.perform("show-runs")
    qtbot.waitUntil(lambda: bool(explorer.runs.platforms), timeout=LONG)
    platforms = {platform.name: platform for platform in explorer.runs.platforms}
    assert set(platforms) == {"cpu", "gpu", "tpu"}
    assert not platforms["cpu"].problem
    assert all(platform.count or platform.problem for platform in platforms.values())


def compiled(module: object, plan: object, target: str, spec: object, folder: str, *, control: Control) -> Compilation:
    """What the job would give where the compiler is installed."""
    name = "TPU compiler, default"
    rows = (CompiledRow("", name, 10, 1, 10_000_000, 9_000_000, counts=True, link_load=1.0, seconds=1.0),)
    data = SCHEDULE.read_bytes()
    return Compilation(
        rows, (keep(folder, data, ".schedule.txt.gz"),), MachineSpec("tpu-v4", "2x2x2", "x=8;order=ring"), ("a note",)
    )


def test_what_the_compiler_made_is_shown_beside_the_plans(
    qtbot: QtBot, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer.open(str(MODULE))
    wait(qtbot, explorer)
    start = explorer.job_list.start

    def elsewhere(title: str, asked: str, *given: object, **more: object) -> int:
        instead = {"app.run_work:compile_plan": "tests.app.test_runs:compiled"}.get(asked, asked)
        return start(title, instead, *given, **more)  # type: ignore[arg-type] # the arguments are passed on as they came

    monkeypatch.setattr(explorer.job_list, "start", elsewhere)
    before = explorer.store.state
    explorer.runs.compile("tpu:v4:2x2x2")
    wait(qtbot, explorer)
    shown = explorer.store.state.entries[-1]
    assert explorer.store.state.active == before.active
    assert shown.title == "TPU compiler, default"
    assert shown.recording is not None
    assert (shown.recording.kind, shown.recording.target) == (RecordingKind.SCHEDULE, "tpu:v4:2x2x2")
    assert shown.variant is not None
    assert shown.variant.source is Origin.COMPILER
    assert [row.key for row in explorer.runs.compiled] == [shown.key]
    assert explorer.runs.compiling.notes == ("a note",)
    explorer.perform("undo")
    assert explorer.store.state.entries == before.entries
    assert [row.key for row in explorer.runs.compiled] == [""]


def test_a_missing_compiler_says_what_to_install(qtbot: QtBot, explorer: Explorer) -> None:
    explorer.open(str(SAMPLE))
    wait(qtbot, explorer)
    explorer.perform("compile")
    explorer.runs.compile("tpu:v4:1x1x1x1")
    wait(qtbot, explorer)
    assert explorer.runs.compiling.stage == Stage.FAILED
    assert "dimensions" in explorer.runs.compiling.text
