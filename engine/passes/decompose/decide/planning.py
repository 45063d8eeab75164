"""Decides what of a module is decomposed, and in which form: search, gate, rivalry over einsums, chains, overrides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from engine.chips.machine import Machine
from engine.control import QUIET, Control
from engine.cost.given import NOTHING_GIVEN, GivenTime
from engine.ir.edit import Editor
from engine.ir.flow import Flow
from engine.ir.groups import Groups
from engine.ir.module import Module
from engine.passes.candidate import Candidate
from engine.passes.decompose.decide.candidates import Candidates
from engine.passes.decompose.decide.cycles import tangled
from engine.passes.decompose.decide.entries import (
    Entry,
    alternatives_proposer,
    gather_entry_proposer,
    is_whole,
    settle,
    single_entry_proposer,
)
from engine.passes.decompose.decide.gathering import propose_gather
from engine.passes.decompose.decide.overrides import overrides_of
from engine.passes.decompose.decide.proposals import Part, Proposal, Proposer, collectives_of_site
from engine.passes.decompose.decide.rows import row_keys
from engine.passes.decompose.find.chains import chain_of, first_einsums
from engine.passes.decompose.find.collectives import collectives_of
from engine.passes.decompose.find.examining import Examined, examine_all
from engine.passes.decompose.find.finder import Finder
from engine.passes.decompose.find.gathers import Gather, GatherClass, dependences_of, gather_classes
from engine.passes.decompose.gate.pricing import Pricing, device_lists
from engine.passes.decompose.options import Options
from engine.passes.decompose.refusal import Refusal
from engine.passes.decompose.rings.orders import reordered_gather, reordered_scatter, ring_order
from engine.passes.decompose.site import AllReduceSite, ChainSite, GatherSite, ScatterSite
from engine.passes.decompose.verdicts import listed
from engine.quantities import time_text

_GATHERED_AGAIN = "its result is used whole: an all-gather follows the loop"


@dataclass(frozen=True, slots=True)
class Planned:
    """What the pass will do."""

    parts: tuple[Part, ...]
    """Sites in the forms they get, in the module's order."""
    candidates: tuple[Candidate, ...]
    """Every collective with its verdict, in the module's order; chains after them."""
    notes: tuple[str, ...] = ()


