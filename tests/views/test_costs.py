"""The list of costs in the plan line: which times win, what was not used of them, and their removal."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from engine.cost.costs import Origin
from engine.cost.program import UsedCosts
from engine.session import edits
from engine.session.given import GivenFile
from engine.session.plan import AS_LOADED
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.compare.compare import ComparePane
from views.plan.costs import CostsButton, CostsList, ranks_of
from views.theme import GRID
from views.timeline.accessible import description_of
from views.timeline.axis import TimeRange
from views.timeline.paint_header import figures_of, origin_text, state_text, unlike
from views.timeline.stack import RowKind
from views.timeline.tips import tip_at
from views.timeline.view import TimelineView

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
    at.store.become("Costs", edits.with_costs(at.store.state, [replace(PROFILE, path="/runs/a&b.xplane.pb")]))
    assert button.text() == "a&&b.xplane.pb"
    shown.close()


def test_a_file_that_no_variant_uses_yet_is_listed(qtbot: QtBot) -> None:
    at = host()
    late = GivenFile("/a/late.csv", "3")
    at.store.become("Import", edits.with_costs(at.store.state, (TABLE, late)))
    assert [(rank.title, rank.said) for rank in ranks_of(at.store.state)][:1] == [
        ("late.csv", "waiting for the active variant")
    ]


def priced(*names: str, scaled: tuple[str, ...] = (), gone: tuple[str, ...] = ()) -> UsedCosts:
    return UsedCosts(
        TABLE.path, Origin.TABLE, len(names), (), (), (), scaled=scaled, gone=gone, priced=frozenset(names)
    )


def two(before: UsedCosts, after: UsedCosts) -> FakeHost:
    """A and B, priced so."""
    made = (variant(1, plan=AS_LOADED, name="as loaded"), variant(1, overlap=True, name="decomposed"))
    return host_of(
        *(replace(v, program=replace(v.program, imported=(u,))) for v, u in zip(made, (before, after), strict=True))
    )


def test_a_gain_over_what_is_priced_otherwise_is_marked_and_not_green(qtbot: QtBot) -> None:
    at = two(priced("all-gather", "dot"), priced("dot", scaled=("dot",), gone=("all-gather",)))
    session = at.store.state
    figure = figures_of(session, session.entries[1])[-1]
    assert figure.text.endswith(" ≠")
    assert figure.role == "muted"
    assert unlike(session, session.entries[1]) == ("all-gather",)
    assert unlike(session, session.entries[0]) == ()
    assert "given times of all-gather" in description_of(session)
    pane = ComparePane(at)
    qtbot.addWidget(pane)
    assert "≠ B and A: not priced alike" in pane.text.text()
    at.store.become("Activate", edits.activated(session, "B"))
    view = TimelineView(at, TimeRange())
    qtbot.addWidget(view)
    view.resize(1280, 800)
    scene = view.scene()
    assert state_text(scene, scene.session.entries[1]).startswith("≠ not priced as A: all-gather")
    header = next(row for row in scene.rows(1) if row.kind == RowKind.HEADER)
    told = tip_at(scene, QPointF(200, scene.y(header.top) + header.height / 2))
    assert "≠ not priced alike: given times of all-gather" in told
    assert "the chip's budget, permute=4,gather=2,total=8" in told
    assert any(line.startswith("all-gather: the passes") for rank in ranks_of(at.store.state) for line in rank.left)


def test_a_gain_keeps_its_sign_before_marks(qtbot: QtBot) -> None:
    at = two(priced("all-gather", "dot"), priced("dot", scaled=("dot",), gone=("all-gather",)))
    session = at.store.state
    view = TimelineView(at, TimeRange())
    qtbot.addWidget(view)
    gain = figures_of(session, session.entries[1])[-1]
    assert gain.width == figures_of(session, session.entries[0])[-1].width, "columns line up"
    assert view.scene().metrics.horizontalAdvance("+199 % ≠") <= gain.width - 2 * GRID


def test_costs_that_the_model_shares_out_are_called_so_and_compare(qtbot: QtBot) -> None:
    at = two(priced("dot"), priced("dot", scaled=("dot",)))
    session = at.store.state
    variants = [entry.variant for entry in session.entries]
    assert [origin_text(v) for v in variants if v is not None] == [
        "model + your costs",
        "model + your costs, scaled by the model",
    ]
    assert figures_of(session, session.entries[1])[-1].role in ("gain", "loss")
    assert "≠" not in figures_of(session, session.entries[1])[-1].text
