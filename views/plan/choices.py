"""What the plan line offers: options of passes that are text in a plan, and how they are read from and put into it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from engine import options
from engine.passes.pipeline import PASSES
from engine.session import edits
from engine.session.plan import Plan

OFF = "off"


@dataclass(frozen=True)
class Choice:
    """One option of one pass as a list to choose from; values and default are those of the pass's own field."""

    caption: str
    part: str
    option: str
    tip: str
    optional: bool = False
    """Whether `OFF`, which takes the pass out of the plan, is among the values."""

    @cached_property
    def _field(self) -> options.OptionField:
        return next(f for f in options.fields_of(PASSES.load(self.part)) if f.name == self.option)

    @property
    def default(self) -> str:
        return self._field.default

    @property
    def values(self) -> tuple[str, ...]:
        return (OFF, *self._field.choices) if self.optional else self._field.choices


CHOICES = (
    Choice(
        "flatten",
        "flatten",
        "indices",
        "Make neighbouring indices of an einsum one, before anything else: compilers pay for each further one",
        optional=True,
    ),
    Choice(
        "decompose",
        "decompose",
        "form",
        "Turn collectives and einsums into loops of partial einsums: straight line, or a while loop",
        optional=True,
    ),
    Choice(
        "unroll",
        "decompose",
        "unroll",
        "How many iterations of a decomposed loop run as one; 2 leaves no loop-carried copies",
    ),
    Choice("ring", "decompose", "ring", "Directions in which shards travel around the ring"),
    Choice(
        "fusion",
        "fuse",
        "policy",
        "Which fusion policy: greedy as a compiler without overlap in mind, or aware of transfers",
        optional=True,
    ),
)


def value_of(plan: Plan, choice: Choice) -> str:
    """What `plan` has chosen."""
    given = edits.options_of(plan, choice.part)
    if given is None:
        return OFF if choice.optional else choice.default
    return given.get(choice.option, choice.default)


def with_value(plan: Plan, choice: Choice, value: str) -> Plan:
    """`plan` with another value of a choice."""
    if value == OFF:
        return edits.without_pass(plan, choice.part)
    changed = edits.with_options(plan, choice.part, {choice.option: None if value == choice.default else value})
    if choice.part == "decompose" and edits.options_of(plan, "async-permute") is None:
        changed = edits.with_options(changed, "async-permute", {})
    return changed


def enabled(plan: Plan, choice: Choice) -> bool:
    """Whether the choice means anything in `plan`: options of a pass that is off do not."""
    return choice.optional or edits.options_of(plan, choice.part) is not None
