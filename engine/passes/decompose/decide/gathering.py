"""How merged gathers are best decomposed: a later einsum reads the array put together again, or gathers once more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.passes.decompose.decide.proposals import Part, Proposal, Proposer
from engine.passes.decompose.find.gathers import GatherClass
from engine.passes.decompose.refusal import Refusal
from engine.passes.decompose.site import EinsumUse, GatherSite


def propose_gather(proposer: Proposer, found: GatherClass) -> Proposal:
    """The best decomposition of one class, its later einsums included. Raises Refusal."""
    site = found.site
    needed = f"the gathered array is needed before {found.needed_before}" if found.needed_before else ""
    if not found.later:
        return proposer.propose(site, straight_only=needed if site.rebuild else "")
    names = " and ".join(proposer.flow.name(u.instruction) for u in found.later)
    rebuilt = proposer.propose(
        replace(site, rebuild=True),
        straight_only=needed,
        notes=(f"{names} depends on it and reads the array put together again",),
    )
    if site.rebuild:
        return rebuilt
    try:
        again = _again(proposer, site, found.later, names)
    except Refusal:
        return rebuilt
    return again if again.terms.gain > rebuilt.terms.gain else rebuilt


def _again(proposer: Proposer, site: GatherSite, later: Sequence[EinsumUse], names: str) -> Proposal:
    """Every later einsum gathers for itself in a loop of its own."""
    first = proposer.best(site)
    parts = [first]
    for use in later:
        part = proposer.best(replace(site, uses=(use,), collectives=site.collectives[:1]))
        # The collective is saved once only.
        saved = proposer.pricing.comm(site.collectives[:1])
        parts.append(Part(part.site, part.variant, replace(part.terms, comm=part.terms.comm - saved)))
    return Proposal(tuple(parts), (f"{names} depends on it and gathers once more, in a loop of its own",))
