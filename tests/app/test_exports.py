"""The Export tab with real jobs: files, a search with its bundle, and every way in which that ends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.explorer import Explorer
from app.exporting import Begun, Found
from app.job_facts import known_of
from app.settings import Settings
from app.work import facts_of
from engine.control import Cancelled
from engine.export.contents import FORMATS
from engine.export.tuned import Bundled
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.session.choices import DIMENSIONS
from engine.session.judging import Judgement, Ruling
from engine.session.plan import Plan
from engine.session.tuning import Trial
from tests.places import SAMPLES
from views.export.port import Known, Outcome, Stage, Wish

SAMPLE = SAMPLES / "mlp_fig3_train_2x2_f32.hlo"
GAINS = SAMPLES / "decoder_fig3_scan_2x2_f32.hlo"
LONG = 120_000


@pytest.fixture
def sample() -> Path:
    return SAMPLE


@pytest.fixture
def explorer(qtbot: QtBot, tmp_path: Path, sample: Path) -> Iterator[Explorer]:
    made = Explorer(Settings(tmp_path / "window.ini"))
    made.show()
    qtbot.waitExposed(made.window)
    made.open(str(shutil.copy(sample, tmp_path / "step.hlo")))
    store = made.store
    qtbot.waitUntil(
        lambda: store.state.facts is not None and not any(e.pending for e in store.state.entries), timeout=LONG
    )
    yield made
    made.window.close()
    made.window.deleteLater()
    made.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def ended(qtbot: QtBot, explorer: Explorer) -> Outcome:
    qtbot.waitUntil(lambda: explorer.exports.progress.stage is Stage.IDLE, timeout=LONG)
    outcome = explorer.exports.progress.outcome
    assert outcome is not None
    return outcome


def test_every_format_is_written_beside_the_module(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    explorer.perform("export")
    assert explorer.export.isVisible()
    for name, kind in FORMATS.items():
        explorer.export.choose(name)
        explorer.export.file.export.click()
        qtbot.waitUntil(lambda: not explorer.exports.writing.running, timeout=LONG)
        outcome = explorer.exports.writing.outcome
        assert outcome is not None
        assert outcome.good, outcome.said
        assert (tmp_path / f"step.B{kind.suffix}").stat().st_size > 0
    assert "is_scheduled=true" in (tmp_path / "step.B.hlo").read_text()
    assert read_here((tmp_path / "step.B.hlo").read_bytes()).is_scheduled
    assert "as loaded" in (tmp_path / "step.B.html").read_text()
    explorer.export.file.path.setText(str(tmp_path / "none" / "step.html"))
    explorer.export.file.export.click()
    qtbot.waitUntil(lambda: not explorer.exports.writing.running, timeout=LONG)
    outcome = explorer.exports.writing.outcome
    assert outcome is not None
    assert not outcome.good
    assert "cannot write" in outcome.said


def test_nothing_is_written_over_what_is_open(explorer: Explorer, tmp_path: Path) -> None:
    session = tmp_path / "a.lapstrake"
    explorer.saving.save_to(str(session))
    before = [(path, path.read_bytes()) for path in (tmp_path / "step.hlo", session)]
    explorer.export.choose("hlo")
    for path, content in before:
        explorer.export.file.path.setText(str(path.parent / "." / path.name))
        explorer.export.file.export.click()
        outcome = explorer.exports.writing.outcome
        assert outcome is not None
        assert not outcome.good
        assert "nothing is written over it" in outcome.said
        assert path.read_bytes() == content


def test_a_place_that_cannot_be_written_is_refused_before_the_search(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path
) -> None:
    explorer.perform("tune")
    (tmp_path / "file").write_text("no folder", "utf-8")
    (tmp_path / "mine").mkdir()
    page, jobs = explorer.export.bundle, explorer.jobs()
    for name, said in (("file/a.bundle", "cannot write"), ("mine", "is no bundle"), ("none/a.zip", "cannot write")):
        page.path.setText(str(tmp_path / name))
        page.tune.click()
        outcome = explorer.exports.progress.outcome
        assert outcome is not None
        assert not outcome.good
        assert said in outcome.said
        assert "what is there is as it was" in outcome.way_out
    assert explorer.exports.progress.stage is Stage.IDLE
    assert len(explorer.jobs()) == len(jobs)
    assert sorted(
        path.name for path in tmp_path.iterdir() if not path.name.startswith(("step", "window", "autosave"))
    ) == [
        "file",
        "mine",
    ]


@pytest.mark.parametrize("sample", [GAINS])
def test_a_search_ends_in_a_bundle(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    explorer.perform("tune")
    page = explorer.export.bundle
    assert "A bare dump" in page.known.text()
    for name, choice in page.dimensions.items():
        choice.setChecked(name in ("ring", "budget"))
    page.tune.click()
    assert page.stop.isVisible()
    outcome = ended(qtbot, explorer)
    assert outcome.good, outcome.said
    assert "predicted by the model" in outcome.said
    assert "Equal on 4 cpu devices" in outcome.said
    manifest = json.loads((tmp_path / "step.bundle" / "manifest.json").read_text())
    assert manifest["search"]["dimensions"] == ["ring", "budget"]
    assert len(manifest["search"]["trials"]) == len(explorer.exports.progress.trials) == page.table.rowCount()
    assert manifest["verification"]["done"]
    best = explorer.exports.progress.best
    assert best is not None
    assert manifest["plan"]["passes"] == best.passes
    page.table.clearSelection()
    page.add.click()
    entry = explorer.store.state.active_entry
    assert entry is not None
    assert entry.plan == page.table.plan
    page.copy.click()
    assert QGuiApplication.clipboard().text().startswith("lapstrake tune ")


def test_a_search_is_stopped_and_its_best_bundled(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    explorer.perform("tune")
    page = explorer.export.bundle
    page.check.setChecked(False)
    page.tune.click()
    qtbot.waitUntil(lambda: len(explorer.exports.progress.trials) >= 2, timeout=LONG)
    page.stop.click()
    outcome = ended(qtbot, explorer)
    assert (outcome.good, outcome.said) == (False, "Stopped; no bundle was written.")
    assert "Bundle the best so far" in outcome.way_out
    assert not (tmp_path / "step.bundle").exists()
    assert page.table.rowCount() >= 2
    page.bundle.click()
    outcome = ended(qtbot, explorer)
    assert outcome.good, outcome.said
    assert "Not verified: verification was switched off" in outcome.said
    assert (tmp_path / "step.bundle" / "lapstrake_job.py").is_file()


def test_a_tpu_s_compiler_judges_every_plan(
    explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its trials have its costs: they are shown, and stay out of the bundle's, which are the model's."""
    started: list[tuple[str, tuple[Any, ...], dict[str, Callable[[Any], None]]]] = []

    def start(title: str, target: str, *arguments: Any, **ways: Callable[[Any], None]) -> int:
        started.append((target, arguments, ways))
        return 0

    monkeypatch.setattr(explorer.job_list, "start", start)
    exports, target = explorer.exports, "tpu:v4:2x2x1"
    exports.tune(Wish(str(tmp_path / "b"), frozenset(DIMENSIONS), 60.0, None, False, target))
    asked, arguments, ways = started.pop()
    assert asked == "app.exporting:search_compiler"
    assert arguments[2:] == (target, None, 60.0)
    plan = Plan("flatten,decompose", "improve")
    ways["heard"](Begun(900, f"the compiler for {target}"))
    ways["heard"](Trial(plan, None, "refused"))
    rulings = (Ruling("as loaded", None, 900, 900), Ruling(plan.passes, plan, 700, 700))
    ways["done"](Found(plan, finished=True, dimensions=(), judgement=Judgement(target, {}, rulings)))
    asked, arguments, ways = started.pop()
    assert asked == "app.exporting:write_bundle_of"
    assert arguments[2:4] == (plan, ())
    ways["done"](Bundled("b", written=True, verification=None, unverified="switched off"))
    outcome = exports.progress.outcome
    assert outcome is not None
    assert "By the compiler for tpu:v4:2x2x1: 700 cycles (−22 %)" in outcome.said
    exports.tune(Wish(str(tmp_path / "b"), frozenset({"ring"}), 60.0, None, False, target))
    assert started.pop()[0] == "app.exporting:search"
    ways["failed"](Cancelled())


