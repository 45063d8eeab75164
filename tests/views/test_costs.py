"""The list of costs in the plan line: which times win, what was not used of them, and their removal."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from engine.cost.costs import Origin
from engine.cost.program import UsedCosts
from engine.session import edits
from engine.session.given import GivenFile
from engine.session.plan import AS_LOADED
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.plan.costs import CostsButton, CostsList, ranks_of
from views.timeline.paint_header import origin_text

TABLE, PROFILE = GivenFile("/a/costs.csv", "1"), GivenFile("/a/run.xplane.pb", "2")


def host() -> FakeHost:
    made = variant(1, plan=AS_LOADED, name="as loaded")
    used = (
        UsedCosts("estimated_cycles", Origin.COMPILER, 5, (), (), ()),
        UsedCosts(PROFILE.path, Origin.MEASURED, 9, ("gone",), ("while.1",), ("add.1",)),
        UsedCosts(TABLE.path, Origin.TABLE, 1, (), (), ()),
    )
    priced = replace(
        made,
        machine=replace(made.machine, costs=(TABLE, PROFILE)),
        program=replace(made.program, imported=used),
    )
    return host_of(priced)


def test_what_wins_comes_first_and_nothing_unused_is_dropped() -> None:
    ranks = ranks_of(host().store.state)
    assert [(rank.title, rank.origin, rank.said) for rank in ranks] == [
        ("costs.csv", "your table", "1 times used"),
        ("run.xplane.pb", "measured", "9 times used, 3 not"),
        ("estimated_cycles", "compiler", "5 times used"),
        ("model", "model", "prices everything else"),
    ]
    assert [rank.file for rank in ranks] == [TABLE, PROFILE, None, None]
    assert [line.split(":")[0] for line in ranks[1].left] == ["gone", "while.1", "add.1"]


def test_a_header_says_whose_costs_were_simulated() -> None:
    (entry,) = host().store.state.entries
    assert entry.variant is not None
    assert origin_text(entry.variant) == "model + compiler's costs + measured costs + your costs"


def test_a_file_is_removed_as_one_step_and_another_imported(qtbot: QtBot) -> None:
    at = host()
    button = CostsButton(at)
    qtbot.addWidget(button)
    assert button.text() == "2 files"
    button.click()
    shown = button.findChild(CostsList)
    assert isinstance(shown, CostsList)
    assert "gone: no instruction is called that" in shown.left.toPlainText()
    crosses = [b for b in shown.findChildren(QToolButton) if b.accessibleName().startswith("remove")]
    assert [b.accessibleName() for b in crosses] == ["remove costs.csv", "remove run.xplane.pb"]
    crosses[0].click()
    assert edits.costs_of(at.store.state) == (PROFILE,)
    assert button.text() == "run.xplane.pb"
    assert at.store.undo() == "Remove costs costs.csv"
    shown.close()


def test_a_file_that_no_variant_uses_yet_is_listed(qtbot: QtBot) -> None:
    at = host()
    late = GivenFile("/a/late.csv", "3")
    at.store.become("Import", edits.with_costs(at.store.state, (TABLE, late)))
    assert [(rank.title, rank.said) for rank in ranks_of(at.store.state)][:1] == [
        ("late.csv", "waiting for the active variant")
    ]
