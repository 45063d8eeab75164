"""Looks at every collective of a module once: what it could overlap with, or why with nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from engine.errors import UnsupportedError
from engine.ir.groups import device_groups
from engine.passes.decompose.find.collectives import Collective, gathered_dim
from engine.passes.decompose.find.finder import Finder
from engine.passes.decompose.find.gathers import Gather, read_twice
from engine.passes.decompose.find.readers import Readers
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


def examine_all(finder: Finder, collectives: Iterable[Collective]) -> list[Examined]:
    """Search around each collective, and keep apart what those with the same data would give each other to do."""
    found = [examine(finder, c) for c in collectives]
    twice = read_twice(finder.flow, [x.gather for x in found if x.gather is not None])
    return [_without(finder, x, twice) for x in found]


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


def _without(finder: Finder, found: Examined, einsums: frozenset[int]) -> Examined:
    """What is left of a gather when `einsums` read all of it."""
    gather = found.gather
    if gather is None or einsums.isdisjoint(found.einsums):
        return found
    readers = gather.readers
    for einsum in (e for e in found.einsums if e in einsums):
        name = finder.flow.name(einsum)
        readers = readers.without(einsum, name, f"both operands of {name} are gathers of the same data")
    if not readers.uses:
        reason = read_by_none(readers.others, readers.refused)
        return Examined(found.collective, "other", found.group_size, reason=reason)
    return _read(found.collective, found.group_size, readers, replace(gather, readers=readers))


def _gather(finder: Finder, collective: Collective, size: int) -> Examined:
    try:
        dim, shard, count = gathered_dim(finder.flow, collective)
        readers = finder.readers(collective.id, dim, shard, count)
    except Refusal as reason:
        return Examined(collective, "other", size, reason=str(reason))
    if not readers.uses:
        return Examined(collective, "other", size, reason=read_by_none(readers.others, readers.refused))
    try:
        groups = finder.groups(collective)
        if groups.size != count:
            raise Refusal(f"gathers {count} shards in groups of {groups.size}")
    except (Refusal, UnsupportedError) as reason:
        return _read(collective, size, readers, reason=str(reason))
    return _read(collective, size, readers, Gather(collective, groups, dim, readers))


def _read(
    collective: Collective, size: int, readers: Readers, gather: Gather | None = None, reason: str = ""
) -> Examined:
    """A gather that einsums read."""
    einsums, case = tuple(u.instruction for u in readers.uses), readers.uses[0].case.value
    return Examined(collective, "all-gather-einsum", size, einsums, case, reason, gather)


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
