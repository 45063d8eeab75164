"""Listeners are told until they stop, also when they stop or others come while all are told."""

from __future__ import annotations

from collections.abc import Callable

from app.listeners import Listeners


def test_each_is_told_until_it_stops_and_may_stop_twice() -> None:
    listeners, told = Listeners(), list[str]()
    stop = listeners.add(lambda: told.append("first"))
    listeners.add(lambda: told.append("second"))
    listeners.tell()
    stop()
    stop()
    listeners.tell()
    assert told == ["first", "second", "second"]


def test_whoever_stops_or_comes_while_all_are_told_disturbs_nobody() -> None:
    listeners, told = Listeners(), list[str]()
    stops: list[Callable[[], None]] = []

    def leaves() -> None:
        told.append("leaves")
        stops.pop()()
        listeners.add(lambda: told.append("new"))

    stops.append(listeners.add(leaves))
    listeners.add(lambda: told.append("stays"))
    listeners.tell()
    assert told == ["leaves", "stays"]
    listeners.tell()
    assert told == ["leaves", "stays", "stays", "new"]
