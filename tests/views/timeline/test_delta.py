"""The lead of one variant over another: nothing against itself, and at the end what the makespans differ by."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint
from PySide6.QtTest import QTest

from engine.session.matching import Match
from engine.simulate.simulator import SimulationOptions, simulate
from engine.timeline.timeline import Category, Timeline
from tests.engine.simulate.synthetic import draw_program
from tests.engine.simulate.test_properties import MACHINES, UNSHRUNK, any_order, chips, randoms
from tests.views.fake_host import FakeHost
from tests.views.synthetic import US, around, variant
from views.timeline.delta import Lead, lead_of
from views.timeline.measure import measure
from views.timeline.paint_delta import end_text, lead_in
from views.timeline.scene import AXIS
from views.timeline.stack import RowKind
from views.timeline.view import TimelineView


def lead_between(base: Timeline, other: Timeline) -> Lead:
    module = variant(1, loop=False).program.module
    return lead_of(Match(around(module, base, 0), around(module, other, 0)))


@given(randoms, chips, st.integers(1, 40), st.integers(1, 9))
@settings(max_examples=60, phases=UNSHRUNK)
def test_it_ends_at_the_difference_of_the_makespans_and_is_nothing_against_itself(
    random_: random.Random, chip: str, cap: int, trips: int
) -> None:
    program = draw_program(random_, MACHINES[chip])
    program = replace(program, trips=dict.fromkeys(program.trips, trips))
    one, two = any_order(program, random_), any_order(program, random_)
    base = simulate(program, one).timeline
    folded = simulate(program, one, SimulationOptions(slice_cap=cap)).timeline
    other = simulate(program, two, SimulationOptions(slice_cap=cap)).timeline
    for lead in (lead_between(base, other), lead_between(folded, other)):
        assert lead.end == base.makespan - other.makespan
        assert lead.time[0] == lead.value[0] == 0
        assert lead.makespan == other.makespan
        assert np.all(np.diff(lead.time) >= 0)
    known = measure(base, 0, base.makespan)
    idle = base.makespan - known.compute - known.exposed  # conditionals, whose branches are not shown
    assert lead_between(base, base).largest <= 1 + idle
    assert lead_between(folded, folded).largest <= 1 + idle


def test_what_waits_falls_back_by_as_much_as_it_waits() -> None:
    base, faster = variant(1, loop=False, overlap=True), variant(1, loop=False)
    lead = lead_of(Match(base, faster))
    assert lead.end == base.timeline.makespan - faster.timeline.makespan < 0
    assert lead.largest == -lead.end
    assert np.all(np.diff(lead.value) <= US)


def test_the_row_says_what_the_headers_say(view: TimelineView, host: FakeHost) -> None:
    base, active = host.store.state.base_entry, host.store.state.active_entry
    assert base is not None
    assert base.variant is not None
    assert active is not None
    assert active.variant is not None
    lead = lead_in(host.store.state)
    assert lead is not None
    assert lead.end == base.variant.metrics.makespan - active.variant.metrics.makespan != 0
    row = next(row for row in view.stack.rows if row.kind == RowKind.DELTA)
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum())
    QTest.mouseMove(view.viewport(), QPoint(500, row.top + AXIS - bar.value() + 10))
    assert view.overlay.card[-1] == end_text(host.store.state, lead)
    assert view.overlay.card[0].startswith(f"{active.key} is ")


def test_a_shorter_wait_is_gained_where_it_is_and_another_order_is_no_lead() -> None:
    """Einsum 2003 before or after the wait for 2001, which takes 100 µs in the base."""
    base = timeline_of((4, 5 * US, False), (1, 100 * US, True), (3, 5 * US, False))
    swapped = timeline_of((4, 5 * US, False), (3, 5 * US, False), (1, 100 * US, True))
    shorter = timeline_of((4, 5 * US, False), (1, 40 * US, True), (3, 5 * US, False))
    assert lead_between(base, swapped).largest <= 1
    lead = lead_between(base, shorter)
    assert lead.end == 60 * US
    assert lead.at(np.array([5, 25, 45, 50]) * US).tolist() == [0, 30 * US, 60 * US, 60 * US]


def timeline_of(*parts: tuple[int, int, bool]) -> Timeline:
    """(Instruction less 2000, how long, whether it is waited for), one after the other."""
    made = variant(1, loop=False).timeline
    ids = np.array([2000 + number for number, _, _ in parts])
    duration = np.array([length for _, length, _ in parts])
    waits = np.array([wait for _, _, wait in parts])
    zero = np.zeros(len(parts), np.int64)
    return replace(
        made,
        instruction=np.where(waits, 2002, ids),
        waits_for=np.where(waits, ids, -1),
        category=np.where(waits, Category.EXPOSED, Category.EINSUM).astype(np.uint8),
        start=np.cumsum(duration) - duration,
        duration=duration,
        lane=zero.astype(np.int16),
        depth=zero.astype(np.uint8),
        repeat=zero + 1,
        iteration=zero,
        makespan=int(duration.sum()),
    )
