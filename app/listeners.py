"""Who is told when something changes: views, for as long as they are there."""

from __future__ import annotations

from collections.abc import Callable


class Listeners:
    """Functions without arguments, told in the order in which they came."""

    def __init__(self) -> None:
        self._all: list[Callable[[], None]] = []

    def add(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Tell `listener` from now on. Returns what ends that; it may be called more than once."""
        self._all.append(listener)

        def stop() -> None:
            if listener in self._all:
                self._all.remove(listener)

        return stop

    def tell(self) -> None:
        """Those who come or go meanwhile are told of the next change, or not any more."""
        for listener in tuple(self._all):
            listener()
