"""What the plan line offers: choices that are text in a plan, and how they are read from and put into it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.session import edits
from engine.session.plan import Plan

OFF = "off"


@dataclass(frozen=True, slots=True)
class Choice:
    """One option of one pass, as a list to choose from; the first (after `OFF`) is the pass's own default."""

    caption: str
    part: str
    option: str
    values: tuple[str, ...]
    optional: bool
    """Whether `OFF`, which takes the pass out of the plan, is among the values."""
    tip: str


CHOICES = (
    Choice(
        "decompose",
        "decompose",
        "form",
        (OFF, "auto", "rolled", "unrolled"),
        optional=True,
        tip="Turn collectives and einsums into loops of partial einsums: straight line, or a while loop",
    ),
    Choice(
        "unroll",
        "decompose",
        "unroll",
        ("auto", "1", "2"),
        optional=False,
        tip="How many iterations of a decomposed loop run as one; 2 leaves no loop-carried copies",
    ),
    Choice(
        "ring",
        "decompose",
        "ring",
        ("auto", "one", "both"),
        optional=False,
        tip="Directions in which shards travel around the ring",
    ),
    Choice(
        "fusion",
        "fuse",
        "policy",
        (OFF, "overlap", "default", "auto", "none"),
        optional=True,
        tip="Which fusion policy: greedy as a compiler without overlap in mind, or aware of transfers",
    ),
)


def value_of(plan: Plan, choice: Choice) -> str:
    """What `plan` has chosen."""
    given = edits.options_of(plan, choice.part)
    if given is None:
        return OFF if choice.optional else choice.values[0]
    default = next(v for v in choice.values if v != OFF)
    return given.get(choice.option, default)


def with_value(plan: Plan, choice: Choice, value: str) -> Plan:
    """`plan` with another value of a choice."""
    if value == OFF:
        return edits.without_pass(plan, choice.part)
    default = next(v for v in choice.values if v != OFF)
    changed = edits.with_options(plan, choice.part, {choice.option: None if value == default else value})
    if choice.part == "decompose" and edits.options_of(plan, "async-permute") is None:
        changed = edits.with_options(changed, "async-permute", {})
    return changed


def enabled(plan: Plan, choice: Choice) -> bool:
    """Whether the choice means anything in `plan`: options of a pass that is off do not."""
    return choice.optional or edits.options_of(plan, choice.part) is not None
