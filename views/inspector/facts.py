"""What the inspector says about an instruction, gathered from variants without Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from engine.cost.costs import Origin
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir import shapes
from engine.passes.candidate import Candidate
from engine.quantities import time_text
from engine.schedule.explaining import paragraphs
from engine.session.lookup import lookup
from engine.session.matching import is_loaded, origins_in, shown_in
from engine.session.session import Session
from engine.session.variant import Variant
from engine.timeline.statistics import TimeColumns, time_columns
from engine.timeline.timeline import Category, Timeline
from views.timeline.arrows import arrows_of, graph_of
from views.timeline.scene import rows_of


@dataclass(frozen=True, slots=True)
class Price:
    """What one execution costs, in picoseconds, and who says so."""

    compute: int
    transfer: int
    flops: int
    hbm_bytes: int
    origin: Origin
    scaled: bool = False
    """Whether it is that of a whole einsum, shared out by the model."""


@dataclass(frozen=True, slots=True)
class Times:
    """One row of the table over variants. Picoseconds."""

    key: str
    start: int
    end: int
    slack: int | None
    """How much later it could end before what uses it is late; None where nothing that takes time does."""
    exposed: int
    """Time in which compute waits for it, iterations that are not drawn included."""
    parts: int
    """How many instructions stand for it in this variant."""


@dataclass(frozen=True, slots=True)
class Link:
    instruction: int
    name: str


def selected_instruction(session: Session) -> tuple[Variant, HloInstructionProto] | None:
    """The last selected instruction, in the variant that has it: the selection's own; where passes replaced it there,
    any that still has it as it was loaded."""
    selection = session.selection
    if not selection:
        return None
    wanted = selection.instructions[-1]
    for entry in session.beside(selection.entry):
        if entry.variant is not None and (entry.key == selection.entry or is_loaded(entry.variant, wanted)):
            found = lookup(entry.variant).proto(wanted)
            if found is not None:
                return entry.variant, found
    return None


def price_of(variant: Variant, instruction: int) -> Price | None:
    """None for instructions that are part of another one's cost."""
    place = graph_of(variant, instruction)
    if place is None:
        return None
    graph, node = place
    costs = variant.program.costs[graph.computation]
    return Price(
        int(costs.compute[node]),
        int(costs.transfer[node]),
        int(costs.flops[node]),
        int(costs.hbm_bytes[node]),
        Origin(int(costs.origin[node])),
        node in costs.scaled,
    )


def times_of(session: Session) -> tuple[Times, ...]:
    """When the selection runs in each entry that has it."""
    found = []
    for entry in session.entries:
        if entry.variant is None:
            continue
        ids = shown_in(session, entry.key)
        rows = rows_of(entry.variant.timeline, ids)
        timeline = entry.variant.timeline
        ran = rows[timeline.category[rows] != Category.EXPOSED]
        if not len(ran):
            continue
        start = timeline.start[ran]
        end = start + timeline.duration[ran]
        found.append(
            Times(
                entry.key,
                int(start.min()),
                int(end.max()),
                _slack(entry.variant, int(ran[int(np.argmax(end))])),
                exposed_by(entry.variant, ids),
                len(np.unique(timeline.instruction[ran])),
            )
        )
    return tuple(found)


def exposed_by(variant: Variant, instructions: frozenset[int]) -> int:
    """Time in one execution in which compute waits for these instructions, all iterations included."""
    return _times_of(variant.timeline).exposed_of(instructions)


@lru_cache(maxsize=64)
def _times_of(timeline: Timeline) -> TimeColumns:
    return time_columns(timeline)


def _slack(variant: Variant, row: int) -> int | None:
    timeline = variant.timeline
    end = int(timeline.start[row] + timeline.duration[row])
    users = [int(timeline.start[user]) for producer, user in arrows_of(variant, row, operands=False) if producer == row]
    later = [start - end for start in users if start >= end]
    return min(later) if later else None


