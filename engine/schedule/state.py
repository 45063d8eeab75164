"""The state of a schedule that is put together from the end backwards: what dynamic rules look at."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.schedule.instance import DONE, TOTAL, UNLIMITED, Instance


@dataclass(slots=True)
class State:
    """Times run from the end of the computation to its beginning."""

    instance: Instance
    cap: int = UNLIMITED
    """Bytes."""
    now: int = 0
    live: int = 0
    """Bytes live right before what was placed last, in the order of the program."""
    ready_at: list[int] = field(default_factory=list)
    """Of a start: when its transfer will be hidden."""
    left: list[int] = field(default_factory=list)
    """Successors of each node that are not yet placed."""
    flying: list[int] = field(default_factory=lambda: [0] * (TOTAL + 1))
    """Operations in flight by kind, then in total."""
    waiting: list[list[int]] = field(default_factory=list)
    """By kind: dones that could be placed but for the budget."""
    pending: list[tuple[int, int]] = field(default_factory=list)
    """A heap of starts whose successors are placed: (when ready, rank)."""
    alive: bytearray = field(default_factory=bytearray)
    """By buffer: whether it is live there."""

    @property
    def over_cap(self) -> bool:
        return self.live >= self.cap

    def increase(self, node: int) -> int:
        """Bytes by which placing `node` changes what is live; a done together with its start, if that is less."""
        memory, alive = self.instance.memory, self.alive
        size = memory.size
        more = 0
        for b in memory.reads[node]:
            if not alive[b]:
                more += size[b]
        for b in memory.defines[node]:
            if alive[b]:
                more -= size[b]
        if self.instance.role[node] == DONE:
            for b in memory.defines[self.instance.partner[node]]:
                more -= size[b]
        return more

    def peak(self, node: int) -> int:
        """Bytes on top of what is live while `node` runs."""
        memory, alive = self.instance.memory, self.alive
        size = memory.size
        more = memory.callee[node]
        for b in memory.reads[node]:
            if not alive[b]:
                more += size[b]
        for b in memory.defines[node]:
            if not alive[b]:
                more += size[b]
        return more

    def swap(self, node: int) -> None:
        """Bring `live` from after `node` to before it."""
        memory, alive = self.instance.memory, self.alive
        size = memory.size
        for b in memory.reads[node]:
            if not alive[b]:
                alive[b] = 1
                self.live += size[b]
        for b in memory.defines[node]:
            if alive[b]:
                alive[b] = 0
                self.live -= size[b]
