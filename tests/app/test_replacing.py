"""What is open stays until what is to take its place was read, and for good where that cannot be read."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from app.watching import FileWatch
from engine.session import edits
from tests.app.waiting import LONG, opened, settled
from tests.places import SAMPLES

FORWARD = SAMPLES / "mlp_fig2_forward_4_f32.hlo"
TRAIN = SAMPLES / "mlp_fig2_train_4_f32.hlo"
DEADLY = "HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n  ROOT b = f32[2] parameter(2)\n}\n"
"""XLA's parser aborts on it."""
BEYOND = """HloModule m, num_partitions=8

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}

ENTRY e {
  a = f32[8,8] parameter(0)
  b = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[8,8] all-reduce(b), channel_id=1, replica_groups={{0,1},{2,99}}, use_global_device_ids=true, to_apply=add
}
"""


def damaged(folder: Path) -> dict[str, str]:
    """Path of something that cannot be opened → what the notice says about it."""
    lines = FORWARD.read_text("utf-8").splitlines()
    at = next(n for n, line in enumerate(lines) if " dot(" in line)
    lines[at] = lines[at].replace(" dot(", " dott(")
    contents: dict[str, tuple[bytes, str]] = {
        "empty.hlo": (b"", "an empty file"),
        "binary.pb": (bytes(range(1, 255)) * 9, "bytes of something else"),
        "torn.hlo.gz": (gzip.compress(FORWARD.read_bytes())[:-40], "end too early"),
        "cut.hlo": (FORWARD.read_bytes()[:-200], "cut.hlo:"),
        "wrong.hlo": ("\n".join(lines).encode(), f"wrong.hlo:{at + 1}:"),
        "beyond.hlo": (BEYOND.encode(), "device 99, but the module has 8 devices"),
        "deadly.hlo": (DEADLY.encode(), "no parameter(1)"),
        "torn.lapstrake": (b'{"lapstrake_session": 2,', "a session (JSON) was expected"),
        "newer.lapstrake": (b'{"lapstrake_session": 99}', "version 99"),
        "lost.lapstrake": (json.dumps(_about("gone.hlo")).encode(), "there is no such file"),
    }
    for name, (data, _) in contents.items():
        (folder / name).write_bytes(data)
    (folder / "folder").mkdir()
    found = {str(folder / name): said for name, (_, said) in contents.items()}
    return {**found, str(folder / "missing.hlo"): "there is no such file", str(folder / "folder"): "folder"}


def _about(path: str) -> dict[str, object]:
    variant = dict.fromkeys(("budget", "memory_cap", "topology", "mesh", "makespan"))
    variant |= {"key": "A", "module": "1", "name": "", "passes": "", "scheduler": "as-loaded", "chip": "tpu-v4"}
    return {
        "lapstrake_session": 2,
        "modules": [{"key": "1", "path": path, "beside": "", "sha256": ""}],
        "variants": [{**variant, "collapsed": False}],
        "active": "A",
        "base": "A",
        "marks": [],
    }


