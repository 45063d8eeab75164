"""Lanes as the user arranged them: any sequence of moves keeps every lane once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.session.lanes import Lanes

NAMES = ["compute", "ICI x+", "ICI x−", "in flight", "memory"]


def shown(lanes: Lanes, names: list[str]) -> list[str]:
    return [names[at] for at in lanes.arranged(names)]


def test_without_an_arrangement_lanes_stay_as_they_come() -> None:
    assert shown(Lanes(), NAMES) == NAMES


def test_a_moved_lane_lies_before_the_one_it_was_dropped_on_and_others_keep_their_order() -> None:
    lanes = Lanes().moved("memory", "ICI x+", NAMES)
    assert shown(lanes, NAMES) == ["compute", "memory", "ICI x+", "ICI x−", "in flight"]
    assert shown(lanes.moved("compute", None, shown(lanes, NAMES)), NAMES)[-1] == "compute"


def test_pinned_lanes_come_first_and_go_back_to_where_they_were() -> None:
    lanes = Lanes().toggled_pin("in flight")
    assert shown(lanes, NAMES)[0] == "in flight"
    assert shown(lanes.toggled_pin("in flight"), NAMES) == NAMES


def test_a_lane_that_another_variant_has_goes_after_its_neighbour() -> None:
    lanes = Lanes().moved("compute", None, ["compute", "ICI x+"])
    assert shown(lanes, ["compute", "ICI y+", "ICI x+", "ICI z+"]) == ["ICI x+", "ICI z+", "compute", "ICI y+"]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from([*NAMES, None]), st.booleans())))
def test_no_lane_is_lost_or_doubled(steps: list[tuple[str, str | None, bool]]) -> None:
    lanes = Lanes()
    for name, before, pin in steps:
        lanes = lanes.toggled_pin(name) if pin else lanes.moved(name, before, shown(lanes, NAMES))
        assert sorted(shown(lanes, NAMES)) == sorted(NAMES)
        pinned = [name in lanes.pinned for name in shown(lanes, NAMES)]
        assert pinned == sorted(pinned, reverse=True)
