"""What was decided of every collective and chain, as the candidates that the user sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.ir.flow import Flow
from engine.passes.candidate import Candidate, GateTerms
from engine.passes.decompose.decide.entries import Entry, is_whole
from engine.passes.decompose.decide.overrides import Overrides
from engine.passes.decompose.decide.proposals import Proposal
from engine.passes.decompose.find.examining import Examined
from engine.passes.decompose.gate.pricing import Pricing
from engine.passes.decompose.site import ChainSite
from engine.passes.decompose.verdicts import elsewhere, listed, lost, weighed

_FORBIDDEN = "left as it is by the plan (forbid)"
_LOSING = "does not pay in the simulator"


class Candidates:
    """Words and numbers for what stands (`standing`), and for what does not."""

    def __init__(
        self,
        flow: Flow,
        pricing: Pricing,
        rows: Mapping[int, str],
        overrides: Overrides,
        entry_of: Mapping[int, Sequence[Entry]],
        standing: Sequence[Entry],
        judged: Mapping[int, Candidate],
    ) -> None:
        """`rows` are the rows' names by collective, `entry_of` all entries by collective; `judged` is what the gate
        alone would make of those that do not pay in the simulator."""
        self._judged = judged
        self._flow = flow
        self._pricing = pricing
        self._rows = rows
        self._overrides = overrides
        self._entry_of = entry_of
        self._standing = standing
        self._stands = {id(e) for e in standing}
        self._chain_of = {c: e for e in standing if isinstance(e.site, ChainSite) for c in e.collectives}

    def of_collective(self, one: Examined) -> Candidate:
        """What was decided of one collective."""
        id_ = one.collective.id
        made = Candidate(
            id=self._flow.name(id_),
            kind=one.kind,
            collective=id_,
            einsums=one.einsums,
            group_size=one.group_size,
            case=one.case,
            chosen=False,
            reason=one.reason,
            trips=self._flow.trips.get(one.collective.computation, 1),
            row=self._rows[id_],
            origins=self._flow.module.origins.get(id_, ()),
        )
        if id_ in self._overrides.forbidden:
            return replace(made, reason=_FORBIDDEN)
        if id_ in self._overrides.losing:
            alone = self._judged[id_]
            return replace(made, gate=alone.gate, reason=f"{_LOSING}; by the gate alone: {alone.reason}")
        entries = self._entry_of.get(id_, ())
        if not entries:
            return made
        chain = self._chain_of.get(id_)
        if chain is not None and chain.proposal is not None:
            part = self._share(chain.proposal.terms, chain, id_)
            reason = f"one chain with {self._partner(chain, id_)}: {weighed(chain.proposal.terms)}"
            return replace(made, chosen=True, reason=reason, gate=part, variant=self._variants(chain))
        entry = next((e for e in entries if id(e) in self._stands), entries[0])
        shown = entry.proposal or entry.full
        gate = self._share(shown.terms, entry, id_) if shown is not None else None
        if id(entry) in self._stands and entry.proposal is not None:
            return replace(
                made, chosen=True, gate=gate, reason=self._yes(entry, one, gate), variant=self._variants(entry)
            )
        return replace(made, gate=gate, reason=self._no(entry, one, gate))

    def of_chain(self, site: ChainSite, proposal: Proposal | None, reason: str) -> Candidate:
        """What was decided of one chain; `reason` is why it does not stand, empty where it did when it was tried."""
        name = self._flow.name
        first, last = site.gather.collectives[0], site.scatter.collective
        chosen = any(e.site is site for e in self._standing)
        gate = proposal.terms if proposal is not None else None
        if chosen and gate is not None:
            reason = weighed(gate)
        return Candidate(
            id=f"{name(first)}..{name(last)}",
            kind="chain",
            collective=first,
            einsums=(*(u.instruction for u in site.gather.uses), site.scatter.use.instruction),
            group_size=site.gather.groups.size,
            case=site.gather.uses[0].case.value,
            chosen=chosen,
            reason=reason or "its ends are decomposed otherwise",
            gate=gate,
            variant="chain" if chosen else "",
            trips=self._flow.trips.get(site.computation, 1),
            row=f"{self._rows[first]}..{self._rows[last]}",
            origins=self._flow.module.origins.get(first, ()),
        )

    def _share(self, terms: GateTerms, entry: Entry, collective: int) -> GateTerms:
        """The part of an entry's terms that goes to one of its collectives, by time; parts add up to all of it."""
        others = [c for c in entry.collectives if c != collective]
        own, rest = self._pricing.comm((collective,)), self._pricing.comm(others)
        if not rest:
            return terms

        def part(value: int) -> int:
            return value * own // (own + rest)

        return replace(
            terms,
            comp=part(terms.comp),
            comm=part(terms.comm),
            ring=part(terms.ring),
            extra=part(terms.extra),
            beside=part(terms.beside),
        )

    def _yes(self, entry: Entry, one: Examined, gate: GateTerms | None) -> str:
        assert gate is not None
        assert entry.proposal is not None
        text = weighed(gate)
        if entry.forced:
            text = f"forced by the plan: {text}"
        merged = [self._flow.name(c) for c in entry.collectives if c != one.collective.id]
        notes = [*entry.proposal.notes, *entry.notes]
        if merged:
            notes.append(f"one loop with the equal {listed(merged)}")
        if entry.lost:
            notes.append(self._rivalry(entry, one))
        return "; ".join([text, *notes])

    def _no(self, entry: Entry, one: Examined, gate: GateTerms | None) -> str:
        if entry.reason:
            return entry.reason
        if entry.lost and entry.proposal is None:
            return self._rivalry(entry, one)
        if is_whole(entry.site) and gate is not None and gate.gain <= 0:
            return f"its result is used whole; as a reduce-scatter and an all-gather: {lost(gate)}"
        text = lost(gate) if gate is not None else "no form applies"
        return "; ".join([text, *([self._rivalry(entry, one)] if entry.lost else []), *entry.notes])

    def _rivalry(self, entry: Entry, one: Examined) -> str:
        """Who has the einsums that `entry` wanted too; those that read this very collective, where they are known."""
        lost_here = {e: w for e, w in entry.lost.items() if e in one.einsums} or entry.lost
        winner = next(iter(lost_here.values()))
        names = [self._flow.name(e) for e, w in lost_here.items() if w is winner]
        own, other = entry.full, winner.full
        assert own is not None
        assert other is not None
        return elsewhere(names, self._flow.name(winner.collectives[0]), own.terms, other.terms)

    def _partner(self, chain: Entry, collective: int) -> str:
        return listed([self._flow.name(c) for c in chain.collectives if c != collective])

    def _variants(self, entry: Entry) -> str:
        assert entry.proposal is not None
        kinds = list(dict.fromkeys(str(p.variant) for p in entry.proposal.parts))
        prefix = "chain, " if isinstance(entry.site, ChainSite) else ""
        return prefix + "; ".join(kinds)
