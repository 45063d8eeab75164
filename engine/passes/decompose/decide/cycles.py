"""Loops of several einsums that would wait for each other.

A loop finishes all its einsums at once, so whatever one of them needs, the results of all wait for. Two loops each of
which needs a result of the other would wait forever; straight lines do not, for there every result stands by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.ir.flow import Flow
from engine.passes.decompose.decide.proposals import Part
from engine.passes.decompose.site import AllReduceSite, GatherSite


def tangled(flow: Flow, parts: Sequence[Part]) -> Part | None:
    """A loop in a circle of loops that wait for each other; None where there is no such circle."""
    loops: dict[int, list[tuple[Part, GatherSite]]] = {}
    for part in parts:
        site = part.site.gather if isinstance(part.site, AllReduceSite) else part.site
        if part.variant.form == "rolled" and isinstance(site, GatherSite) and len(site.uses) + site.rebuild > 1:
            loops.setdefault(site.computation, []).append((part, site))
    for computation, members in loops.items():
        if len(members) < 2:
            continue
        found = _circle(flow, computation, members)
        if found is not None:
            return found
    return None


def _circle(flow: Flow, computation: int, members: Sequence[tuple[Part, GatherSite]]) -> Part | None:
    owner: list[int] = []
    marked: list[int] = []
    for k, (_, site) in enumerate(members):
        for id_ in (*(u.instruction for u in site.uses), *(site.collectives if site.rebuild else ())):
            owner.append(k)
            marked.append(id_)
    above = flow.ancestors(computation, marked)
    mask = [0] * len(members)
    for bit, k in enumerate(owner):
        mask[k] |= 1 << bit
    needs: list[set[int]] = []
    for k, (_, site) in enumerate(members):
        needed = 0
        for use in site.uses:
            needed |= above[use.instruction]
        needs.append({other for other in range(len(members)) if other != k and needed & mask[other]})
    stuck = _stuck(needs)
    if not stuck:
        return None
    # Whoever is stuck needs somebody who is: going from one to the next ends up in a circle.
    seen: set[int] = set()
    at = min(stuck)
    while at not in seen:
        seen.add(at)
        at = min(needs[at] & stuck)
    return members[at][0]


def _stuck(needs: Sequence[set[int]]) -> set[int]:
    """Those that never get what they need, when each waits for all that it needs."""
    stuck = set(range(len(needs)))
    while True:
        ready = {k for k in stuck if not needs[k] & stuck}
        if not ready:
            return stuck
        stuck -= ready
