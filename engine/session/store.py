"""The one place where the session changes: replaces it, remembers what can be undone, notifies once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, TypeVar

State = TypeVar("State")
Listener = Callable[[Any, frozenset[str]], None]


@dataclass(frozen=True)
class Step(Generic[State]):
    """One undoable change: what it is called, and the state before (on the undo stack) or after (on the redo stack)."""

    label: str
    state: State


class Store(Generic[State]):
    """Holds one frozen dataclass instance.

    Fields named in `transient` (selection, …) are not remembered: a change of them alone is no undo step, and undoing
    another change leaves them as they are.
    """

    def __init__(self, state: State, transient: frozenset[str] = frozenset(), depth: int = 200) -> None:
        self._state = state
        self._transient = transient
        self._depth = depth
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
            if merge is None or merge != self._merge or not self._undo:
                self._undo.append(Step(label, before))
                del self._undo[: -self._depth]
            self._redo.clear()
            self._merge = merge
        self._notify(changed)
        return True

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
        target.append(Step(step.label, self._state))
        self._merge = None
        kept = {name: getattr(self._state, name) for name in self._transient}
        before = self._state
        self._state = replace(step.state, **kept)  # type: ignore[type-var] # State is a dataclass
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
