"""How the user has arranged the lanes of the timelines: by name, and alike in every variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Lanes:
    """Names of lanes and counters. What is not named anywhere stands where it would without an arrangement."""

    order: tuple[str, ...] = ()
    """From the top."""
    pinned: tuple[str, ...] = ()
    """Stay in view, right under their variant's header."""
    hidden: tuple[str, ...] = ()
    """Folded into the line of idle lanes."""

    def arranged(self, names: Sequence[str]) -> list[int]:
        """Positions of `names` in the order in which to draw them: pinned ones first."""
        place = {name: number for number, name in enumerate(self.order)}
        # What has no place of its own goes after what it followed.
        keys, after = [], -1
        for number, name in enumerate(names):
            after = place.get(name, after)
            keys.append((name not in self.pinned, after, name not in place, number))
        return sorted(range(len(names)), key=keys.__getitem__)

    def moved(self, name: str, before: str | None, shown: Sequence[str]) -> Lanes:
        """Put a lane before another one, or (None) last. `shown` are the names as drawn now, from the top."""
        rest = [other for other in shown if other != name]
        at = rest.index(before) if before in rest else len(rest)
        order = (*rest[:at], name, *rest[at:])
        return replace(self, order=(*order, *(other for other in self.order if other not in order)))

    def toggled_pin(self, name: str) -> Lanes:
        """Pin a lane, or let it go."""
        others = tuple(other for other in self.pinned if other != name)
        return replace(self, pinned=others if name in self.pinned else (*others, name))

    def without(self, name: str) -> Lanes:
        """Hide a lane."""
        pinned = tuple(other for other in self.pinned if other != name)
        return replace(self, pinned=pinned, hidden=(*(o for o in self.hidden if o != name), name))

    def all_shown(self) -> Lanes:
        return replace(self, hidden=())
