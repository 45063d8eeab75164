"""The one place where the session changes: replaces it, remembers what can be undone, notifies once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar

State = TypeVar("State")
Listener = Callable[[Any, frozenset[str]], None]


@dataclass(frozen=True)
class Step(Generic[State]):
    """One undoable change: what it is called, and the state before (on the undo stack) or after (on the redo stack)."""

    label: str
    state: State
    number: int = 0
    """Its own: no two steps, and no two forms of a merged one, have the same."""
    moved: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """Transient fields that it changed along with others → (before, after)."""


class Store(Generic[State]):
    """Holds one frozen dataclass instance.

    Fields named in `transient` (selection, …) are not remembered: a change of them alone is no undo step, and undoing
    another change leaves them as they are, unless that change moved them and they are still where it put them.
    `mended` makes a state sound after undo or redo, given the state before and the new one: what the transient fields
    point at may be gone, or be something else.
    """

    def __init__(
        self,
        state: State,
        transient: frozenset[str] = frozenset(),
        depth: int = 200,
        mended: Callable[[State, State], State] = lambda _, state: state,
    ) -> None:
        self._state = state
        self._transient = transient
        self._depth = depth
        self._mended = mended
        self._first = 0
        """Number of the position before every step that can be undone."""
        self._last = 0
        self._undo: list[Step[State]] = []
        self._redo: list[Step[State]] = []
        self._listeners: list[Listener] = []
        self._merge: str | None = None

    @property
    def state(self) -> State:
        return self._state

    @property
    def undo_label(self) -> str | None:
        """Name of the change that `undo` would take back; None when there is none."""
        return self._undo[-1].label if self._undo else None

    @property
    def redo_label(self) -> str | None:
        return self._redo[-1].label if self._redo else None

    @property
    def position(self) -> int:
        """Which of all states that steps led to this is: the same again after undo and redo, never one given before.

        Results that arrive, and changes of transient fields alone, do not move it.
        """
        return self._undo[-1].number if self._undo else self._first

    def states(self) -> Iterator[State]:
        """The present state, and all that undo and redo can bring back."""
        yield self._state
        yield from (step.state for step in (*self._undo, *self._redo))

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(state, changed fields)` after every change. Returns what ends the subscription."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def update(self, label: str, *, merge: str | None = None, **values: object) -> bool:
        """Replace fields as one undoable step called `label`. Returns whether anything differed.

        Consecutive steps with the same `merge` key become one: a slider that is dragged is one step.
        """
        return self.become(label, replace(self._state, **values), merge=merge)  # type: ignore[type-var] # a dataclass

    def become(self, label: str, state: State, *, merge: str | None = None) -> bool:
        """Take `state`, an edit of the present one, as one undoable step; as `update` otherwise."""
        before = self._state
        changed = _differing(before, state)
        if not changed:
            return False
        self._state = state
        if changed - self._transient:
            self._take(Step(label, before), state, merged=merge is not None and merge == self._merge)
            self._merge = merge
        self._notify(changed)
        return True

    def _take(self, step: Step[State], after: State, *, merged: bool) -> None:
        """Put a step that led to `after` on the undo stack, in one with the last where they are `merged`."""
        if merged and self._undo:
            step = self._undo.pop()
        self._last += 1
        moved = {
            name: (one, two)
            for name in self._transient
            if (one := getattr(step.state, name)) is not (two := getattr(after, name)) and one != two
        }
        self._undo.append(replace(step, number=self._last, moved=moved))
        if len(self._undo) > self._depth:
            self._first = self._undo.pop(0).number
        self._redo.clear()

    def settle(self, **values: object) -> bool:
        """Replace fields without an undo step: results that arrive, never what the user decided."""
        before = self._state
        self._state = replace(before, **values)  # type: ignore[type-var] # State is a dataclass
        changed = _differing(before, self._state)
        if changed:
            self._notify(changed)
        return bool(changed)

    def reset(self, state: State) -> None:
        """Start over with another state (a file was opened); history goes."""
        names = frozenset(f.name for f in fields(state))  # type: ignore[arg-type] # State is a dataclass
        self._state = state
        self._last += 1
        self._first = self._last
        self._undo.clear()
        self._redo.clear()
        self._merge = None
        self._notify(names)

    def undo(self) -> str | None:
        """Take back the last step. Returns its label, None when there was nothing to undo."""
        return self._travel(self._undo, self._redo)

    def redo(self) -> str | None:
        return self._travel(self._redo, self._undo)

    def _travel(self, source: list[Step[State]], target: list[Step[State]]) -> str | None:
        if not source:
            return None
        step = source.pop()
        target.append(replace(step, state=self._state))
        self._merge = None
        before = self._state
        kept = {name: getattr(before, name) for name in self._transient}
        for name, (first, second) in step.moved.items():
            left, reached = (first, second) if source is self._undo else (second, first)
            if kept[name] == reached:
                kept[name] = left
        self._state = self._mended(before, replace(step.state, **kept))  # type: ignore[type-var] # State is a dataclass
        self._notify(_differing(before, self._state))
        return step.label

    def _notify(self, changed: frozenset[str]) -> None:
        for listener in tuple(self._listeners):
            listener(self._state, changed)


def _differing(before: object, after: object) -> frozenset[str]:
    """Names of the fields whose values are not equal; identity is asked first, since values can be large."""
    return frozenset(
        f.name
        for f in fields(before)  # type: ignore[arg-type] # both are dataclass instances
        if (one := getattr(before, f.name)) is not (two := getattr(after, f.name)) and one != two
    )