def test_what_cannot_be_read_leaves_what_is_open(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    before = opened(qtbot, explorer, FORWARD)
    explorer.perform("duplicate")
    qtbot.waitUntil(lambda: settled(explorer), timeout=LONG)
    changed = explorer.store.state
    for path, said in damaged(tmp_path).items():
        explorer.open(path)
        qtbot.waitUntil(lambda: settled(explorer), timeout=LONG)
        assert explorer.store.state == changed, path
        (notice,) = explorer.window.notices.texts()
        assert notice.startswith(f"{Path(path).name} was not opened, and what is open stays.")
        assert said in notice
    assert explorer.documents.session_path == ""
    assert explorer.documents.unsaved
    explorer.perform("undo")
    assert explorer.store.state.entries == before.entries
    opened(qtbot, explorer, TRAIN)
    assert explorer.store.state.path == str(TRAIN)
    assert explorer.window.notices.texts() == ()


def test_nobody_is_asked_about_unsaved_work_for_a_file_that_cannot_be_read(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(qtbot, explorer, FORWARD)
    explorer.perform("duplicate")
    asked: list[bool] = []

    def question(*_: object) -> QMessageBox.StandardButton:
        asked.append(explorer.documents.replacing)
        return QMessageBox.StandardButton.Cancel

    monkeypatch.setattr(QMessageBox, "question", question)
    (tmp_path / "empty.hlo").write_bytes(b"")
    (tmp_path / "torn.lapstrake").write_text("{", "utf-8")
    for name in ("empty.hlo", "torn.lapstrake", "none.hlo"):
        opened(qtbot, explorer, tmp_path / name)
    assert asked == []
    explorer.open(str(TRAIN))
    qtbot.waitUntil(lambda: asked == [True], timeout=LONG)
    assert explorer.store.state.path == str(FORWARD)
    assert explorer.documents.unsaved


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="whoever runs this may read everything")
def test_a_file_that_may_not_be_read_leaves_what_is_open(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    before = opened(qtbot, explorer, FORWARD)
    secret = tmp_path / "secret.hlo"
    shutil.copy(TRAIN, secret)
    secret.chmod(0)
    opened(qtbot, explorer, secret)
    assert explorer.store.state == before
    assert "Permission denied" in explorer.window.notices.texts()[0]


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither")
def test_devices_and_pipes_do_not_stop_the_window(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    before = opened(qtbot, explorer, FORWARD)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, said in ((pipe, "is a pipe"), (Path("/dev/zero"), "is a device")):
        opened(qtbot, explorer, path)
        assert said in explorer.window.notices.texts()[0]
    explorer.opening.add(str(pipe))
    assert explorer.store.state == before


def test_what_is_open_can_be_worked_on_until_the_other_is_read(
    qtbot: QtBot, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(qtbot, explorer, FORWARD)
    asked: list[str] = []
    answers = [QMessageBox.StandardButton.Cancel, QMessageBox.StandardButton.Discard]

    def question(*given: object) -> QMessageBox.StandardButton:
        asked.append(str(given[2]))
        return answers.pop(0)

    monkeypatch.setattr(QMessageBox, "question", question)
    for left in (1, 0):
        explorer.open(str(TRAIN)) if left else explorer.documents.open(str(TRAIN))
        assert explorer.store.state.path == str(FORWARD)
        explorer.store.become("Mark", edits.marked(explorer.store.state, 1000 + left))
        qtbot.waitUntil(lambda left=left: len(answers) == left, timeout=LONG)  # type: ignore[misc] # bound at once
        QCoreApplication.processEvents()
        assert (explorer.store.state.path == str(FORWARD)) == bool(left)
    assert len(asked) == 2
    qtbot.waitUntil(lambda: settled(explorer), timeout=LONG)
    assert explorer.store.state.path == str(TRAIN)


def test_a_module_before_partitioning_says_what_to_dump(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    place = tmp_path / "whole.hlo"
    place.write_text(
        "HloModule whole, num_partitions=4\nENTRY e {\n"
        "  a = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}\n  ROOT b = f32[8,8] negate(a)\n}\n",
        "utf-8",
    )
    opened(qtbot, explorer, place)
    said = explorer.window.collectives.note.text()
    assert "not partitioned yet: it is for 4 partitions" in said
    assert "--xla_dump_hlo_pass_re=spmd-partitioning" in said


def test_a_file_that_went_and_came_again_is_noticed(qtbot: QtBot, tmp_path: Path) -> None:
    place, seen = tmp_path / "step.hlo", list[str]()
    place.write_text("one", "utf-8")
    watch = FileWatch()
    watch.changed.connect(seen.append)
    watch.watch([str(place)])
    for text in ("two", "three"):
        seen.clear()
        place.unlink()
        qtbot.wait(200)
        assert not seen
        place.write_text(text, "utf-8")
        qtbot.waitUntil(lambda: bool(seen), timeout=LONG)
    seen.clear()
    watch.watch([])
    place.write_text("four", "utf-8")
    qtbot.wait(200)
    assert not seen


def test_a_zipped_bundle_is_opened_and_watched(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    bundle = tmp_path / "b.zip"
    _write_bundle(bundle, FORWARD)
    opened(qtbot, explorer, bundle)
    (module,) = explorer.store.state.modules
    assert module.path == str(bundle / "tuned.hlo")
    assert explorer.window.notices.texts() == ()
    seen: list[str] = []
    watch = FileWatch()
    watch.changed.connect(seen.append)
    watch.watch([module.path, str(bundle / "original.hlo.pb")])
    _write_bundle(bundle, TRAIN)
    qtbot.waitUntil(lambda: {module.path, str(bundle / "original.hlo.pb")} <= set(seen), timeout=LONG)


def _write_bundle(path: Path, tuned: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", "{}")
        archive.write(tuned, "tuned.hlo")


def test_a_reading_that_is_cancelled_or_overtaken_leaves_no_trace(qtbot: QtBot, explorer: Explorer) -> None:
    before = opened(qtbot, explorer, FORWARD)
    explorer.open(str(TRAIN))
    explorer.perform("cancel-jobs")
    qtbot.waitUntil(lambda: settled(explorer), timeout=LONG)
    assert explorer.store.state == before
    assert explorer.window.notices.texts() == ()
    assert "cancelled" in explorer.window.statusBar().currentMessage()
    explorer.open(str(SAMPLES / "mlp_chain_forward_4_f32.hlo"))
    opened(qtbot, explorer, TRAIN)
    assert explorer.store.state.path == str(TRAIN)
    assert len(explorer.store.state.modules) == 1


def test_a_module_that_became_unreadable_stays_as_it_was_read(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    place = tmp_path / "step.hlo"
    shutil.copy(FORWARD, place)
    opened(qtbot, explorer, place)
    module = explorer.documents.modules["1"]
    explorer.perform("duplicate")
    qtbot.waitUntil(lambda: settled(explorer), timeout=LONG)
    changed = explorer.store.state
    place.write_text(FORWARD.read_text("utf-8")[:-200], "utf-8")
    qtbot.waitUntil(lambda: bool(explorer.window.notices.texts()), timeout=LONG)
    explorer.perform("reload")
    qtbot.waitUntil(lambda: settled(explorer), timeout=LONG)
    assert explorer.store.state == changed
    assert explorer.documents.modules["1"] is module
    assert "what is shown is as it was read before" in explorer.window.notices.texts()[0]
    shutil.copy(FORWARD, place)
    explorer.perform("reload")
    qtbot.waitUntil(lambda: explorer.documents.modules["1"] is not module and settled(explorer), timeout=LONG)
    assert len(explorer.store.state.entries) == len(changed.entries)
    assert explorer.window.notices.texts() == ()
    assert explorer.documents.unsaved


def test_a_chip_that_nobody_knows_stays_with_the_session_that_names_it(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path
) -> None:
    content = json.dumps(_about(str(FORWARD))).replace("tpu-v4", "tpu-v99")
    (tmp_path / "odd.lapstrake").write_text(content, "utf-8")
    odd = opened(qtbot, explorer, tmp_path / "odd.lapstrake")
    assert "no chip is called 'tpu-v99'" in odd.entries[0].error
    explorer.documents.add(str(TRAIN))
    qtbot.waitUntil(lambda: settled(explorer) and len(explorer.store.state.modules) == 2, timeout=LONG)
    (notice,) = explorer.window.notices.texts()
    assert notice.startswith(f"{TRAIN.stem} was added for the chip of what is open, which cannot be used: no chip is ")
    both = explorer.store.state
    assert [both.alike(entry) for entry in both.entries] == ["", *("A" for _ in both.entries[1:])]
    explorer.open(str(TRAIN))
    qtbot.waitUntil(lambda: settled(explorer) and Path(explorer.store.state.path) == TRAIN, timeout=LONG)
    now = explorer.store.state
    assert [entry.error for entry in now.entries] == [""] * len(now.entries)
    assert {entry.machine.chip for entry in now.entries} == {"tpu-v4"}
    (notice,) = explorer.window.notices.texts()
    assert notice.startswith("Opened for tpu-v4, since the chip of what was open before cannot be used: no chip is ")
