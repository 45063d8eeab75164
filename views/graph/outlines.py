"""Outlines of what was looked at last, and the job that makes the next one."""

from __future__ import annotations

from collections.abc import Callable

from engine.layout.outline import Outline
from views.graph.comparison import Comparison
from views.ports import Host

_KEPT = 6


class Outlines:
    """Asks for an outline once; whoever wants it is told when it is there."""

    def __init__(self, host: Host, arrived: Callable[[Comparison], None]) -> None:
        self._host = host
        self._arrived = arrived
        self._known: dict[Comparison, Outline | str] = {}
        self._wanted: Comparison | None = None
        self._job = 0

    def get(self, wanted: Comparison) -> Outline | str | None:
        """The outline, why there is none (empty: it was cancelled), or None while it is on its way."""
        if wanted not in self._known and wanted != self._wanted:
            self._ask(wanted)
        return self._known.get(wanted)

    def forget(self, wanted: Comparison) -> None:
        """Ask again next time."""
        self._known.pop(wanted, None)

    def clear(self) -> None:
        self.cancel()
        self._wanted = None
        self._known.clear()

    def cancel(self) -> None:
        if self._job:
            self._host.cancel(self._job)

    def _ask(self, wanted: Comparison) -> None:
        self.cancel()
        while len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        self._wanted, self._job = wanted, 0
        job = self._host.outline(wanted, self._taker(wanted))
        self._job = job if self._wanted == wanted else 0

    def _taker(self, wanted: Comparison) -> Callable[[Outline | str], None]:
        def taken(found: Outline | str) -> None:
            if wanted != self._wanted:
                if found:  # not what was cancelled because another one was chosen
                    self._known[wanted] = found
                return
            self._wanted, self._job = None, 0
            self._known[wanted] = found
            self._arrived(wanted)

        return taken
