"""What could be done at one place: sites to decompose together, in the form with the largest predicted gain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from engine.ir.edit import Editor
from engine.ir.flow import Flow
from engine.passes.candidate import GateTerms
from engine.passes.decompose.emit.emit import why_not
from engine.passes.decompose.gate.pricing import Pricing
from engine.passes.decompose.options import Options
from engine.passes.decompose.refusal import Refusal
from engine.passes.decompose.rings.variants import Variant, ring_size
from engine.passes.decompose.site import AllReduceSite, ChainSite, GatherSite, ScatterSite, Site

Form = Literal["rolled", "unrolled"]
Ring = Literal["one", "both"]
Blocks = Literal["joined", "stacked", "separate"]
Unroll = Literal[1, 2]

TAKEN: tuple[Literal[1, 2, 4], ...] = (1, 2, 4)
"""How many shards one einsum of a chain may take."""

STRAIGHT_POSITIONS = 16
STRAIGHT_INSTRUCTIONS = 100_000
"""``form=auto`` writes loops out up to so many positions, while the module stays within so many instructions."""


@dataclass(frozen=True, slots=True)
class Part:
    """One site in one form."""

    site: Site
    variant: Variant
    terms: GateTerms


@dataclass(frozen=True, slots=True)
class Proposal:
    """Sites that are decomposed together or not at all."""

    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    """What the verdict says besides the numbers."""

    @property
    def terms(self) -> GateTerms:
        """All parts one after the other."""
        total = self.parts[0].terms
        for part in self.parts[1:]:
            total = total.then(part.terms)
        return total

    @property
    def collectives(self) -> tuple[int, ...]:
        """Ids of the collectives that it takes apart."""
        return tuple(dict.fromkeys(c for part in self.parts for c in collectives_of_site(part.site)))

    @property
    def einsums(self) -> tuple[int, ...]:
        """Ids of the einsums that it makes partial."""
        return tuple(dict.fromkeys(e for part in self.parts for e in einsums_of_site(part.site)))


def collectives_of_site(site: Site) -> tuple[int, ...]:
    match site:
        case GatherSite():
            return site.collectives
        case ScatterSite():
            return (site.collective,)
        case AllReduceSite():
            return (site.scatter.collective,)
        case ChainSite():
            return (*site.gather.collectives, site.scatter.collective)


def einsums_of_site(site: Site) -> tuple[int, ...]:
    match site:
        case GatherSite():
            return tuple(u.instruction for u in site.uses)
        case ScatterSite():
            return (site.use.instruction,)
        case _:
            return (*(u.instruction for u in site.gather.uses), site.scatter.use.instruction)


class Proposer:
    """Chooses forms for sites of one module."""

    def __init__(self, flow: Flow, pricing: Pricing, options: Options, editor: Editor) -> None:
        self.flow = flow
        self.pricing = pricing
        self.options = options
        self._editor = editor
        self.straight = True
        """Whether the module stays small enough for straight lines; set once all sites are known."""

    def measure(self, sites: Iterable[Site]) -> None:
        """Settle `straight` for all `sites` together, so that alike ones get the same form."""
        total = len(self.flow.instructions) + sum(_size_of(s) for s in sites if ring_size(s) <= STRAIGHT_POSITIONS)
        self.straight = total <= STRAIGHT_INSTRUCTIONS

    def propose(self, site: Site, *, straight_only: str = "", notes: tuple[str, ...] = ()) -> Proposal:
        """`site` in its best form. `straight_only` is the reason why a loop is impossible. Raises Refusal."""
        return Proposal((self.best(site, straight_only=straight_only),), notes)

    def best(self, site: Site, *, straight_only: str = "") -> Part:
        """The form with the largest gain among those the options allow. Raises Refusal with why none can be."""
        best: Part | None = None
        refused = ""
        for variants in self._choices(site, straight_only):
            for variant in variants:
                reason = straight_only if variant.form == "rolled" else ""
                reason = reason or self._why_not(site, variant)
                if reason:
                    refused = refused or reason
                    continue
                part = Part(site, variant, self.pricing.terms(site, variant))
                if best is None or part.terms.gain > best.terms.gain:
                    best = part
            if best is not None:
                return best
        raise Refusal(refused or "no form applies")

    def _choices(self, site: Site, straight_only: str) -> Iterator[Sequence[Variant]]:
        """Variants in batches: a later batch is looked at only if nothing of the earlier ones applies."""
        options = self.options
        small = self.straight and ring_size(site) <= STRAIGHT_POSITIONS
        forms: tuple[Form, ...] = ("unrolled", "rolled") if small or straight_only else ("rolled", "unrolled")
        if options.form != "auto":
            forms = (options.form,)
        rings: tuple[Ring, ...] = ("one",) if self.pricing.one_at_a_time else ("one", "both")
        if options.ring != "auto":
            rings = (options.ring,)
        for form in forms:
            unrolls: tuple[Unroll, ...] = (2, 1) if _gains_from_two(site, form) else (1,)
            if options.unroll != "auto":
                unrolls = (1,) if options.unroll == "1" else (2,)
            made = (
                Variant(form=form, unroll=unroll, ring=ring, accumulate=options.accumulate, blocks=blocks)
                for unroll in unrolls
                for ring in rings
                for blocks in self._blocks(site, ring)
            )
            yield [variant for plain in made for variant in _variants(site, plain)]

    def _blocks(self, site: Site, ring: Ring) -> Sequence[Blocks]:
        if self.options.blocks != "auto":
            return (self.options.blocks,)
        # Only rings in both directions have several blocks at once, and chains choose how many they take otherwise.
        return ("joined",) if ring == "one" or isinstance(site, ChainSite) else ("joined", "separate")

    def _why_not(self, site: Site, variant: Variant) -> str:
        if (variant.halved and not isinstance(site, GatherSite)) or variant.pipelined_halves:
            return why_not(self._editor, site, variant) or ""
        return variant.why_not(site) or ""


def _variants(site: Site, plain: Variant) -> Iterator[Variant]:
    """`plain`, and what else there is to choose for `site` that no option names."""
    if isinstance(site, ChainSite):
        # What one einsum takes decides as much as the transfers: several shards, or halves, at once.
        layouts = (plain, replace(plain, chains="halves")) if plain.both else (plain,)
        yield from (replace(v, shards=a, seconds=b) for v, a, b in product(layouts, TAKEN, TAKEN))
        return
    yield plain
    if plain.unroll == 2 and not plain.both and not isinstance(site, GatherSite):
        yield replace(plain, chains="halves")


def _gains_from_two(site: Site, form: str) -> bool:
    """Whether unrolling by 2 changes anything: loops lose their copies, scatters get a second chain."""
    return form == "rolled" or not isinstance(site, (GatherSite, ChainSite))


def _size_of(site: Site) -> int:
    """About how many instructions a straight line adds: index arithmetic, slices, einsums, updates, permutes."""
    parts = len(einsums_of_site(site)) + (len(site.middle) if isinstance(site, ChainSite) else 0)
    return ring_size(site) * (4 + 4 * parts)
