"""The Export tab without an application: what it asks for, and how it shows every way in which that can end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtWidgets import QApplication, QMessageBox, QTableWidgetItem
from pytestqt.qtbot import QtBot

from engine.export.contents import FORMATS
from engine.session.choices import DIMENSIONS
from engine.session.plan import AS_LOADED, Plan
from engine.session.session import FIRST, ModuleFile
from engine.session.tuning import Trial
from tests.patience import LONG
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.export.pane import BUNDLE, ExportPane
from views.export.port import Known, Outcome, Progress, Stage, Wish, Writing
from views.theme import DARK

SLOW = Trial(Plan("decompose", "memory"), variant(1, overlap=False).metrics)
FAST = Trial(Plan("decompose{ring=both}", "bottom-up"), variant(1, overlap=True).metrics)
NONE = Trial(Plan("decompose", "top-down"), None, "no order fits the memory cap of 1 GiB")


class FakeExporter:
    """Implements `views.export.port.Exporter`; remembers what it was asked for."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.writing = Writing()
        self.known = Known("captured")
        self.targets: tuple[str, ...] = ()
        self.listeners: list[Callable[[], None]] = []
        self.asked: list[object] = []

    def watch(self, listener: Callable[[], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def become(self, **values: object) -> None:
        for name, value in values.items():
            setattr(self, name, value)
        for listener in self.listeners:
            listener()

    def write(self, to: str, path: str) -> None:
        self.asked.append((to, path))

    def kept(self, path: str) -> bool:
        return False

    def tune(self, wish: Wish) -> None:
        self.asked.append(wish)

    def bundle(self, wish: Wish, plan: Plan) -> None:
        self.asked.append((wish, plan))

    def stop(self) -> None:
        self.asked.append("stop")

    def copy(self, text: str) -> None:
        self.asked.append(text)

    def suggested(self, suffix: str) -> str:
        return f"/here/step{suffix}"


@pytest.fixture
def exporter() -> FakeExporter:
    return FakeExporter()


@pytest.fixture
def host() -> FakeHost:
    return host_of(variant(1, plan=AS_LOADED), variant(1, plan=Plan("decompose,async-permute", "bottom-up")))


@pytest.fixture
def pane(qtbot: QtBot, host: FakeHost, exporter: FakeExporter) -> ExportPane:
    made = ExportPane(host, exporter)
    qtbot.addWidget(made)
    made.resize(900, 500)
    made.show()
    qtbot.waitExposed(made)
    return made


def cell(pane: ExportPane, row: int, column: int) -> QTableWidgetItem:
    item = pane.bundle.table.item(row, column)
    assert item is not None
    return item


class TestFile:
    def test_every_format_has_a_page_a_path_and_a_command(self, pane: ExportPane, exporter: FakeExporter) -> None:
        for name, kind in FORMATS.items():
            pane.choose(name)
            assert kind.title in pane.file.what.text()
            assert kind.holds in pane.file.what.text()
            assert pane.file.path.text() == f"/here/step.B{kind.suffix}"
            pane.file.export.click()
            assert exporter.asked[-1] == (name, f"/here/step.B{kind.suffix}")
            pane.file.copy.click()
            command = str(exporter.asked[-1])
            assert command.startswith("lapstrake report" if name == "report" else "lapstrake export step.hlo")
            assert f"/here/step.B{kind.suffix}" in command
            assert name == "report" or f"--to {name}" in command

    def test_a_path_that_was_typed_stays(self, pane: ExportPane) -> None:
        pane.choose("hlo")
        pane.file.path.setText("mine.hlo")
        pane.choose("pb")
        assert pane.file.path.text() == "mine.hlo.pb", "what a format proposes at the end follows the format"
        pane.file.path.setText("mine.txt")
        pane.choose("hlo")
        assert pane.file.path.text() == "mine.txt"

    def test_a_path_goes_with_its_module(self, pane: ExportPane, host: FakeHost) -> None:
        pane.choose("hlo")
        pane.file.path.setText("mine.hlo")
        session = host.store.state
        host.store.reset(replace(session, modules=(ModuleFile(FIRST, "other.hlo"),)))
        assert pane.file.path.text() == "/here/step.B.hlo"

    def test_a_file_that_is_there_is_not_overwritten_unasked(
        self, pane: ExportPane, exporter: FakeExporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        there = tmp_path / "there.hlo"
        there.write_text("mine", "utf-8")
        answers = [QMessageBox.StandardButton.Cancel, QMessageBox.StandardButton.Save]
        monkeypatch.setattr(QMessageBox, "question", lambda *_: answers.pop(0))
        pane.choose("hlo")
        pane.file.path.setText(str(there))
        pane.file.export.click()
        assert exporter.asked == []
        pane.file.export.click()
        assert exporter.asked == [("hlo", str(there))]
        assert answers == []

    def test_writing_and_how_it_ended(self, pane: ExportPane, exporter: FakeExporter) -> None:
        pane.choose("costs")
        exporter.become(writing=Writing("costs", running=True))
        assert not pane.file.export.isEnabled()
        assert pane.file.export.text() == "Exporting …"
        exporter.become(writing=Writing("costs", outcome=Outcome(False, "cannot write it", "Name another file.")))
        assert pane.file.outcome.isVisible()
        assert "cannot write it" in pane.file.outcome.text()
        assert "Name another file." in pane.file.outcome.text()
        pane.choose("hlo")
        assert not pane.file.outcome.isVisible()
        assert pane.file.export.isEnabled()

    def test_a_variant_that_is_not_there_yet(self, pane: ExportPane, host: FakeHost) -> None:
        pane.choose("hlo")
        session = host.store.state
        entries = tuple(replace(e, variant=None) for e in session.entries)
        host.store.reset(replace(session, entries=entries))
        assert not pane.file.export.isEnabled()
        assert pane.file.export.toolTip() == "Waiting for the active variant"


class TestBundle:
    def test_what_is_asked_for(self, pane: ExportPane, exporter: FakeExporter) -> None:
        page = pane.bundle
        page.cap.setText("28GiB")
        page.dimensions["ring"].setChecked(False)
        assert page.search.text() == f"{len(DIMENSIONS) - 1} of {len(DIMENSIONS)}"
        exporter.become(targets=("tpu:v4:2x2x2",))
        page.judge.setCurrentIndex(1)
        page.seconds.setValue(0)
        page.tune.click()
        searched = frozenset(DIMENSIONS) - {"ring"}
        assert exporter.asked == [Wish("/here/step.bundle", searched, None, 28 << 30, True, "tpu:v4:2x2x2")]
        assert page.command() == (
            "lapstrake tune step.hlo --chip tpu-v4 --passes decompose,async-permute --scheduler bottom-up --search "
            "scheduler,fusion,async,chain,unroll,form,budget,sites --memory-cap 28.0GiB --target tpu:v4:2x2x2 -o "
            "/here/step.bundle"
        )

    def test_nothing_to_search_is_said(self, pane: ExportPane) -> None:
        for choice in pane.bundle.dimensions.values():
            choice.setChecked(False)
        assert not pane.bundle.tune.isEnabled()
        assert pane.bundle.tune.toolTip() == "Tick what is to be searched"

    def test_a_cap_that_is_none_is_said_in_its_place(self, pane: ExportPane, exporter: FakeExporter) -> None:
        pane.bundle.cap.setText("a lot")
        pane.bundle.tune.click()
        assert exporter.asked == []
        assert "an amount of memory such as 28GiB was expected" in pane.bundle.outcome.text()
        pane.bundle.cap.clear()
        pane.bundle.tune.click()
        assert len(exporter.asked) == 1
        assert not pane.bundle.outcome.isVisible()

    def test_trials_come_while_it_runs_best_first(
        self, pane: ExportPane, exporter: FakeExporter, host: FakeHost
    ) -> None:
        page = pane.bundle
        assert not page.bundle.isEnabled()
        assert not page.stop.isVisible()
        begun = Progress(Stage.SEARCHING, 0.25, "trying", SLOW.makespan, (SLOW,), costs="the model")
        exporter.become(progress=begun)
        assert page.stop.isVisible()
        assert page.bar.isVisible()
        assert not page.tune.isEnabled()
        exporter.become(progress=replace(begun, trials=(SLOW, NONE, FAST)))
        assert page.doing.text().startswith("3 plans tried, 1 not possible; best so far ")
        assert "by the costs of the model" in page.doing.text()
        cells = [[cell(pane, r, c).text() for c in (0, 4, 6)] for r in range(page.table.rowCount())]
        assert [c[1] for c in cells] == ["bottom-up", "memory", "top-down"]
        assert cells[2][0] == "not possible"
        assert cell(pane, 2, 0).toolTip() == NONE.why_not
        page.stop.click()
        assert exporter.asked == ["stop"]
        page.add.click()
        added = host.store.state.active_entry
        assert added is not None
        assert added.plan == FAST.plan

    def test_a_plan_of_the_table_can_be_bundled(self, pane: ExportPane, exporter: FakeExporter) -> None:
        page = pane.bundle
        exporter.become(progress=Progress(base=SLOW.makespan, trials=(SLOW, NONE, FAST)))
        page.table.selectRow(1)
        page.bundle.click()
        (asked,) = exporter.asked
        assert isinstance(asked, tuple)
        assert asked[1] == SLOW.plan
        page.table.selectRow(2)
        assert not page.bundle.isEnabled()
        assert not page.add.isEnabled()

    @pytest.mark.parametrize("name", ["there.bundle", "there.zip"])
    def test_a_bundle_that_is_there_is_not_replaced_unasked(
        self, pane: ExportPane, exporter: FakeExporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        there = tmp_path / name
        if there.suffix == ".zip":
            there.write_bytes(b"PK")
        else:
            there.mkdir()
            (there / "manifest.json").write_text("{}", "utf-8")
        exporter.become(progress=Progress(base=SLOW.makespan, trials=(SLOW, FAST)))
        pane.choose("bundle")
        pane.bundle.table.selectRow(1)
        pane.bundle.path.setText(str(there))
        for button in (pane.bundle.tune, pane.bundle.bundle):
            answers = [QMessageBox.StandardButton.Cancel, QMessageBox.StandardButton.Save]
            monkeypatch.setattr(QMessageBox, "question", partial(_next, answers))
            before = len(exporter.asked)
            button.click()
            assert len(exporter.asked) == before
            button.click()
            assert len(exporter.asked) == before + 1
            assert answers == []
        # A folder that is no bundle is refused by who writes, and an empty place needs no question.
        monkeypatch.setattr(QMessageBox, "question", lambda *_: pytest.fail("asked for nothing"))
        for place in (tmp_path, tmp_path / "new.bundle"):
            pane.bundle.path.setText(str(place))
            pane.bundle.tune.click()
        assert len(exporter.asked) == 4

    def test_how_it_ended(self, pane: ExportPane, exporter: FakeExporter, host: FakeHost, qapp: QApplication) -> None:
        page = pane.bundle
        good = Outcome(True, "bundle: −60 %", warnings=("a & b: --flag stops it",))
        exporter.become(progress=Progress(base=SLOW.makespan, trials=(SLOW, FAST), best=FAST.plan, outcome=good))
        assert "The compiler may undo" in page.outcome.text()
        assert "a &amp; b: --flag stops it" in page.outcome.text()
        assert cell(pane, 0, 0).text().startswith("✓ ")
        host.theme = DARK
        qapp.sendEvent(pane, QEvent(QEvent.Type.PaletteChange))
        assert DARK.gain in page.outcome.text()
        assert cell(pane, 0, 1).text().startswith("−")

    def test_what_no_bundle_can_be_made_of_is_said(self, pane: ExportPane, exporter: FakeExporter) -> None:
        exporter.become(known=Known("some constants were elided", able=False))
        assert pane.bundle.known.text() == "some constants were elided"
        assert not pane.bundle.tune.isEnabled()
        exporter.become(known=Known("only the order", order_only=True))
        assert pane.bundle.tune.isEnabled()
        assert not pane.bundle.search.isEnabled()
        assert "--order-only" in pane.bundle.command()


def test_in_a_low_window_the_trials_come_into_view(qtbot: QtBot, pane: ExportPane, exporter: FakeExporter) -> None:
    pane.resize(748, 240)
    table = pane.bundle.table

    def seen() -> int:
        return table.rect().translated(table.mapTo(pane, QPoint())).intersected(pane.rect()).height()

    qtbot.waitUntil(lambda: seen() < table.height() // 2, timeout=LONG)
    exporter.become(progress=Progress(Stage.SEARCHING, trials=(SLOW, FAST)))
    qtbot.waitUntil(lambda: seen() == table.height(), timeout=LONG)


def _next(answers: list[QMessageBox.StandardButton], *_: object) -> QMessageBox.StandardButton:
    return answers.pop(0)


def test_nothing_is_open(qtbot: QtBot, exporter: FakeExporter) -> None:
    pane = ExportPane(FakeHost(), exporter)
    qtbot.addWidget(pane)
    pane.show()
    assert "Open a module" in pane.bundle.known.text()
    assert not pane.bundle.tune.isEnabled()
    pane.choose("hlo")
    assert not pane.file.export.isEnabled()
    pane.choose(BUNDLE)
    assert pane.pages.currentIndex() == 0
