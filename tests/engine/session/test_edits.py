from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from engine.session import edits
from engine.session.given import GivenFile, Recording, RecordingKind
from engine.session.matching import shown_in
from engine.session.plan import AS_LOADED, MachineSpec, Plan
from engine.session.session import TRANSIENT, Session
from engine.session.store import Store
from tests.views.synthetic import variant

BEST = Plan("decompose,async-permute", "bottom-up")


def session() -> Session:
    return edits.opened("step.hlo", [("as loaded", AS_LOADED), ("", BEST), ("", BEST)], MachineSpec())


def test_opened_compares_with_the_first_and_shows_the_second() -> None:
    made = session()
    assert [e.key for e in made.entries] == ["A", "B", "C"]
    assert (made.base, made.active) == ("A", "B")
    assert all(e.pending for e in made.entries)


@pytest.mark.parametrize(("number", "key"), [(0, "A"), (25, "Z"), (26, "AA"), (51, "AZ"), (52, "BA")])
def test_keys_go_on_after_z(number: int, key: str) -> None:
    assert edits.key_of(number) == key


def test_a_result_of_another_plan_is_dropped() -> None:
    before = session()
    late = variant(plan=replace(BEST, scheduler="memory"))
    assert edits.arrived(before, "B", late) is before
    there = edits.arrived(before, "B", variant(plan=BEST))
    entry = there.entry("B")
    assert entry is not None
    assert not entry.pending


def test_another_plan_leaves_the_old_picture_stale() -> None:
    there = edits.arrived(session(), "B", variant(plan=BEST))
    changed = edits.planned(there, "B", replace(BEST, scheduler="top-down"))
    entry = changed.entry("B")
    assert entry is not None
    assert entry.stale
    assert entry.pending
    assert not replace(entry, error="no order fits").pending


def test_removing_the_base_and_active_entry_finds_others() -> None:
    left = edits.removed(edits.removed(session(), "A"), "B")
    assert [e.key for e in left.entries] == ["C"]
    assert (left.base, left.active) == ("C", "C")
    assert edits.removed(left, "C") is left


def test_added_takes_the_first_free_letter() -> None:
    made = edits.added(edits.removed(session(), "B"), BEST)
    assert [e.key for e in made.entries] == ["A", "C", "B"]
    assert made.active == "B"


def test_moved_stays_within_the_stack() -> None:
    assert [e.key for e in edits.moved(session(), "A", 5).entries] == ["B", "C", "A"]
    assert [e.key for e in edits.moved(session(), "A", -1).entries] == ["A", "B", "C"]


def test_selecting_with_add_takes_out_what_was_in() -> None:
    one = edits.selected(session(), "A", (1, 2))
    assert edits.selected(one, "A", (2, 3), add=True).selection.instructions == (1, 3)
    assert edits.selected(one, "B", (3,), add=True).selection.instructions == (3,)
    assert not edits.selected(one, "A", ()).selection


def test_marking_twice_unmarks_and_a_note_replaces() -> None:
    one = edits.marked(session(), 5)
    assert edits.marked(one, 5).marks == ()
    assert edits.marked(one, 5, "here").marks[0].note == "here"


def test_options_go_into_the_plan_in_the_order_of_passes() -> None:
    plan = edits.with_options(Plan("async-permute"), "decompose", {"ring": "both"})
    assert plan.passes == "decompose{ring=both},async-permute"
    assert edits.with_options(plan, "fuse", {}).passes.endswith("async-permute,fuse")
    assert edits.with_options(plan, "decompose", {"ring": None}).passes == "decompose,async-permute"
    assert edits.options_of(edits.without_pass(plan, "decompose"), "decompose") is None


def test_overrides_replace_each_other() -> None:
    forced = edits.overridden(BEST, ("ag.1", "ag.2"), "force")
    assert edits.options_of(forced, "decompose") == {"force": "ag.1;ag.2"}
    mixed = edits.overridden(forced, ("ag.1",), "forbid")
    assert edits.options_of(mixed, "decompose") == {"force": "ag.2", "forbid": "ag.1"}
    assert edits.overridden(edits.overridden(mixed, ("ag.1",), None), ("ag.2",), None) == BEST


