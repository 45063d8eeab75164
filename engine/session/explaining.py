"""Answers about an instruction of the loaded module or of a variant: what became of it, where it is, why it waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.ir.module import Module
from engine.ir.opcodes import MATMULS, is_start
from engine.passes.candidate import Candidate
from engine.quantities import time_text
from engine.schedule.explaining import explain as explain_place
from engine.schedule.exposure import Cause
from engine.session.variant import Variant
from engine.simulate.simulator import simulate_computations

_MOST_NAMED = 8
_MOST_EXPLAINED = 4
"""Einsums of a loop that are told of one by one."""


def explain(module: Module, variant: Variant, name: str) -> str:
    """Paragraphs about the instruction called `name`, in `variant` or in `module`, from which it was made.

    Raises UsageError for a name that neither has.
    """
    made = variant.program.module
    if name in made.by_name or name not in module.by_name:
        return str(explain_place(variant.program, variant.schedule, name, candidates=variant.candidates))
    loaded = module.by_name[name].id
    paragraphs = [_verdict(c) for c in variant.candidates if loaded in c.loaded]
    runs = (zip(g.ids.tolist(), g.names, strict=True) for g in variant.program.graphs.values())
    became = [(id_, label) for pairs in runs for id_, label in pairs if loaded in made.origins_of(id_)]
    if not became:
        paragraphs.append(f"{name} is not part of this variant: its passes had no more use for it.")
        return "\n\n".join(paragraphs)
    shown = ", ".join(label for _, label in became[:_MOST_NAMED])
    more = f" and {len(became) - _MOST_NAMED} more" if len(became) > _MOST_NAMED else ""
    paragraphs.append(f"{name} became {shown}{more}.")
    if len(became) == 1:
        paragraphs.append(str(explain_place(variant.program, variant.schedule, became[0][0])))
        return "\n\n".join(paragraphs)
    paragraphs += _pieces(variant, [id_ for id_, _ in became])
    exposed = _exposed(variant, loaded)
    if exposed:
        paragraphs.append(f"Compute waits {time_text(exposed)} in all for what it became.")
    elif any(is_start(made.instructions[id_].opcode) for id_, _ in became):
        paragraphs.append("Compute waits for nothing that it became.")
    return "\n\n".join(paragraphs)


def _pieces(variant: Variant, became: Sequence[int]) -> Iterator[str]:
    """Where the einsums are that an instruction became, and what each waits for, hides and is waited for by."""
    program = variant.program
    einsums = [id_ for id_ in became if _holds_einsum(program.module, id_)]
    if not einsums:
        return
    runs = simulate_computations(program, variant.schedule)
    for id_ in einsums[:_MOST_EXPLAINED]:
        said = explain_place(program, variant.schedule, id_, runs=runs)
        yield " ".join(reason.text for reason in said.reasons if reason.cause in (Cause.PLACE, Cause.DECISION))
    if len(einsums) > _MOST_EXPLAINED:
        yield f"{len(einsums) - _MOST_EXPLAINED} more of its einsums are not told of here: name one of them to know."


def _holds_einsum(module: Module, instruction: int) -> bool:
    """Whether it is an einsum, or a fusion with one."""
    found = module.instructions[instruction]
    if found.opcode != "fusion":
        return found.opcode in MATMULS
    return any(_holds_einsum(module, i.id) for i in module.computations[found.called_computation_ids[0]].instructions)


def _verdict(candidate: Candidate) -> str:
    verb = f"was decomposed ({candidate.variant})" if candidate.chosen else "was left whole"
    return f"{candidate.id} {verb}: {candidate.reason}."


def _exposed(variant: Variant, loaded: int) -> int:
    """Picoseconds of one execution in which compute waits for transfers that came from `loaded`."""
    timeline, module = variant.timeline, variant.program.module
    waits = timeline.waits_for >= 0
    pairs = zip(timeline.waits_for[waits].tolist(), timeline.duration[waits].tolist(), strict=True)
    return sum(duration for start, duration in pairs if loaded in module.origins_of(start))