def test_what_fails_is_said_and_nothing_is_lost(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    page = explorer.export.bundle
    (tmp_path / "mine").mkdir()
    page.dimensions["ring"].setChecked(True)
    for name, choice in page.dimensions.items():
        choice.setChecked(name == "ring")
    page.cap.setText("1KiB")
    page.tune.click()
    outcome = ended(qtbot, explorer)
    assert "fits a memory cap of 1.00 KiB" in outcome.said
    assert all(trial.metrics is None for trial in explorer.exports.progress.trials)
    page.cap.clear()
    page.path.setText(str(tmp_path / "mine"))
    wish = page.wish()
    assert wish is not None
    explorer.exports.bundle(wish, Plan("decompose", "bottom-up"))
    outcome = ended(qtbot, explorer)
    assert "exists and is no bundle" in outcome.said
    assert "what is there is as it was" in outcome.way_out
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_plan_that_changes_the_numbers_is_refused(
    qtbot: QtBot, explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = explorer.export.bundle
    wish = page.wish()
    assert wish is not None
    monkeypatch.setattr("app.exports._BUNDLE", "tests.app.slow:refuse_bundle")
    explorer.exports.bundle(wish, Plan("decompose", "bottom-up"))
    outcome = ended(qtbot, explorer)
    assert not outcome.good
    assert outcome.said.startswith("No bundle was written: a plan that changes the numbers is no plan. NOT EQUAL")
    assert "Bundle another plan" in outcome.way_out


def test_another_file_forgets_what_was_found(qtbot: QtBot, explorer: Explorer, tmp_path: Path) -> None:
    page = explorer.export.bundle
    page.tune.click()
    qtbot.waitUntil(lambda: bool(explorer.exports.progress.trials), timeout=LONG)
    explorer.open(str(shutil.copy(SAMPLE, tmp_path / "other.hlo")))
    qtbot.waitUntil(lambda: explorer.exports.progress.stage is Stage.IDLE, timeout=LONG)
    assert explorer.store.state.path.endswith("other.hlo")
    assert not explorer.exports.progress.trials
    qtbot.waitUntil(lambda: explorer.store.state.facts is not None, timeout=LONG)


def _known(module: Module) -> Known:
    return known_of(module, facts_of(module))


def test_what_is_known_of_the_job(tmp_path: Path) -> None:
    text = SAMPLE.read_bytes()
    assert "A bare dump" in _known(read_here(text, str(SAMPLE))).said
    elided = text.replace(b"ENTRY", b"%c () -> f32[9] {\n  ROOT %e = f32[9] constant({...})\n}\n\nENTRY", 1)
    found = _known(read_here(elided, str(SAMPLE)))
    assert not found.able
    assert "elided" in found.said
    capture = {
        "fingerprint": {},
        "signature": {},
        "versions": {},
        "scheduled": {"sha256": ""},
        "obstacle": "",
        "name": "f",
    }
    (tmp_path / "capture.json").write_text(json.dumps(capture))
    for name, order_only in (("partitioned.hlo", False), ("scheduled.hlo", True)):
        (tmp_path / name).write_bytes(text)
        known = _known(read_here(text, str(tmp_path / name)))
        assert (known.able, known.order_only) == (True, order_only)
    (tmp_path / "capture.json").write_text(json.dumps({**capture, "obstacle": "it calls back to the host"}))
    blocked = _known(read_here(text, str(tmp_path / "partitioned.hlo")))
    assert not blocked.able
    assert "it calls back to the host" in blocked.said