def test_a_selection_is_shown_where_its_origins_went() -> None:
    base, other = variant(plan=AS_LOADED), variant(plan=BEST)
    module = replace(other.program.module, origins={2003: (2003,), 2013: (2003,)})
    moved = replace(other, program=replace(other.program, module=module))
    there = edits.arrived(edits.arrived(session(), "A", base), "B", moved)
    chosen = edits.selected(there, "A", (2003,))
    assert shown_in(chosen, "A") == {2003}
    assert shown_in(chosen, "B") == {2003, 2013}
    back = edits.selected(there, "B", (2013,))
    assert shown_in(back, "A") == {2003}
    assert shown_in(back, "C") == frozenset()


FILE, OTHER = GivenFile("a.csv", "1"), GivenFile("b.csv", "2")
PROFILE = Recording(RecordingKind.PROFILE, GivenFile("run.xplane.pb", "3"))
SCHEDULE = Recording(RecordingKind.SCHEDULE, GivenFile("dump.txt", "4"), "tpu:v4:2x2x2")


def test_costs_price_every_plan_and_make_their_results_stale() -> None:
    there = edits.arrived(session(), "A", variant(plan=AS_LOADED))
    priced = edits.with_costs(there, [FILE, OTHER, FILE])
    assert edits.costs_of(priced) == (OTHER, FILE)
    assert {e.machine.costs for e in priced.entries} == {(OTHER, FILE)}
    first = priced.entry("A")
    assert first is not None
    assert first.stale
    assert edits.added(priced, BEST).entries[-1].machine.costs == (OTHER, FILE)


def test_a_recording_keeps_its_plan_and_what_was_compiled_its_machine() -> None:
    one = edits.recorded(session(), BEST, MachineSpec(), PROFILE)
    two = edits.recorded(one, AS_LOADED, MachineSpec("tpu-v4", "2x2x2"), SCHEDULE, "TPU compiler, default")
    measured, compiled = two.entries[-2:]
    assert (two.active, compiled.title) == (compiled.key, "TPU compiler, default")
    assert edits.planned(two, measured.key, AS_LOADED) is two
    other = edits.on_machine(edits.with_costs(two, [FILE]), MachineSpec("tpu-v5p"))
    assert [e.machine.chip for e in other.entries[-2:]] == ["tpu-v5p", "tpu-v4"]
    assert other.entries[-1].machine.costs == ()
    assert edits.added(two, BEST).entries[-1].machine == session().entries[0].machine
    assert edits.recorded(two, BEST, MachineSpec(), PROFILE).active == measured.key


def test_a_result_of_another_recording_is_not_taken() -> None:
    one = edits.recorded(session(), AS_LOADED, MachineSpec(), PROFILE)
    simulated = variant(plan=AS_LOADED)
    assert edits.arrived(one, one.active, simulated) is one
    there = edits.arrived(one, one.active, replace(simulated, recording=PROFILE))
    entry = there.active_entry
    assert entry is not None
    assert not entry.pending


def test_undo_in_any_order_leaves_something_that_is_there_active() -> None:
    store = Store(session(), TRANSIENT, mended=edits.sound)
    chance = Random(7)
    for _ in range(400):
        state = store.state
        key = chance.choice(state.entries).key
        act = chance.randrange(6)
        if act == 0:
            store.become("Add", edits.added(state, BEST))
        elif act == 1:
            store.become("Remove", edits.removed(state, key))
        elif act == 2:
            store.become("Activate", edits.activated(state, key))
        elif act == 3:
            store.become("Select", edits.selected(state, key, (1,)))
        elif act == 4:
            store.undo()
        else:
            store.redo()
        assert store.state.active_entry is not None
        assert store.state.base_entry is not None
        assert store.state.selection.entry == "" or store.state.entry(store.state.selection.entry) is not None
