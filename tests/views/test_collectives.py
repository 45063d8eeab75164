from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from engine.session import edits
from engine.session.given import GivenFile, Recording, RecordingKind
from engine.session.plan import AS_LOADED
from tests.views.fake_host import FakeHost, active_plan, host_of
from tests.views.synthetic import BEST, variant
from views.candidates.collectives import Collectives
from views.candidates.rows import Verdict, override_of, rows_of_sites


class TestCollectives:
    def test_the_gains_have_a_heading(self, qtbot: QtBot, host: FakeHost) -> None:
        listed = Collectives(host)
        qtbot.addWidget(listed)
        assert listed.heading.isVisibleTo(listed) == listed.view.isVisibleTo(listed)
        assert listed.heading.text() == "saves in a step"
        empty = Collectives(FakeHost())
        qtbot.addWidget(empty)
        assert not empty.heading.isVisibleTo(empty)

    def test_alike_sites_are_one_row(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = Collectives(host)
        qtbot.addWidget(pane)
        assert pane.model.rowCount() == 2
        assert pane.model.index(0, 0).data(Qt.ItemDataRole.AccessibleTextRole).startswith("all-gather-start.0.0 ×6")
        assert pane.model.item(0).rowCount() == 6

    def test_picking_selects_every_site_of_the_row(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = Collectives(host)
        qtbot.addWidget(pane)
        pane.view.setCurrentIndex(pane.model.index(0, 0))
        assert len(host.store.state.selection.instructions) == 6

    def test_an_override_takes_the_row_and_undoes_as_one(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = Collectives(host)
        qtbot.addWidget(pane)
        pane.view.setCurrentIndex(pane.model.index(1, 0))
        pane.override("force")
        given = edits.options_of(active_plan(host), "decompose")
        assert given is not None
        assert given["force"].count(";") == 5
        assert override_of(active_plan(host), pane.picked()[0]) == "force"
        assert host.store.undo() == "Force 6 sites"
        assert active_plan(host) == BEST

    def test_rows_come_by_gain_with_the_sum_over_sites_and_trips(self) -> None:
        sites = variant(1).candidates
        more = tuple(replace(site, trips=3) for site in sites)
        first, second = rows_of_sites(more)
        assert first.verdict == Verdict.CHOSEN
        assert second.verdict == Verdict.LEFT
        assert first.gain == 3 * sum(s.gate.gain for s in first.sites if s.gate is not None)
        mixed = rows_of_sites((sites[0], replace(sites[2], chosen=False)))
        assert mixed[0].verdict == Verdict.MIXED

    def test_it_says_what_to_do_when_there_is_nothing(self, qtbot: QtBot) -> None:
        pane = Collectives(FakeHost())
        qtbot.addWidget(pane)
        assert "Open a module" in pane.note.text()
        none = host_of(replace(variant(1, plan=AS_LOADED), candidates=()))
        pane = Collectives(none)
        qtbot.addWidget(pane)
        assert "decompose" in pane.note.text()


def test_what_was_recorded_is_not_sent_to_a_plan_line_that_does_nothing(qtbot: QtBot) -> None:
    recorded = Recording(RecordingKind.PROFILE, GivenFile("/a/run.xplane.pb", "1"))
    bare = replace(variant(1, plan=AS_LOADED, name="as loaded"), candidates=())
    host = host_of(bare, replace(bare, name="measured", recording=recorded))
    first, second = host.store.state.entries
    second = replace(second, recording=recorded)
    host.store.settle(entries=(first, second))
    pane = Collectives(host)
    qtbot.addWidget(pane)
    assert pane.note.text().startswith("B was recorded and follows no plan. Activate A and set “decompose”")
    host.store.settle(entries=(second,))
    assert pane.note.text() == (
        "B was recorded and follows no plan. Open its module to see what decomposing would save."
    )
