"""What the user forces or forbids, and what did not pay in the simulator: by the names of collectives or of rows of
alike ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.errors import UsageError
from engine.ir.flow import Flow
from engine.passes.decompose.find.examining import Examined
from engine.passes.decompose.options import Options


@dataclass(frozen=True, slots=True)
class Overrides:
    """Ids of collectives."""

    forced: frozenset[int]
    forbidden: frozenset[int]
    """Without those that are forced too: one by its own name, the other by that of its row."""
    losing: frozenset[int]
    """Of the others, those that do not pay in the simulator."""

    @property
    def left(self) -> frozenset[int]:
        """All that stay as they are."""
        return self.forbidden | self.losing

    def force_any(self, collectives: Iterable[int]) -> bool:
        """Whether one of `collectives` is forced."""
        return not self.forced.isdisjoint(collectives)


def overrides_of(flow: Flow, examined: Sequence[Examined], rows: Mapping[int, str], options: Options) -> Overrides:
    """What `options` say of the collectives `examined`; `rows` are the rows' names by collective.

    Raises UsageError for a name that nothing has, and for one that is forced and forbidden at once.
    """
    known: dict[str, list[int]] = {}
    for one in examined:
        collective = one.collective
        for label in {flow.name(collective.id), flow.name(collective.start), rows[collective.id]}:
            known.setdefault(label, []).append(collective.id)
    forced = _named(known, "force", options.force)
    both = set(options.force) & set(options.forbid)
    if both:
        raise UsageError(f"decompose: {', '.join(sorted(both))} cannot be forced and forbidden at once")
    forbidden = _named(known, "forbid", options.forbid) - forced
    return Overrides(forced, forbidden, _named(known, "losing", options.losing) - forced - forbidden)


def _named(known: Mapping[str, Sequence[int]], option: str, names: Sequence[str]) -> frozenset[int]:
    found: set[int] = set()
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"{option}={name}: the module has no collective or row of that name{hint}")
        found.update(known[name])
    return frozenset(found)
