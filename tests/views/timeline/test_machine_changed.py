"""While a variant is still of an earlier machine, nothing says what it gains over one of the present machine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from engine.session import edits
from engine.session.plan import AS_LOADED, MachineSpec
from engine.session.session import Session
from engine.session.variant import Variant
from tests.views.fake_host import FakeHost, host_of
from tests.views.synthetic import variant
from views.compare.differences import DifferencePane
from views.timeline.accessible import describe_variant
from views.timeline.axis import TimeRange
from views.timeline.paint_delta import card_of_lead, earlier_text, lead_in
from views.timeline.paint_header import figures_of
from views.timeline.view import TimelineView

OTHER = MachineSpec("b200")


def two() -> FakeHost:
    """A, the base, and B, active."""
    at = host_of(variant(1, plan=AS_LOADED, name="as loaded"), variant(1, overlap=True, name="decomposed"))
    at.store.become("Activate", edits.activated(at.store.state, "B"))
    return at


def on_other(session: Session, *fresh: str, error: str = "") -> Session:
    """The machine is changed, and only these have their results already; what ended the others is `error`."""
    changed = edits.on_machine(session, OTHER)
    return replace(
        changed,
        entries=tuple(
            replace(e, variant=_moved(e.variant)) if e.key in fresh else replace(e, error=error)
            for e in changed.entries
        ),
    )


def _moved(made: Variant | None) -> Variant:
    assert made is not None
    return replace(made, machine=OTHER)


def gain(session: Session) -> str:
    return figures_of(session, session.entries[1])[-1].text


@pytest.mark.parametrize("error", ["", "the worker was killed"])
@pytest.mark.parametrize(
    ("fresh", "header", "late"), [("A", "", "B is"), ("B", "A stale", "A is"), ("", "", "A and B are")]
)
def test_no_gain_over_another_machine(qtbot: QtBot, fresh: str, header: str, late: str, error: str) -> None:
    at = two()
    before = at.store.state
    assert "%" in gain(before)
    assert lead_in(before) is not None
    assert not earlier_text(before)
    session = on_other(before, *fresh, error=error)
    assert gain(session) == header
    assert lead_in(session) is None
    assert card_of_lead(session, 0) == ()
    assert earlier_text(session) == f"out of date: {late} of an earlier machine or other costs"
    assert "against" not in describe_variant(session, "B")
    view = TimelineView(at, TimeRange())
    qtbot.addWidget(view)
    view.resize(1280, 800)
    at.store.become("Chip", session)
    view.grab()


def test_the_gain_is_back_when_both_are_there() -> None:
    session = on_other(two().store.state, "A", "B")
    assert "%" in gain(session)
    assert lead_in(session) is not None
    assert "against A" in describe_variant(session, "B")


def test_an_earlier_plan_on_the_present_machine_keeps_its_gain() -> None:
    session = two().store.state
    planned = edits.planned(session, "B", replace(session.entries[1].plan, scheduler="top-down"))
    assert planned.entries[1].stale
    assert gain(planned) == gain(session)


@pytest.mark.parametrize(("fresh", "late"), [("A", "B"), ("B", "A")])
def test_no_instruction_differs_from_one_on_another_machine(qtbot: QtBot, fresh: str, late: str) -> None:
    at = two()
    pane = DifferencePane(at)
    qtbot.addWidget(pane)
    assert pane.table.rowCount() > 0
    at.store.become("Machine", on_other(at.store.state, fresh))
    pane.refresh()
    assert pane.text.text() == f"Out of date: {late} is of an earlier machine or other costs."
    assert pane.table.rowCount() == 0
