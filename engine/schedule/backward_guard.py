"""The guard of schedulers that place from the end backwards."""

from __future__ import annotations

from engine.schedule.guard import GONE, Guard
from engine.schedule.instance import DONE, START, Instance


class BackwardGuard(Guard):
    """What is unplaced could run first; the last unplaced node of the safe order may always come next."""

    def __init__(self, instance: Instance, safe: list[int]) -> None:
        super().__init__(instance, safe, opening=DONE, closing=START)
        memory = instance.memory
        self._last = len(safe) - 1
        self._carried = list(memory.live_out)
        """By buffer: whether something placed (or the caller) reads it, so that it lives on after what is unplaced."""
        self._end = memory.fixed + sum(s for s, out in zip(memory.size, memory.live_out, strict=True) if out)
        """Bytes live after what is unplaced."""

    @property
    def next(self) -> int:
        while self._placed[self._safe[self._last]]:
            self._last -= 1
        return self._safe[self._last]

    def _beyond(self, place: int) -> slice:
        return slice(place + 1, None)

    def _may_live(self, node: int, *, forced: bool) -> bool:
        memory, at, live = self._instance.memory, self._place[node], self._live
        removed = [b for b in memory.defines[node] if self._carried[b]]
        made = sum(memory.size[b] for b in memory.defines[node])
        carried = sum(memory.size[b] for b in removed)
        added = [(b, self._last_reader(b)) for b in memory.reads[node] if not self._carried[b]]
        more = sum(memory.size[b] for b, _ in added)
        saved = live[at]
        live[at] = GONE
        if carried:
            live[at + 1 :] -= carried
        for b, last in added:
            live[last + 1 :] += memory.size[b]
        here = self._end - carried + more + made + memory.callee[node]
        lowest = min([last for _, last in added], default=len(live))
        over = here > self._cap or int(live[lowest + 1 :].max(initial=0)) > self._cap
        if over and not forced:
            for b, last in added:
                live[last + 1 :] -= memory.size[b]
            if carried:
                live[at + 1 :] += carried
            live[at] = saved
            return False
        for b, _ in added:
            self._carried[b] = True
        self._end += more - carried
        return True

    def _last_reader(self, buffer: int) -> int:
        """Position up to which `buffer` lives while what is unplaced runs in the safe order."""
        unplaced = [r for r in self._readers_of.of(buffer).tolist() if not self._placed[r]]
        return max((self._place[r] for r in unplaced), default=len(self._safe) - 1)
