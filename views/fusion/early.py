"""Says of each transfer which fusion waits for it too early, and what another decision makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.passes.fusion import Alternative, Fusion
from engine.quantities import time_text
from engine.session.lookup import lookup
from engine.session.session import Entry
from engine.session.variant import Variant
from views.fusion.harm import caused, taken, waited_by_name
from views.ports import Host

Tried = tuple[Alternative, Variant]
"""Another decision, and what came of it."""


@dataclass(frozen=True, eq=False)
class Early:
    """A transfer that a fusion is the first to wait for although its einsum does not need it. Picoseconds."""

    done: str
    fusion: Fusion
    exposed: int
    """How long compute waits for it."""

    def said(self, tried: Iterable[Tried] = ()) -> str:
        """One sentence; with the best of the decisions that were tried, if one is better."""
        text = f"{self.done}: {self.fusion.name} waits for it too early, {time_text(self.exposed)} of transfer exposed"
        found = [(waited_by_name(then).get(self.done, 0), choice.what) for choice, then in tried]
        if not found:
            return text
        left, what = min(found)
        if left < self.exposed:
            return f"{text}; {what} instead: {time_text(left)}"
        return f"{text}; to {' or to '.join(what for _, what in found)} does not change that"


def early_dones(variant: Variant, fusion: Fusion) -> tuple[Early, ...]:
    """What a fusion waits for too early, longest first."""
    waited = waited_by_name(variant)
    found = (Early(done, fusion, waited.get(done, 0)) for done in caused(variant, fusion))
    return tuple(sorted((e for e in found if e.exposed), key=lambda e: -e.exposed))


def early_of(variant: Variant, instruction: int) -> Iterator[Early]:
    """The same for one transfer, given by its done or its start."""
    there = lookup(variant)
    place = there.place(instruction)
    if place is None:
        return
    graph, node = place
    names = {graph.names[node]}
    partner = int(graph.partner[node])
    if partner >= 0:
        names.add(graph.names[partner])
    for fusion in variant.fusions:
        if names & set(fusion.foreign):
            yield from (early for early in early_dones(variant, fusion) if early.done in names)


def tried_of(host: Host, entry: Entry, fusion: Fusion) -> list[Tried]:
    """Those of a fusion's alternatives whose timelines are known."""
    found = ((c, host.evaluated(entry.asking(taken(entry.plan, c)))) for c in fusion.alternatives)
    return [(choice, variant) for choice, variant in found if variant is not None]
