"""The guard of schedulers that place from the beginning."""

from __future__ import annotations

from engine.schedule.guard import GONE, Guard
from engine.schedule.instance import DONE, START, Instance


class ForwardGuard(Guard):
    """What is unplaced could follow; the first unplaced node of the safe order may always come next."""

    def __init__(self, instance: Instance, safe: list[int]) -> None:
        super().__init__(instance, safe, opening=START, closing=DONE)
        self._first = 0
        self._begin = instance.memory.begin
        """Bytes live between what is placed and what is not."""

    @property
    def next(self) -> int:
        while self._placed[self._safe[self._first]]:
            self._first += 1
        return self._safe[self._first]

    def _beyond(self, place: int) -> slice:
        return slice(0, place)

    def _may_live(self, node: int, *, forced: bool) -> bool:
        memory, at, live = self._instance.memory, self._place[node], self._live
        size = memory.size
        made = sum([size[b] for b in memory.defines[node]])
        kept = sum([size[b] for b in memory.defines[node] if memory.readers[b]])
        over = self._begin + made + memory.callee[node] > self._cap
        if not forced and (over or int(live[:at].max(initial=0)) + kept > self._cap):
            return False
        live[:at] += kept
        live[at] = GONE
        self._begin += kept
        for b in memory.reads[node]:
            if memory.live_out[b]:
                continue
            last = max((self._place[r] for r in self._unplaced_readers(b, node)), default=-1)
            if last < at:
                live[last + 1 : at] -= size[b]
            if last < 0:
                self._begin -= size[b]
        return True

    def _unplaced_readers(self, buffer: int, node: int) -> list[int]:
        return [r for r in self._readers_of.of(buffer).tolist() if not self._placed[r] and r != node]
