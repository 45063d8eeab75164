"""Proposals while it is being decided which of them stand, and the two-candidate rule that decides between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from engine.passes.decompose.decide.proposals import Proposal, collectives_of_site, einsums_of_site
from engine.passes.decompose.find.gathers import GatherClass
from engine.passes.decompose.gate.pricing import Pricing
from engine.passes.decompose.refusal import Refusal
from engine.passes.decompose.site import AllReduceSite, ScatterSite, Site

Propose = Callable[[Iterable[int]], Proposal | None]
"""The proposal when some einsums are done elsewhere; None when no einsum is left. Raises Refusal."""


@dataclass(eq=False, slots=True)
class Entry:
    """One thing that could be decomposed, and how it stands."""

    site: Site
    """As found."""
    forced: bool
    propose: Propose
    proposal: Proposal | None = None
    reason: str = ""
    """Why it is out; empty while it is in."""
    lost: dict[int, Entry] = field(default_factory=dict)
    """Einsums that another entry has, and which."""
    notes: list[str] = field(default_factory=list)
    """What the verdict says besides."""
    full: Proposal | None = None
    """What was proposed before any einsum was lost: its gain is shown next to the winner's."""

    @property
    def collectives(self) -> tuple[int, ...]:
        return collectives_of_site(self.site)

    @property
    def einsums(self) -> tuple[int, ...]:
        """What it would make partial now."""
        return self.proposal.einsums if self.proposal is not None else ()

    @property
    def gain(self) -> int:
        return self.proposal.terms.gain if self.proposal is not None else 0

    def update(self) -> None:
        """Propose anew without what was lost."""
        try:
            self.proposal = self.propose(self.lost)
        except Refusal as reason:
            self.proposal, self.reason = None, str(reason)
            return
        if self.full is None:
            self.full = self.proposal


def settle(entries: Sequence[Entry], pricing: Pricing, stands: Callable[[Entry], bool]) -> None:
    """Give every einsum that several entries want to one of them; what loses is proposed again without it.

    `stands` says whether an entry is worth it. An entry that no longer is drops out for good, and what it had won is
    given anew, so this ends.
    """
    out: set[int] = set()
    while True:
        for entry in entries:
            entry.lost.clear()
            if id(entry) not in out:
                entry.update()
                if not stands(entry):
                    out.add(id(entry))
        contested: dict[int, list[Entry]] = {}
        for entry in entries:
            if id(entry) not in out:
                for einsum in entry.einsums:
                    contested.setdefault(einsum, []).append(entry)
        changed: dict[int, Entry] = {}
        for einsum, rivals in contested.items():
            if len(rivals) > 1:
                winner = _winner(einsum, rivals, pricing)
                for rival in rivals:
                    if rival is not winner:
                        rival.lost[einsum] = winner
                        changed[id(rival)] = rival
        dropped = False
        for entry in changed.values():
            entry.update()
            if entry.proposal is None or not stands(entry):
                dropped |= entry.proposal is not None
                if entry.proposal is not None:
                    out.add(id(entry))
        if not dropped:
            return


def _winner(einsum: int, rivals: Sequence[Entry], pricing: Pricing) -> Entry:
    """The two-candidate rule of Wang et al. §5.5, for any number of candidates.

    An einsum that is faster than every collective goes to the one with the smallest shards, any other to the slowest
    collective. The rule stands in for gains that are hard to compare; where they are not (one is less than half of
    the best, or loses more than twice what the best loses), the larger gain wins. What the user forces goes first.
    """
    rivals = [r for r in rivals if r.forced] or rivals
    best = max(r.gain for r in rivals)
    rivals = [r for r in rivals if (2 * r.gain >= best if best > 0 else r.gain >= 2 * best)]
    comm = {id(r): pricing.comm(r.collectives) for r in rivals}
    if pricing.comp((einsum,)) < min(comm.values()):
        return min(rivals, key=lambda r: pricing.shard_bytes(r.site))
    return max(rivals, key=lambda r: comm[id(r)])


def gather_entry_proposer(found: GatherClass, propose: Callable[[GatherClass], Proposal]) -> Propose:
    """Proposes a gather without the einsums it lost: they then read the array that it puts together again."""

    def proposed(lost: Iterable[int]) -> Proposal | None:
        left = found.without(lost)
        return None if left is None else propose(left)

    return proposed


def alternatives_proposer(ways: Sequence[tuple[Site, Callable[[], Proposal]]]) -> Propose:
    """Proposes the best of several ways to take one collective apart, of those whose einsums are all left."""

    def proposed(lost: Iterable[int]) -> Proposal | None:
        gone = set(lost)
        best: Proposal | None = None
        refused: Refusal | None = None
        for site, propose in ways:
            if gone & set(einsums_of_site(site)):
                continue
            try:
                made = propose()
            except Refusal as reason:
                refused = refused or reason
                continue
            if best is None or made.terms.gain > best.terms.gain:
                best = made
        if best is None and refused is not None:
            raise refused
        return best

    return proposed


def single_entry_proposer(site: Site, propose: Callable[[Site], Proposal]) -> Propose:
    """Proposes a site that stands or falls as a whole."""

    def proposed(lost: Iterable[int]) -> Proposal | None:
        return None if set(lost) & set(einsums_of_site(site)) else propose(site)

    return proposed


def is_whole(site: Site) -> bool:
    """Whether it is an all-reduce that nobody slices."""
    return isinstance(site, AllReduceSite) or (isinstance(site, ScatterSite) and site.gathered)
