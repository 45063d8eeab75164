"""Figures of an earlier plan are labelled as such in every pane, with the reason and the way out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from engine.session import edits
from engine.timeline.timeline import Category
from tests.patience import LONG
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.candidates.collectives import Collectives
from views.fusion.pane import FusionPane
from views.graph.pane import GraphPane
from views.hlo_text.pane import HloPane
from views.inspector.inspector import Inspector
from views.stale import StaleNote, stale_text
from views.timeline.table import TablePane


def fail(host: FakeHost) -> None:
    session = host.store.state
    entry = session.active_entry
    assert entry is not None
    planned = edits.planned(session, entry.key, replace(entry.plan, scheduler="exact"))
    host.store.become("Scheduler exact", planned)
    host.store.settle(entries=edits.failed(host.store.state, entry.key, "no order fits <b>\nmore").entries)


@pytest.mark.parametrize("pane", [Inspector, Collectives, GraphPane, HloPane, FusionPane, TablePane])
def test_every_pane_labels_figures_of_an_earlier_plan(qtbot: QtBot, pane: Callable[[FakeHost], QWidget]) -> None:
    host = host_of(variant(name="first"), variant(name="second"))
    widget = pane(host)
    qtbot.addWidget(widget)
    note = widget.findChild(StaleNote)
    assert isinstance(note, StaleNote)
    assert note.isHidden()
    fail(host)
    said = note.text()
    if pane is Collectives and not said:
        return  # no variant of this module has verdicts to show
    assert not note.isHidden()
    assert "B failed" in said
    assert "no order fits &lt;b&gt;" in said
    assert "earlier plan" in said
    note.linkActivated.emit("rerun")
    assert host.performed == ["rerun"]
    host.store.become("Mark", edits.marked(host.store.state, 5))
    assert "Back to that plan" in said
    note.linkActivated.emit("back")
    entry = host.store.state.active_entry
    assert entry is not None
    assert not entry.stale
    assert host.store.state.marks
    assert note.isHidden()


def test_a_plan_that_takes_a_moment_needs_no_words(qtbot: QtBot) -> None:
    host = host_of(variant(name="first"))
    note = StaleNote(host)
    qtbot.addWidget(note)
    session = host.store.state
    host.store.become("Replan", edits.planned(session, "A", replace(session.entries[0].plan, scheduler="exact")))
    assert "being planned anew" in stale_text(host.store.state.active_entry)
    assert note.isHidden()
    qtbot.waitUntil(lambda: not note.isHidden(), timeout=LONG)
    host.store.undo()
    assert note.isHidden()


def test_the_inspector_marks_times_of_an_earlier_plan(qtbot: QtBot) -> None:
    host = host_of(variant(name="first"), variant(name="second"))
    inspector = Inspector(host)
    qtbot.addWidget(inspector)
    made = host.store.state.active_variant
    assert made is not None
    instruction = int(made.timeline.instruction[made.timeline.category == Category.EINSUM][0])
    host.store.become("Select", edits.selected(host.store.state, "B", (instruction,)))
    assert "earlier plan" not in inspector.below.text()
    fail(host)
    assert "earlier plan" in inspector.below.text()
