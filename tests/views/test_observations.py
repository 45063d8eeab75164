"""Measured against predicted in the pane Differences; measurements are never set against predictions unmarked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QTableWidget
from pytestqt.qtbot import QtBot

from engine.cost.costs import Origin
from engine.session import edits
from engine.session.attribution import Unmatched
from engine.session.given import GivenFile, Recording, RecordingKind
from engine.session.measured import Measured, Observation
from engine.session.plan import AS_LOADED, Plan
from engine.session.session import Entry
from engine.session.variant import Variant
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.compare.compare import ComparePane
from views.compare.differences import DifferencePane
from views.inspector.inspector import Inspector
from views.status import StatusBar
from views.timeline.accessible import description_of
from views.timeline.paint_header import figures_of
from views.timeline.stack import RowKind, stack_of

US = 1_000_000
PROFILE = Recording(RecordingKind.PROFILE, GivenFile("run.xplane.pb", "1"), "8 CPU devices")
OBSERVATIONS = (
    Observation(2003, "dot.1", transfer=False, executions=4, predicted=90 * US, measured=100 * US),
    Observation(2004, "permute.1", transfer=True, executions=4, predicted=50 * US, measured=5 * US),
    Observation(2005, "add.1", transfer=False, executions=0, predicted=3 * US, measured=0),
)


def measured_of(predicted: Variant, platform: str = "cpu") -> Measured:
    timeline = replace(predicted.timeline, source=Origin.MEASURED)
    metrics = replace(predicted.metrics, peak_memory=0, max_in_flight=0, lower_bound=0)
    shown = replace(predicted, name="measured", timeline=timeline, metrics=metrics, recording=PROFILE)
    unmatched = (Unmatched("nobody.1", 8, 7 * US),)
    return Measured(shown, predicted, OBSERVATIONS, unmatched, events=20, matched=12, executions=1, platform=platform)


def host_with(measured: Measured) -> FakeHost:
    host = host_of(measured.predicted, variant(1, overlap=True, plan=Plan("decompose"), name="decomposed"))
    session = edits.recorded(host.store.state, AS_LOADED, measured.predicted.machine, PROFILE, "measured")
    host.store.become("Show", edits.arrived(session, session.active, measured.variant))
    return host


@pytest.fixture
def measured() -> Measured:
    return measured_of(variant(1, plan=AS_LOADED, name="as loaded"))


def column(table: QTableWidget, number: int) -> list[str]:
    items = (table.item(row, number) for row in range(table.rowCount()))
    return [item.text() if item is not None else "" for item in items]


def pane_of(qtbot: QtBot, host: FakeHost, measured: Measured) -> DifferencePane:
    def observed(entry: Entry) -> Measured | None:
        return measured if entry.recording == PROFILE else None

    pane = DifferencePane(host, observed)
    qtbot.addWidget(pane)
    pane.show()
    return pane


def test_errors_are_sorted_and_what_matched_nothing_comes_last(qtbot: QtBot, measured: Measured) -> None:
    host = host_with(measured)
    pane = pane_of(qtbot, host, measured)
    table = pane.observations
    assert column(table, 0) == ["permute.1", "dot.1", "add.1", "nobody.1: no such instruction"]
    assert column(table, 6) == ["+900%", "−10%", "–", ""]
    assert column(table, 4)[2:] == ["not seen", "7.00 µs"]
    table.horizontalHeader().sectionClicked.emit(4)
    assert column(table, 0)[:2] == ["dot.1", "permute.1"]
    table.setCurrentCell(1, 0)
    assert host.store.state.selection.instructions == (2004,)
    table.setCurrentCell(3, 0)
    assert host.store.state.selection.instructions == (2004,)
    assert "12 of 20 events" in pane.text.text()
    assert "listed last" in pane.text.text()


def test_what_the_comparison_cannot_say_is_said(qtbot: QtBot) -> None:
    predicted = variant(1, plan=AS_LOADED, name="as loaded")
    for platform, said in (("cpu", True), ("tpu", False)):
        measured = measured_of(predicted, platform)
        text = pane_of(qtbot, host_with(measured), measured).text.text()
        assert ("run synchronously" in text) is said
        assert ("between two machines" in text) is said


def test_other_variants_are_compared_as_before(qtbot: QtBot, measured: Measured) -> None:
    host = host_with(measured)
    pane = pane_of(qtbot, host, measured)
    assert pane.table.isHidden()
    host.store.become("Activate", edits.activated(host.store.state, "B"))
    assert pane.observations.isHidden()
    assert pane.table.rowCount() > 0


def test_no_gain_is_shown_between_a_prediction_and_a_measurement(qtbot: QtBot, measured: Measured) -> None:
    host = host_with(measured)
    session = host.store.state
    entry = session.active_entry
    assert entry is not None
    shown = {figure.caption: figure.text for figure in figures_of(session, entry)}
    assert shown["peak"] == ""
    assert "%" not in "".join(shown.values())
    assert RowKind.DELTA not in {row.kind for row in stack_of(session.entries).rows}
    assert "measured" in description_of(session)
    pane = ComparePane(host)
    qtbot.addWidget(pane)
    row = column(pane.table, 2).index("measured")
    texts = [item.text() for n in range(pane.table.columnCount()) if (item := pane.table.item(row, n)) is not None]
    assert "–" in texts
    assert not any("✓" in text or ("%" in text and "0%" not in text) for text in texts[:6])
    inspector = Inspector(host)
    qtbot.addWidget(inspector)
    assert "lower bound" not in inspector.above.text()
    assert "FLOPS utilization" not in inspector.above.text()
    bar = StatusBar(host)
    qtbot.addWidget(bar)
    assert bar.source.text() == "times: measured (8 CPU devices)"
