"""What the graph can show of a session: a module alone, before and after a pass, or two variants."""

from __future__ import annotations

from dataclasses import dataclass

from engine.passes.pipeline import Pipeline
from engine.session.session import Session
from engine.session.variant import Variant


@dataclass(frozen=True)
class Comparison:
    """One or two modules. `steps` are how many passes of the variant's plan were applied on either side."""

    title: str
    variant: Variant
    before: Variant | None = None
    steps: tuple[int, int] | None = None
    sides: tuple[str, str] = ("", "")
    """What stands over either side."""

    @property
    def double(self) -> bool:
        return self.before is not None or self.steps is not None


def comparisons_of(session: Session) -> tuple[Comparison, ...]:
    """All that there is to show: the active variant, each of its passes, and the base beside it."""
    active, base = session.active_entry, session.base_entry
    if active is None or active.variant is None:
        return ()
    variant = active.variant
    found = [Comparison(f"{active.key} alone", variant)]
    passes = Pipeline.parse(variant.plan.passes).passes
    for number, step in enumerate(passes, 1):
        title = f"pass {number} of {len(passes)}: {step.name}"
        sides = (f"before {step.name}", f"after {step.name}")
        found.append(Comparison(title, variant, steps=(number - 1, number), sides=sides))
    if base is not None and base is not active and base.variant is not None:
        sides = (f"{base.key}  {session.title_of(base)}", f"{active.key}  {session.title_of(active)}")
        found.append(Comparison(f"{base.key} beside {active.key}", variant, base.variant, sides=sides))
    return tuple(found)