def plan(
    module: Module,
    machine: Machine,
    options: Options,
    control: Control = QUIET,
    editor: Editor | None = None,
    given: Mapping[int, GivenTime] = NOTHING_GIVEN,
) -> Planned:
    """Search `module` and decide. `editor`, if there is one already, is only looked at. `given` are times by
    instruction id that replace the model's.

    Raises UsageError for overrides that name nothing.
    """
    editor = editor or Editor(module)
    judged: Mapping[int, Candidate] = {}
    if options.losing:  # the gate is asked of them all the same
        whole = plan(module, machine, replace(options, losing=()), control.part(0.0, 0.5), editor, given)
        judged = {c.collective: c for c in whole.candidates if c.kind != "chain"}
        control = control.part(0.5, 1.0)
    return _Planner(module, machine, options, control, editor, given).plan(judged)


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to take an all-reduce apart."""

    site: AllReduceSite | ScatterSite
    straight_only: str = ""
    """Why it can be no loop; empty where it can."""
    notes: tuple[str, ...] = ()


class _Planner:
    def __init__(
        self,
        module: Module,
        machine: Machine,
        options: Options,
        control: Control,
        editor: Editor,
        given: Mapping[int, GivenTime],
    ) -> None:
        self._options = options
        self._machine = machine
        self._control = control
        self.flow = Flow(module)
        collectives = tuple(collectives_of(self.flow))
        finder = Finder(self.flow)
        control.step(0.1, f"searching {len(collectives)} collectives")
        self._examined = examine_all(finder, collectives)
        self._rows = row_keys(self.flow, self._examined)
        self._pricing = Pricing(self.flow, machine, collectives, editor, given)
        self._proposer = Proposer(self.flow, self._pricing, options, editor)
        self._overrides = overrides_of(self.flow, self._examined, self._rows, options)
        self._entry_of: dict[int, list[Entry]] = {}
        self._chains: list[tuple[ChainSite, Proposal | None, str]] = []

    def plan(self, judged: Mapping[int, Candidate]) -> Planned:
        """`judged`: by collective, what would be decided of it if nothing had been tried in the simulator."""
        entries, classes = self._entries()
        self._control.step(0.4, f"weighing {len(entries)} sites")
        settle(entries, self._pricing, self._stands)
        standing = [e for e in entries if e.proposal is not None and self._stands(e)]
        if self._options.chain != "off":
            standing = self._chained(standing, classes, entries)
        standing = self._untangled(standing)
        standing.sort(key=lambda e: self.flow.order[e.collectives[0]])
        parts = tuple(p for e in standing if e.proposal is not None for p in e.proposal.parts)
        made = Candidates(self.flow, self._pricing, self._rows, self._overrides, self._entry_of, standing, judged)
        candidates = (
            *(made.of_collective(one) for one in self._examined),
            *(made.of_chain(*chain) for chain in self._chains),
        )
        return Planned(parts, candidates, self._notes())

    # --- what there is -------------------------------------------------------------------------------------------

    def _entries(self) -> tuple[list[Entry], dict[int, tuple[GatherClass, Entry]]]:
        """Everything that could be decomposed, and by first einsum the gathers that chains begin with."""
        allowed = [x for x in self._examined if x.collective.id not in self._overrides.left]
        gathers = [x.gather for x in allowed if x.gather is not None]
        seconds = [x.second for x in allowed if x.second is not None]
        self._dependences = dependences_of(self.flow, [*gathers, *seconds])
        classes = [
            replace(found, site=reordered_gather(found.site, self._order(found.site.groups)))
            for found in gather_classes(self.flow, gathers, self._dependences)
        ]
        scatters = [
            reordered_scatter(x.scatter, self._order(x.scatter.groups)) for x in allowed if x.scatter is not None
        ]
        apart = [ways for x in allowed if (ways := self._apart(x))]
        self._proposer.measure([*(c.site for c in classes), *scatters, *(ways[0].site for ways in apart)])
        entries: list[Entry] = []
        by_einsum: dict[int, tuple[GatherClass, Entry]] = {}
        for found in classes:
            propose = gather_entry_proposer(found, lambda c: propose_gather(self._proposer, c))
            entry = self._entry(Entry(found.site, self._overrides.force_any(found.site.collectives), propose))
            entries.append(entry)
            by_einsum.update({u.instruction: (found, entry) for u in found.site.uses})
        for site in scatters:
            propose = single_entry_proposer(site, self._proposer.propose)
            entries.append(self._entry(Entry(site, self._overrides.force_any((site.collective,)), propose)))
        for ways in apart:
            propose = alternatives_proposer([(way.site, partial(self._proposed, way)) for way in ways])
            entries.append(
                self._entry(Entry(ways[0].site, self._overrides.force_any(collectives_of_site(ways[0].site)), propose))
            )
        return entries, by_einsum

    def _apart(self, one: Examined) -> list[_Way]:
        """Ways to take an all-reduce apart that nobody slices; none for any other collective."""
        ways: list[_Way] = []
        if one.whole is not None and one.second is not None:
            ways.append(self._whole(one.whole, one.second))
        ways.extend(
            _Way(reordered_scatter(site, self._order(site.groups)), notes=(_GATHERED_AGAIN,))
            for site in one.gathered_again
        )
        return ways

    def _proposed(self, way: _Way) -> Proposal:
        return self._proposer.propose(way.site, straight_only=way.straight_only, notes=way.notes)

    def _whole(self, site: AllReduceSite, gather: Gather) -> _Way:
        """A taken-apart all-reduce with the einsums that may share its second loop.

        Einsums that depend on those read the array put together again, as in `propose_gather`.
        """
        found = gather_classes(self.flow, [gather], self._dependences)[0]
        rebuild = found.site.rebuild or bool(found.later)
        order = self._order(site.scatter.groups)
        second = replace(site.gather, uses=found.site.uses, rebuild=rebuild)
        needed = f"the reduced array is needed before {found.needed_before}" if rebuild and found.needed_before else ""
        apart = replace(site, scatter=reordered_scatter(site.scatter, order), gather=reordered_gather(second, order))
        return _Way(apart, needed)

    def _order(self, groups: Groups) -> tuple[int, ...]:
        return ring_order(self._machine, device_lists(groups, self.flow.module.header))

    def _entry(self, entry: Entry) -> Entry:
        for collective in entry.collectives:
            self._entry_of.setdefault(collective, []).append(entry)
        return entry

    def _stands(self, entry: Entry) -> bool:
        """Whether the gate, or the user, lets it through."""
        if entry.proposal is None:
            return False
        if entry.forced:
            return True
        if is_whole(entry.site):
            # Taking an all-reduce apart must pay on its own: nothing asks for it.
            return entry.gain > 0
        return not self._options.gate or entry.gain >= 0

    # --- chains --------------------------------------------------------------------------------------------------

    def _chained(
        self, standing: list[Entry], classes: Mapping[int, tuple[GatherClass, Entry]], entries: Sequence[Entry]
    ) -> list[Entry]:
        """Replace a gather and a scatter by the chain of both where that gains more."""
        owners = {einsum: e for e in standing for einsum in e.einsums}
        for scatter in [e for e in entries if isinstance(e.site, ScatterSite) and not is_whole(e.site)]:
            assert isinstance(scatter.site, ScatterSite)
            reached = [classes[i] for i in first_einsums(self.flow, scatter.site) if i in classes]
            if not reached:
                continue
            found, gather = reached[0]
            chain = self._chain(found, gather, scatter, owners)
            if chain is None or chain.proposal is None:
                continue
            replaced = {id(owners[e]) for e in chain.einsums if e in owners} | {id(gather), id(scatter)}
            standing = [e for e in standing if id(e) not in replaced] + [chain]
            owners = {einsum: e for e in standing for einsum in e.einsums}
        return standing

    def _chain(self, found: GatherClass, gather: Entry, scatter: Entry, owners: Mapping[int, Entry]) -> Entry | None:
        """The chain if it is better than what stands; otherwise its verdict is noted and None returned."""
        assert isinstance(scatter.site, ScatterSite)
        assert isinstance(gather.site, GatherSite)
        try:
            if found.later:
                names = listed([self.flow.name(u.instruction) for u in found.later])
                raise Refusal(f"{names} also reads the gathered array, later")
            site = chain_of(self.flow, gather.site, scatter.site, self._dependences.depends_on_any)
        except Refusal as reason:
            if not gather.notes:
                gather.notes.append(f"no chain with {self.flow.name(scatter.collectives[0])}: {reason}")
            return None
        forced = gather.forced or scatter.forced
        entry = Entry(site, forced, single_entry_proposer(site, self._proposer.propose))
        entry.update()
        if entry.proposal is None:
            self._chains.append((site, None, entry.reason))
            return None
        rivals = list({id(owners[e]): owners[e] for e in entry.einsums if e in owners}.values())
        apart = sum(r.gain for r in rivals)
        torn = [r for r in rivals if not set(r.einsums) <= set(entry.einsums)]
        wanted = self._options.chain == "on"
        if torn and not wanted:
            name = self.flow.name(torn[0].collectives[0])
            self._chains.append((site, entry.proposal, f"{name} has one of its einsums and others besides"))
            return None
        better = entry.gain > apart and (entry.gain >= 0 or not self._options.gate or forced)
        if not wanted and not better:
            text = f"gain {time_text(entry.gain)} as a chain, {time_text(apart)} apart"
            self._chains.append((site, entry.proposal, text))
            return None
        self._chains.append((site, entry.proposal, ""))
        return entry

    # --- loops that would wait for each other ----------------------------------------------------------------------

    def _untangled(self, standing: list[Entry]) -> list[Entry]:
        """Take back loops of several einsums that would wait for each other in a circle."""
        while True:
            parts = {id(p): (p, e) for e in standing if e.proposal is not None for p in e.proposal.parts}
            knot = tangled(self.flow, [p for p, _ in parts.values()])
            if knot is None:
                return standing
            part, entry = parts[id(knot)]
            straight = self._straightened(entry, part)
            if straight is None:
                entry.proposal = None
                entry.reason = "its loop and others would wait for each other in a circle"
                standing = [e for e in standing if e is not entry]
            else:
                entry.proposal = straight

    def _straightened(self, entry: Entry, part: Part) -> Proposal | None:
        assert entry.proposal is not None
        try:
            best = self._proposer.best(part.site, straight_only="its loop and others would wait for each other")
        except Refusal:
            return None
        return replace(entry.proposal, parts=tuple(best if p is part else p for p in entry.proposal.parts))

    def _notes(self) -> tuple[str, ...]:
        elided = len(self.flow.module.elided)
        sliced = sum(x.scatter is not None for x in self._examined)
        if not elided or not sliced:
            return ()
        left = "1 constant is" if elided == 1 else f"{elided} constants are"
        return (
            f"{left} left out in the text; where a slice's start is looked up in one of them, each position of a group"
            " is taken to keep its own block.",
        )
