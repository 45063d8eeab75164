"""Layouts: small ones at once, large ones by a job, always the last one that was asked for."""

from __future__ import annotations

from collections.abc import Callable

from engine.layout.picture import Picture, Skeleton, arrange
from views.ports import Host

_NODES, _EDGES = 80, 160
"""Up to which a layout is made without a job: it takes a few milliseconds."""


class Layouts:
    """One layout is wanted at a time."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._number = 0
        self._job = 0
        self.running = False

    def start(self, skeleton: Skeleton, placed: Callable[[Picture], None], failed: Callable[[str], None]) -> None:
        """Call `placed` with the picture, or `failed` with what went wrong (empty: it was cancelled)."""
        if self.running:
            self._host.cancel(self._job)
        self._number += 1
        number = self._number
        self.running = True
        if len(skeleton.items) <= _NODES and len(skeleton.source) <= _EDGES:
            self.running = False
            placed(arrange(skeleton))
            return

        def arrived(found: Picture | str) -> None:
            if number != self._number:
                return
            self.running = False
            if isinstance(found, str):
                failed(found)
            else:
                placed(found)

        self._job = self._host.arrange(skeleton, arrived)
