"""Looks at every collective of a module once: what it could overlap with, or why with nothing."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import UnsupportedError
from engine.ir.groups import device_groups
from engine.passes.decompose.find.collectives import Collective, gathered_dim
from engine.passes.decompose.find.finder import Finder
from engine.passes.decompose.find.gathers import Gather
from engine.passes.decompose.refusal import Refusal
from engine.passes.decompose.site import AllReduceSite, ScatterSite
from engine.passes.decompose.verdicts import read_by_none

_KINDS_WITHOUT_A_FORM = {
    "collective-permute": "a permute already: it moves data between neighbours and stays as it is",
    "all-to-all": "no decomposition of all-to-all is known to overlap with an einsum",
    "ragged-all-to-all": "no decomposition of ragged-all-to-all is known to overlap with an einsum",
    "collective-broadcast": "no decomposition of collective-broadcast is known to overlap with an einsum",
}


@dataclass(frozen=True, eq=False, slots=True)
class Examined:
    """One collective and what was found around it."""

    collective: Collective
    kind: str
    """As `Candidate.kind`."""
    group_size: int
    einsums: tuple[int, ...] = ()
    case: str | None = None
    reason: str = ""
    """Why it cannot be decomposed; empty where it can."""
    gather: Gather | None = None
    scatter: ScatterSite | None = None
    whole: AllReduceSite | None = None
    second: Gather | None = None
    """The gather at the end of `whole`, with all who read it."""
    gathered_again: tuple[ScatterSite, ...] = ()
    """An all-reduce that is read whole, as a scatter and an all-gather, once along each dimension that allows it."""


def examine(finder: Finder, collective: Collective) -> Examined:
    """Search around `collective`."""
    size = _group_size(finder, collective)
    if collective.fused_into is not None:
        return Examined(collective, "other", size, reason=f"inside {collective.fused_into}: decompose before fusion")
    if collective.opcode == "all-gather":
        return _gather(finder, collective, size)
    if collective.opcode in ("reduce-scatter", "all-reduce"):
        return _reduction(finder, collective, size)
    return Examined(collective, "other", size, reason=_KINDS_WITHOUT_A_FORM[collective.opcode])


def _gather(finder: Finder, collective: Collective, size: int) -> Examined:
    try:
        dim, shard, count = gathered_dim(finder.flow, collective)
        readers = finder.readers(collective.id, dim, shard, count)
    except Refusal as reason:
        return Examined(collective, "other", size, reason=str(reason))
    if not readers.uses:
        return Examined(collective, "other", size, reason=read_by_none(readers.others, readers.refused))
    kind, einsums, case = "all-gather-einsum", tuple(u.instruction for u in readers.uses), readers.uses[0].case.value
    try:
        groups = finder.groups(collective)
        if groups.size != count:
            raise Refusal(f"gathers {count} shards in groups of {groups.size}")
    except (Refusal, UnsupportedError) as reason:
        return Examined(collective, kind, size, einsums, case, str(reason))
    gather = Gather(collective, groups, dim, readers)
    return Examined(collective, kind, size, einsums, case, gather=gather)


def _reduction(finder: Finder, collective: Collective, size: int) -> Examined:
    try:
        found = finder.reduction(collective)
    except UnsupportedError as reason:
        return Examined(collective, "other", size, reason=str(reason))
    kind = "all-reduce" if collective.opcode == "all-reduce" else "other"
    if found.einsum is None:
        return Examined(collective, kind, size, reason=found.reason)
    if found.site is not None:
        return Examined(collective, "einsum-reduce-scatter", size, (found.einsum,), "scatter", scatter=found.site)
    if collective.opcode == "reduce-scatter" or found.is_sliced:
        return Examined(collective, "einsum-reduce-scatter", size, (found.einsum,), "scatter", found.reason)
    try:
        apart = finder.gathered_again(collective)
    except Refusal as reason:
        return Examined(collective, kind, size, (found.einsum,), None, str(reason))
    try:
        whole, readers = finder.all_reduce(collective)
    except Refusal:
        return Examined(collective, kind, size, (found.einsum,), "scatter", gathered_again=apart)
    einsums = (found.einsum, *(u.instruction for u in readers.uses))
    second = Gather(collective, whole.gather.groups, whole.gather.dim, readers)
    case = readers.uses[0].case.value
    return Examined(collective, kind, size, einsums, case, whole=whole, second=second, gathered_again=apart)


def _group_size(finder: Finder, collective: Collective) -> int:
    """Members of a group; for a permute, of which nobody speaks of groups, the devices that take part."""
    if collective.opcode == "collective-permute":
        return len({p.source for p in collective.written.source_target_pairs})
    try:
        return len(device_groups(collective.written, finder.flow.module.header)[0])
    except UnsupportedError:
        return 0
