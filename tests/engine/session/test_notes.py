"""Many notes of one kind are a few and a count; notes of different kinds are never mixed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.session.notes import MOST, by_kind

LEFT = [
    "all-gather.20 is left whole: the plan is 8.58 ms faster so, whatever the gate predicts.",
    "all-reduce is left whole: the plan is 33.9 µs faster so, whatever the gate predicts.",
    "reduce-scatter.1* is left whole: the plan is 140 µs faster so, whatever the gate predicts.",
    "all-gather is left whole: the plan is 1.06 ms faster so, whatever the gate predicts.",
]


def test_what_differs_in_names_and_figures_alone_is_of_one_kind() -> None:
    assumed = "Topology 4x4x4 was assumed for 64 chips."
    first, second = by_kind([assumed, *LEFT, LEFT[0]])
    assert first.shown == (assumed,)
    assert first.counted == ""
    assert second.shown == tuple(LEFT[:2])
    assert second.more == tuple(LEFT[2:])
    assert second.counted == "and 2 more like these"
    (few,) = by_kind(LEFT[:MOST])
    assert few.shown == tuple(LEFT[:MOST])


@given(st.lists(st.text(max_size=20)))
def test_every_note_is_there_once(notes: list[str]) -> None:
    found = [note for kind in by_kind(notes) for note in (*kind.shown, *kind.more)]
    assert sorted(found) == sorted(set(notes))