def candidate_of(session: Session, variant: Variant, instruction: int) -> Candidate | None:
    """The verdict about what an instruction of `variant` came from: a collective, itself or what was made from it.

    A piece of an einsum has the verdict of the collective that the einsum was taken apart with.
    """
    loaded = set(origins_in(variant, instruction))
    entries = session.beside(session.selection.entry)
    for judge in sorted(entries, key=lambda e: e.key != session.active):
        for candidate in judge.variant.candidates if judge.variant is not None else ():
            if not loaded.isdisjoint(candidate.loaded):
                return candidate
    if is_loaded(variant, instruction):
        return None
    with_it = (c for c in variant.candidates if c.chosen and not loaded.isdisjoint(c.einsums))
    return next(with_it, None)


def links_of(variant: Variant, instruction: HloInstructionProto, *, users: bool) -> Sequence[Link]:
    """Operands or users, as they stand in the module."""
    there = lookup(variant)
    if not users:
        ids = list(dict.fromkeys(instruction.operand_ids))
    else:
        place = graph_of(variant, instruction.id)
        ids = [int(place[0].ids[n]) for n in place[0].users.of(place[1])] if place is not None else []
    return [Link(i, there.name(i)) for i in ids if i in there]


AT_ONCE = 1_500
"""Instructions of a program up to which decisions are explained while the pane is filled: 0.02 s. In larger ones a job
does it."""
UNASKED = 5_000
"""Instructions up to which that job starts by itself; beyond, a job takes a second or more, and waits to be asked."""


def is_executed(variant: Variant, instruction: int) -> bool:
    """Whether an instruction has a place in an order."""
    return graph_of(variant, instruction) is not None


def size_of(variant: Variant) -> int:
    """Instructions that are put in order."""
    return sum(map(len, variant.program.graphs.values()))


@lru_cache(maxsize=256)
def decisions(variant: Variant, instruction: int) -> tuple[str, ...]:
    """Paragraphs on where the scheduler put an instruction and why, without the verdict, which stands elsewhere."""
    return paragraphs(variant.program, variant.schedule, instruction)


def shape_text(instruction: HloInstructionProto) -> str:
    return shapes.text(instruction.shape)


def why_exposed(session: Session) -> tuple[str, ...]:
    """One sentence for each variant in which compute waits for the selection; one for all of which it is the same."""
    found: dict[str, list[str]] = {}
    for entry in session.entries:
        if entry.variant is None:
            continue
        ids = shown_in(session, entry.key)
        waited = exposed_by(entry.variant, ids)
        if waited:
            found.setdefault(_sentence(entry.variant, ids, waited), []).append(entry.key)
    return tuple(f"{', '.join(keys)}: {sentence}" for sentence, keys in found.items())


def _sentence(variant: Variant, ids: frozenset[int], waited: int) -> str:
    timeline = variant.timeline
    gaps = np.flatnonzero(
        (timeline.category == Category.EXPOSED) & np.isin(timeline.waits_for, np.fromiter(ids, np.int64, len(ids)))
    )
    longest = int(gaps[np.argmax(timeline.duration[gaps])])
    start, stop = int(timeline.start[longest]), int(timeline.start[longest] + timeline.duration[longest])
    name = lookup(variant).name(int(timeline.instruction[longest])) or "the next instruction"
    rows = rows_of(timeline, (int(timeline.waits_for[longest]),))
    rows = rows[(timeline.category[rows] != Category.EXPOSED) & (timeline.start[rows] < stop)]
    text = f"compute waits {time_text(waited)} in all; longest before {name}"
    if len(rows):
        begun = int(timeline.start[rows].max())
        if begun >= start:
            return f"{text}: the transfer begins only when compute is idle, nothing independent runs beside it"
        hidden = start - begun
        return f"{text}: it starts {time_text(hidden)} before, and takes {time_text(stop - begun)}"
    return text
