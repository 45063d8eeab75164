"""The forms a decomposition can take (Wang et al. §5.4), and why one does not apply to a site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from engine.passes.decompose.rings.plans import GatherPlan, ScatterPlan, gather_plan, scatter_plan
from engine.passes.decompose.site import AllReduceSite, ChainSite, GatherSite, Site

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Variant:
    """One form of a decomposition (Wang et al. §5.1 and §5.4)."""

    form: Literal["rolled", "unrolled"] = "unrolled"
    """A `while` loop, or the straight line."""
    unroll: Literal[1, 2] = 1
    """2: two buffers (gather), two accumulation chains (scatter). A gather's straight line is the same for both."""
    ring: Literal["one", "both"] = "one"
    """Whether shards travel in both directions at once."""
    chains: Literal["stride", "halves"] = "stride"
    """What the two chains of a scatter unrolled by 2 are: every other step with shifts of two hops, or half of the
    result shard each with shifts of one. For a chain in both directions: whole shards, the scatter after the gather,
    or half of every shard each way, both at once."""
    shards: Literal[1, 2, 4] = 1
    """Chained loops only: how many shards, or halves, one of the first einsums takes at once."""
    seconds: Literal[1, 2, 4] = 1
    """Chained loops only: how many the second einsum takes at once."""
    accumulate: Literal["same", "f32"] = "same"
    """The type in which partial results of a narrower floating type are added up (and, by a scatter, sent)."""
    blocks: Literal["joined", "stacked", "separate"] = "joined"
    """How blocks that are there at once lie next to each other for one einsum; or separate: each has an einsum of its
    own, which what makes the block and what follows can be fused with. Chains join as many as `shards` says."""

    def __str__(self) -> str:
        parts: list[str] = [self.form]
        if self.unroll == 2:
            parts.append("unroll=2")
        parts.append(f"ring={self.ring}")
        if self.chains == "halves" and (self.halved or self.both):
            parts.append("chains=halves")
        if self.shards > 1:
            parts.append(f"shards={self.shards}")
        if self.seconds > 1:
            parts.append(f"seconds={self.seconds}")
        if self.accumulate == "f32":
            parts.append("accumulate=f32")
        if self.blocks != "joined":
            parts.append(f"blocks={self.blocks}")
        return ", ".join(parts)

    @property
    def both(self) -> bool:
        return self.ring == "both"

    @property
    def halved(self) -> bool:
        """Whether a scatter's chains share the result shard between them."""
        return self.unroll == 2 and self.chains == "halves"

    @property
    def pipelined_halves(self) -> bool:
        """Whether a chain sends half of every shard each way."""
        return self.both and self.chains == "halves"

    @property
    def lanes(self) -> int:
        """How many pieces of shards arrive in one turn of a pipelined chain."""
        return 2 if self.pipelined_halves else 1

    @property
    def turns(self) -> int:
        """How many turns of a pipelined chain are taken together, so that its einsums get as much as they want."""
        return max(1, max(self.shards, self.seconds) // self.lanes)

    def together(self, slots: Sequence[_T]) -> Sequence[Sequence[_T]]:
        """What is there at once, by the einsum that takes it."""
        return [(slot,) for slot in slots] if self.blocks == "separate" else [slots]

    def gather_plan(self, size: int) -> GatherPlan:
        """What a gather over `size` positions does; straight lines have a loop of no trips."""
        return gather_plan(size, both=self.both, unroll=self.unroll, rolled=self.form == "rolled")

    def scatter_plan(self, size: int) -> ScatterPlan:
        """What a scatter over `size` positions does."""
        strides, lanes = (1, 2) if self.halved else (self.unroll, 1)
        return scatter_plan(size, both=self.both, strides=strides, lanes=lanes, rolled=self.form == "rolled")

    def why_not(self, site: Site) -> str | None:
        """Why this form cannot be given to `site`, in words; None where it can."""
        size = ring_size(site)
        if size < 2:
            return "group of 1"
        if self.both and size == 2:
            return "both directions of a ring of 2 would leave one einsum and an exposed permute: nothing overlaps"
        if isinstance(site, ChainSite):
            return self._why_not_chain(site, size)
        if self.both and self.halved:
            return "chains=halves runs in one direction only"
        if self.form == "rolled" and not self._rolls(site, size):
            return f"a ring of {size} leaves no two equal rounds for a loop"
        return None

    def _why_not_chain(self, site: ChainSite, size: int) -> str | None:
        if any(use.valid is not None for use in (*site.gather.uses, site.scatter.use)):
            return "blocks are padded"
        if max(self.shards, self.seconds) >= size * self.lanes:
            return f"einsums over all {size} shards at once leave nothing to overlap"
        if self.form == "rolled":
            if self.both and self.chains != "halves":
                return "a rolled chain in both directions needs chains=halves: whole shards arrive in the wrong order"
            if (size - 3) // self.unroll < 1:
                return f"a ring of {size} leaves no two equal rounds for a loop"
            if self.turns > self.unroll:
                return f"einsums over the shards of {self.turns} turns need a loop unrolled as often"
        return None

    def _rolls(self, site: Site, size: int) -> bool:
        if isinstance(site, GatherSite):
            return self.gather_plan(size).loop.trips > 0
        scatters = self.scatter_plan(size).loop.trips > 0
        return scatters and (not isinstance(site, AllReduceSite) or self.gather_plan(size).loop.trips > 0)


def ring_size(site: Site) -> int:
    """N, the number of positions of the site's ring."""
    ends = site.scatter if isinstance(site, (ChainSite, AllReduceSite)) else site
    return ends.groups.size


def link_load(plan: GatherPlan | ScatterPlan) -> tuple[int, int]:
    """Shard-hops that one ring link carries to the left and to the right: what a decomposed transfer costs.

    A shift by two hops loads every link twice.
    """
    left = right = 0
    for hops, count in plan.shifts():
        if hops > 0:
            left += hops * count
        else:
            right -= hops * count
    return left, right
