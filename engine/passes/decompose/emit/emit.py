"""Writes a decomposition into a module: the one entry point of everything that finds sites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.errors import UnsupportedError
from engine.ir.build import Builder
from engine.ir.edit import Editor
from engine.passes.decompose.emit.chain import emit_chain, halving_refused
from engine.passes.decompose.emit.gather import emit_gather
from engine.passes.decompose.emit.ring import Ring
from engine.passes.decompose.emit.scatter import emit_scatter, halves_refused, scattered
from engine.passes.decompose.rings.variants import Variant
from engine.passes.decompose.site import (
    AllReduceSite,
    ChainSite,
    EinsumUse,
    GatherSite,
    Groups,
    Mode,
    ScatterSite,
    Site,
)

_ORDERED = frozenset({"collective-permute", "dot", "convolution", "while"})
"""What of an emitted loop has to wait when the collective or the einsum had to."""


@dataclass(frozen=True, slots=True)
class Emitted:
    """What one site became."""

    variant: Variant
    added: tuple[int, ...]
    """Ids of the new instructions, loop bodies included, in the order in which they were made."""


def why_not(editor: Editor, site: Site, variant: Variant) -> str | None:
    """Why `site` cannot take this form, in words; None where `emit` will do it."""
    reason = variant.why_not(site)
    if reason is None and variant.halved and isinstance(site, (ScatterSite, AllReduceSite)):
        reason = halves_refused(editor, site if isinstance(site, ScatterSite) else site.scatter)
    if reason is None and isinstance(site, ChainSite) and variant.pipelined_halves:
        reason = halving_refused(editor, site)
    return reason


def emit(editor: Editor, site: Site, variant: Variant) -> Emitted:
    """Replace `site` by its decomposed form; what it replaces is removed where nobody reads it any more.

    Raises UnsupportedError with the reason where `why_not` has one.
    """
    reason = why_not(editor, site, variant)
    if reason is not None:
        raise UnsupportedError(f"{_name(editor, site)} cannot be decomposed as {variant}: {reason}")
    before = editor.made
    waits = _waited_for(editor, site)
    match site:
        case GatherSite():
            emit_gather(editor, _ring(editor, site.groups), site, variant)
        case ScatterSite():
            emit_scatter(editor, _ring(editor, site.groups), site, variant)
        case AllReduceSite():
            _emit_all_reduce(editor, site, variant)
        case ChainSite():
            emit_chain(editor, _ring(editor, site.gather.groups), site, variant)
    editor.remove_dead(reversed(editor.added_since(before)))
    added = editor.added_since(before)
    for predecessor in (p for p in waits if p in editor):
        for new in added:
            if editor.computation_of(new) == site.computation and editor.instruction(new).opcode in _ORDERED:
                editor.add_control(predecessor, new)
    return Emitted(variant, added)


def _emit_all_reduce(editor: Editor, site: AllReduceSite, variant: Variant) -> None:
    """A scatter, then a gather that starts from the scattered shard."""
    ring = _ring(editor, site.scatter.groups)
    collective = editor.instruction(site.scatter.collective)
    builder = Builder(editor, site.computation, collective, collective.id)
    shard = scattered(builder, ring, site.scatter, variant)
    emit_gather(editor, ring, replace(site.gather, operand=shard.id), variant)


def _waited_for(editor: Editor, site: Site) -> tuple[int, ...]:
    """Control predecessors of what is replaced, itself left out."""
    replaced = {u.instruction for u in _uses(site)}
    for part in _parts(site):
        replaced |= {part.collective, part.result} if isinstance(part, ScatterSite) else set(part.collectives)
    replaced |= {start for r in replaced for start in _begun_by(editor, r)}
    found = (p for r in replaced for p in editor.instruction(r).control_predecessor_ids)
    return tuple(dict.fromkeys(p for p in found if p not in replaced))


def _begun_by(editor: Editor, done: int) -> Iterator[int]:
    """The start, and the updates, that lead to the done of an asynchronous collective; none for anything else."""
    instruction = editor.instruction(done)
    while instruction.opcode.endswith(("-done", "-update")):
        instruction = editor.instruction(instruction.operand_ids[0])
        yield instruction.id


def _parts(site: Site) -> tuple[GatherSite | ScatterSite, ...]:
    return (site.gather, site.scatter) if isinstance(site, (ChainSite, AllReduceSite)) else (site,)


def _uses(site: Site) -> Iterator[EinsumUse]:
    for part in _parts(site):
        yield from (part.use,) if isinstance(part, ScatterSite) else part.uses


def _name(editor: Editor, site: Site) -> str:
    part = _parts(site)[0]
    return editor.instruction(part.collective if isinstance(part, ScatterSite) else part.collectives[0]).name


def _ring(editor: Editor, groups: Groups) -> Ring:
    header = editor.module.header
    declared = header.num_partitions if groups.mode is Mode.PARTITION else header.replica_count
    return Ring(groups, max(declared, 1 + max(max(group) for group in groups.members)))
