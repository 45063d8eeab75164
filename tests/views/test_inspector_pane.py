from __future__ import annotations

import pickle

from pytestqt.qtbot import QtBot

from engine.session import edits
from engine.session.plan import AS_LOADED
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import BEST, variant
from views.inspector.facts import exposed_by, selected_instruction, times_of, why_exposed
from views.inspector.inspector import Inspector


class TestInspector:
    def test_it_shows_cost_with_its_source_times_and_links(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = Inspector(host)
        qtbot.addWidget(pane)
        host.store.become("Select", edits.selected(host.store.state, "A", (2003,)))
        above, below = pane.above.text(), pane.below.text()
        assert "bf16[4096" in above
        assert "model" in above
        assert "In each variant" in below
        assert "all-gather-done.0.0" in below
        assert "model.py" in below.replace("\u200b", "")
        pane.below.linkActivated.emit("instruction:2004")
        assert host.store.state.selection.instructions == (2004,)

    def test_it_says_why_a_transfer_is_exposed(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = Inspector(host)
        qtbot.addWidget(pane)
        host.store.become("Select", edits.selected(host.store.state, "A", (2001,)))
        assert "Why exposed" in pane.below.text()
        assert "nothing independent runs beside it" in why_exposed(host.store.state)[0]
        assert not pane.bars.isHidden()
        assert "gain" in pane.bars.accessibleDescription()
        alike = host_of(variant(1, plan=AS_LOADED), variant(1, plan=BEST))
        alike.store.become("Select", edits.selected(alike.store.state, "A", (2001,)))
        (sentence,) = why_exposed(alike.store.state)
        assert sentence.startswith("A, B: compute waits")

    def test_slack_and_exposed_are_per_variant(self, host: FakeHost) -> None:
        host.store.become("Select", edits.selected(host.store.state, "A", (2101,)))
        apart, beside = times_of(host.store.state)
        assert (apart.key, beside.key) == ("A", "B")
        assert apart.exposed > beside.exposed
        found = host.store.state.entries[0].variant
        assert found is not None
        assert exposed_by(found, frozenset()) == 0

    def test_a_selected_instruction_is_read_without_parsing_the_module_that_a_worker_sent(self) -> None:
        made = pickle.loads(pickle.dumps(variant(1)))
        session = edits.selected(host_of(made).store.state, "A", (2003,))
        found = selected_instruction(session)
        assert found is not None
        assert found[1].name == "dot.0.0"
        assert found[1] == variant(1).program.module.instructions[2003]
        assert "proto" not in pickle.loads(pickle.dumps(made)).program.module.__dict__
        assert "proto" not in made.program.module.__dict__

    def test_without_a_selection_it_is_about_the_variant(self, qtbot: QtBot, host: FakeHost) -> None:
        pane = Inspector(host)
        qtbot.addWidget(pane)
        assert "lower bound" in pane.above.text()
        assert pane.bars.isHidden()
