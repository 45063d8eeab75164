from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.session.store import Store


@dataclass(frozen=True)
class State:
    budget: int = 4
    name: str = "a"
    selection: int = 0


def store() -> Store[State]:
    return Store(State(), transient=frozenset({"selection"}))


def test_update_notifies_once_with_what_changed() -> None:
    subject = store()
    seen: list[tuple[State, frozenset[str]]] = []
    subject.subscribe(lambda state, changed: seen.append((state, changed)))
    assert subject.update("Budget 8", budget=8, name="a")
    assert seen == [(State(8), frozenset({"budget"}))]


def test_update_without_difference_does_nothing() -> None:
    subject = store()
    seen: list[State] = []
    subject.subscribe(lambda state, changed: seen.append(state))
    assert not subject.update("Budget 4", budget=4)
    assert not seen
    assert subject.undo_label is None


def test_undo_and_redo_name_the_step() -> None:
    subject = store()
    subject.update("Budget 8", budget=8)
    assert subject.undo_label == "Budget 8"
    assert subject.undo() == "Budget 8"
    assert subject.state == State()
    assert subject.redo_label == "Budget 8"
    assert subject.redo() == "Budget 8"
    assert subject.state == State(8)
    assert subject.redo() is None


def test_selection_is_no_step_and_survives_undo() -> None:
    subject = store()
    subject.update("Budget 8", budget=8)
    subject.update("Select", selection=3)
    assert subject.undo_label == "Budget 8"
    subject.undo()
    assert subject.state == State(4, selection=3)


def test_settled_results_are_no_step() -> None:
    subject = store()
    subject.update("Budget 8", budget=8)
    subject.settle(name="result")
    subject.undo()
    assert subject.state == State(4, "a")
    subject.redo()
    assert subject.state == State(8, "result")


def test_a_dragged_slider_is_one_step() -> None:
    subject = store()
    for budget in (5, 6, 7):
        subject.update(f"Budget {budget}", merge="budget", budget=budget)
    subject.undo()
    assert subject.state == State(4)
    assert subject.undo() is None


def test_a_new_step_ends_redo_and_merging() -> None:
    subject = store()
    subject.update("Budget 5", merge="budget", budget=5)
    subject.undo()
    subject.update("Name b", name="b")
    assert subject.redo_label is None
    subject.update("Budget 6", merge="budget", budget=6)
    subject.undo()
    assert subject.state == State(4, "b")


def test_unsubscribed_listeners_are_left_alone() -> None:
    subject = store()
    seen: list[State] = []
    stop = subject.subscribe(lambda state, changed: seen.append(state))
    stop()
    stop()
    subject.update("Budget 8", budget=8)
    assert not seen


def test_reset_forgets_history() -> None:
    subject = store()
    subject.update("Budget 8", budget=8)
    subject.reset(State(2))
    assert subject.undo() is None
    assert subject.state == State(2)


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError):
        store().update("typo", budgett=3)


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(0, 12))
def test_undoing_everything_gives_the_first_state_and_redo_the_last(budgets: list[int], back: int) -> None:
    subject = store()
    for budget in budgets:
        subject.update(f"Budget {budget}", budget=budget)
    last = subject.state
    steps = 0
    while subject.undo() is not None:
        steps += 1
    assert subject.state == State()
    for _ in range(steps):
        subject.redo()
    assert subject.state == last


class TestPosition:
    def test_it_comes_back_with_undo_and_redo_and_never_by_chance(self) -> None:
        subject = store()
        start = subject.position
        subject.update("Budget 8", budget=8)
        saved = subject.position
        assert saved != start
        subject.update("Name b", name="b")
        subject.undo()
        assert subject.position == saved
        subject.undo()
        assert subject.position == start
        subject.redo()
        assert subject.position == saved
        subject.undo()
        subject.update("Budget 9", budget=9)
        assert subject.position not in (start, saved)

    def test_results_and_selections_do_not_move_it(self) -> None:
        subject = store()
        subject.update("Budget 8", budget=8)
        saved = subject.position
        subject.settle(name="result")
        subject.update("Select", selection=3)
        assert subject.position == saved

    def test_a_slider_dragged_on_moves_it(self) -> None:
        subject = store()
        subject.update("Budget 5", merge="budget", budget=5)
        saved = subject.position
        subject.update("Budget 6", merge="budget", budget=6)
        assert subject.position != saved

    def test_a_start_that_is_forgotten_does_not_come_back(self) -> None:
        subject = Store(State(), depth=2)
        start = subject.position
        for budget in (5, 6, 7):
            subject.update("Budget", budget=budget)
        while subject.undo() is not None:
            pass
        assert subject.state == State(5)
        assert subject.position != start

    def test_another_state_is_another_position(self) -> None:
        subject = store()
        start = subject.position
        subject.reset(State())
        assert subject.position != start


class TestTransient:
    def test_a_step_that_moved_the_selection_takes_it_back(self) -> None:
        subject = store()
        subject.update("Select", selection=1)
        subject.update("Add", name="b", selection=2)
        subject.undo()
        assert subject.state == State(selection=1)
        subject.redo()
        assert subject.state == State(name="b", selection=2)

    def test_a_selection_that_went_elsewhere_since_stays(self) -> None:
        subject = store()
        subject.update("Add", name="b", selection=2)
        subject.update("Select", selection=3)
        subject.undo()
        assert subject.state == State(selection=3)

    def test_what_is_gone_is_mended(self) -> None:
        def mended(_: State, state: State) -> State:
            return State(state.budget, state.name, min(state.selection, state.budget))

        subject = Store(State(), frozenset({"selection"}), mended=mended)
        subject.update("Budget 8", budget=8)
        subject.update("Select", selection=7)
        subject.undo()
        assert subject.state == State(4, selection=4)
