"""Answers about an instruction of the loaded module or of a variant: what became of it, where it is, why it waits."""

from __future__ import annotations

from engine.ir.module import Module
from engine.ir.opcodes import is_start
from engine.passes.candidate import Candidate
from engine.quantities import time_text
from engine.schedule.explaining import explain as explain_place
from engine.session.variant import Variant

_MOST_NAMED = 8


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
    exposed = _exposed(variant, loaded)
    if exposed:
        paragraphs.append(f"Compute waits {time_text(exposed)} in all for what it became.")
    elif any(is_start(made.instructions[id_].opcode) for id_, _ in became):
        paragraphs.append("Compute waits for nothing that it became.")
    return "\n\n".join(paragraphs)


def _verdict(candidate: Candidate) -> str:
    verb = f"was decomposed ({candidate.variant})" if candidate.chosen else "was left whole"
    return f"{candidate.id} {verb}: {candidate.reason}."


def _exposed(variant: Variant, loaded: int) -> int:
    """Picoseconds of one execution in which compute waits for transfers that came from `loaded`."""
    timeline, module = variant.timeline, variant.program.module
    waits = timeline.waits_for >= 0
    pairs = zip(timeline.waits_for[waits].tolist(), timeline.duration[waits].tolist(), strict=True)
    return sum(duration for start, duration in pairs if loaded in module.origins_of(start))
