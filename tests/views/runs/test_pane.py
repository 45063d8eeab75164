"""The pane Runs in every state: nothing open, ready, running, cancelled, failed, too few devices, done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QPushButton, QTableWidget
from pytestqt.qtbot import QtBot

from engine.session import edits
from engine.session.plan import AS_LOADED, Plan
from engine.session.session import Facts
from tests.views.fake_host import FakeHost, host_of
from tests.views.runs.fake_runner import CPU, GPU, TPU, FakeRunner, timed, verified
from tests.views.synthetic import variant
from views.ports import JobState
from views.runs.message import Message
from views.runs.pane import RunsPane
from views.runs.runner import CompiledRow, Outcome, Progress, Stage, Task

BEST = Plan("decompose,async-permute", "bottom-up")


@pytest.fixture
def host() -> FakeHost:
    made = host_of(variant(1, plan=AS_LOADED, name="as loaded"), variant(1, overlap=True, plan=BEST, name="decomposed"))
    facts = Facts("m", 10, 1, 8, scheduled=False, sha256="")
    made.store.settle(modules=edits.informed(made.store.state, "1", facts).modules)
    return made


@pytest.fixture
def runner() -> FakeRunner:
    made = FakeRunner()
    made.platforms = (CPU, GPU, TPU)
    return made


@pytest.fixture
def pane(qtbot: QtBot, host: FakeHost, runner: FakeRunner) -> RunsPane:
    made = RunsPane(host, runner)
    qtbot.addWidget(made)
    made.resize(740, 260)
    made.show()
    return made


def ways(message: Message) -> dict[str, QPushButton]:
    layout = message.buttons
    items = (item.widget() for n in range(layout.count()) if (item := layout.itemAt(n)) is not None)
    return {button.text(): button for button in items if isinstance(button, QPushButton)}


def cells(table: QTableWidget, row: int) -> list[str]:
    items = (table.item(row, column) for column in range(table.columnCount()))
    return [item.text() if item is not None else "" for item in items]


def test_nothing_open_says_the_next_step(qtbot: QtBot) -> None:
    runner = FakeRunner()
    pane = RunsPane(FakeHost(), runner)
    qtbot.addWidget(pane)
    assert pane.devices.message.text.text() == "Open a module to run it."
    assert pane.compiler.message.text.text() == "Open a module to have it compiled."
    assert not any(button.isEnabled() for button in pane.devices.controls.buttons.values())
    pane.came_into_view()
    assert runner.looks == 1
    runner.platforms = (CPU,)
    pane.came_into_view()
    assert runner.looks == 1


def test_base_and_active_run_unless_others_are_chosen(pane: RunsPane, runner: FakeRunner, host: FakeHost) -> None:
    controls = pane.devices.controls
    controls.repeats.setValue(3)
    controls.seed.setValue(7)
    controls.buttons[Task.RUN].click()
    task, keys, wish = runner.started[-1]
    assert (task, keys, wish.repeats, wish.seed, wish.platform) == (Task.RUN, ("A", "B"), 3, 7, "cpu")
    pane.devices.choice.item(0).setCheckState(Qt.CheckState.Unchecked)
    controls.buttons[Task.PROFILE].click()
    assert runner.started[-1][:2] == (Task.PROFILE, ("B",))
    host.store.become("Activate", edits.activated(host.store.state, "A"))
    assert pane.devices.choice.keys() == ()  # A was taken out by hand, and stays out
    assert not controls.buttons[Task.RUN].isEnabled()
    assert pane.devices.message.text.text().startswith("Choose at least one")


def test_while_it_runs_it_shows_progress_and_can_be_cancelled(
    pane: RunsPane, runner: FakeRunner, host: FakeHost
) -> None:
    runner.progress = Progress(Stage.RUNNING, "timing A, B on 8 CPU devices", job=5, task=Task.RUN)
    runner.tell()
    host.set_jobs(JobState(5, "timing", 0.4, "running, 4 of 10"))
    message = pane.devices.message
    assert message.text.text() == "timing A, B on 8 CPU devices"
    assert message.bar.value() == 40
    assert message.bar.text() == "running, 4 of 10 40%"
    host.set_jobs(JobState(5, "timing", 0.4, "reading 100%pinned/%v/%m.hlo"))
    assert message.bar.text() == "reading 100%pinned/%v/%m.hlo 40%"
    host.set_jobs(JobState(5, "timing", 0.4, ""))
    assert message.bar.text() == "40%"
    assert not pane.devices.controls.buttons[Task.RUN].isEnabled()
    ways(message)["Cancel"].click()
    assert host.cancelled == [5]


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (Stage.FAILED, "deadlock: devices wait for each other in a collective forever"),
        (Stage.FAILED, "step needs 3.00 TiB on 8 CPU devices together, but this machine has 16.0 GiB available"),
        (Stage.CANCELLED, "Cancelled."),
    ],
)
def test_what_went_wrong_stands_in_place_with_a_way_out(
    pane: RunsPane, runner: FakeRunner, host: FakeHost, stage: Stage, text: str
) -> None:
    pane.devices.controls.buttons[Task.VERIFY].click()
    runner.progress = Progress(stage, "verifying B", text=text, task=Task.VERIFY)
    runner.tell()
    message = pane.devices.message
    assert message.text.text() == text
    assert message.bar.isHidden()
    ways(message)["Try again"].click()
    assert [started[:2] for started in runner.started] == [(Task.VERIFY, ("A", "B"))] * 2
    ways(message)["Show the log"].click()
    assert host.performed == ["show-log"]


def test_too_few_devices_offer_the_cpu_or_one_device_alone(pane: RunsPane, runner: FakeRunner) -> None:
    controls, message = pane.devices.controls, pane.devices.message
    controls.choose("tpu")
    assert message.text.text() == "The module runs on 8 devices, but only 1 is attached."
    assert not controls.buttons[Task.RUN].isEnabled()
    ways(message)["Time one device's compute alone"].click()
    assert controls.buttons[Task.RUN].isEnabled()
    assert "its numbers mean nothing" in pane.devices.facts.text()
    assert controls.wish().alone
    controls.choose("gpu")
    assert not controls.wish().alone
    ways(message)["Look again"].click()
    assert runner.looks == 1
    ways(message)["Use 8 CPU devices, for the numbers"].click()
    assert controls.wish().platform == "cpu"
    assert controls.buttons[Task.RUN].isEnabled()


def test_results_are_a_table_with_their_origin(pane: RunsPane, runner: FakeRunner, host: FakeHost) -> None:
    loaded, ours = (entry.variant for entry in host.store.state.entries)
    assert loaded is not None
    assert ours is not None
    runner.outcomes = {loaded: timed(100, 101), ours: timed(50, 51)}
    runner.tell()
    table = pane.devices.table
    assert table.rowCount() == 2
    assert cells(table, 1)[:5] == ["B", "decomposed", "50.5 µs", "500 ns", "0.502 ×"]
    assert pane.devices.origin.text().endswith("never overlap")
    runner.outcomes[ours] = Outcome(verification=verified(equal=False))
    runner.tell()
    numbers = table.item(1, 5)
    assert numbers is not None
    assert numbers.text() == "NOT EQUAL"
    assert numbers.foreground().color().name() == host.theme.error.lower()
    table.cellClicked.emit(0, 0)
    assert host.store.state.active == "A"


def test_inputs_come_from_a_file_until_that_is_taken_away(
    pane: RunsPane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(tmp_path / "in.npz"), ""))
    controls = pane.devices.controls
    controls.inputs.click()
    assert controls.wish().inputs == str(tmp_path / "in.npz")
    assert not controls.seed.isEnabled()
    controls.inputs.click()
    assert controls.wish().inputs == ""


def test_the_compiler_is_asked_for_what_the_target_says(pane: RunsPane, runner: FakeRunner, host: FakeHost) -> None:
    pane.show_compiler()
    page = pane.compiler
    assert page.target.currentText() == "tpu:v4:2x2x2"
    page.target.setCurrentText("cuda:h100:1x1x8")
    runner.tell()
    assert page.target.currentText() == "cuda:h100:1x1x8"
    page.button.click()
    assert runner.targets == ["cuda:h100:1x1x8"]
    runner.compiling = Progress(Stage.FAILED, "compiling", text="install it with: pip install 'lapstrake[cuda]'")
    runner.tell()
    assert "pip install" in page.message.text.text()
    ways(page.message)["Try again"].click()
    assert len(runner.targets) == 2
    default = CompiledRow(
        "A", "TPU compiler, default", 1_000, 10, 1_000_000, 900_000, counts=True, link_load=1, seconds=2
    )
    ours = CompiledRow("", "ours, compiled by it", 800, 0, 800_000, 700_000, counts=False, link_load=2, seconds=2)
    runner.compiled, runner.compiling = (default, ours), Progress(Stage.DONE, notes=("Compiled by libtpu 0.0.51.",))
    runner.tell()
    assert cells(page.table, 1)[:4] == ["", ours.name, "800 !", "−20 %"]
    assert "no time here was measured" in page.origin.text()
    assert "too good" in page.origin.text()
    host.store.become("Activate", edits.activated(host.store.state, "B"))
    page.table.cellClicked.emit(1, 0)
    assert host.store.state.active == "B"
    page.table.cellClicked.emit(0, 0)
    assert host.store.state.active == "A"


def test_what_the_buttons_do_is_copied_as_commands(pane: RunsPane, host: FakeHost) -> None:
    controls = pane.devices.controls
    controls.as_job.setChecked(True)  # Qt's signature
    copied = {}
    for action in controls.copy.menu().actions():
        action.trigger()
        copied[action.text()] = QGuiApplication.clipboard().text()
    assert copied["Run"].startswith("lapstrake run step.hlo --chip tpu-v4")
    assert "--as-job" in copied["Run"]
    assert copied["Profile"].endswith("--profile step.xplane.pb")
    assert copied["Verify"].startswith("lapstrake verify step.hlo")
    pane.compiler.copy.click()
    assert "--target tpu:v4:2x2x2" in QGuiApplication.clipboard().text()


def test_a_file_that_could_not_be_read_is_not_waited_for(pane: RunsPane, host: FakeHost) -> None:
    entries = tuple(replace(e, variant=None) for e in host.store.state.entries)
    host.store.reset(replace(host.store.state, entries=entries))
    assert pane.devices.message.text.text() == "Waiting for A, B."
    host.store.settle(problem="no HLO")
    assert pane.devices.message.text.text() == "The file could not be read."
    failed = tuple(replace(e, error="out of range") for e in entries)
    host.store.reset(replace(host.store.state, entries=failed, problem=""))
    assert pane.devices.message.text.text() == "No variant has a result."
