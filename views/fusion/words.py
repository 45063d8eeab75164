"""What a fusion holds and waits for, and what another decision would bring, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from engine.quantities import gain_text, signed_time_text, time_text
from engine.timeline.timeline import Metrics
from views.fusion.harm import FusionRow

_MOST_NAMES = 8
_NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Gain:
    """What another decision would bring, as text."""

    part: str
    time: str
    in_words: str


def gain_of(answer: Metrics | str | None, now: Metrics) -> Gain:
    """Of a prediction: None while it is not there, a sentence where it is impossible."""
    if answer is None:
        return Gain("…", "", "not predicted yet")
    if isinstance(answer, str):
        return Gain("impossible", "", answer)
    change = signed_time_text(answer.makespan - now.makespan)
    part = gain_text(now.makespan, answer.makespan)
    exposed = signed_time_text(answer.exposed - now.exposed)
    return Gain(part, change, f"predicted makespan {change} ({part}), exposed communication {exposed}")


def compared(now: Metrics, then: Metrics) -> str:
    """The difference in figures, one line."""
    figures = (("makespan", now.makespan, then.makespan), ("exposed", now.exposed, then.exposed))
    return ", ".join(f"{name} {_change(before, after)}" for name, before, after in figures)


def _change(before: int, after: int) -> str:
    """From one time to another, in picoseconds; a number and its unit stay on one line."""
    if before == after:
        return f"{time_text(before)}, unchanged".replace(" ", _NO_BREAK, 1)
    said = f"{time_text(before)} → {time_text(after)} ({signed_time_text(after - before)})"
    return said.replace(" ", _NO_BREAK)


def inside_text(row: FusionRow) -> str:
    """Rich text: members, what is waited for, and what of that the einsum does not need."""
    fusion = row.fusion
    shown = [f"<b>{escape(n)}</b>" if n == fusion.einsum else escape(n) for n in _first(fusion.members, fusion.einsum)]
    parts = [f"<b>{escape(fusion.name)}</b>"]
    if fusion.members:
        parts.append(f"holds {', '.join(shown)}{_more(fusion.members)}")
    if fusion.waits_for:
        parts.append(f"waits for {escape(', '.join(fusion.waits_for[:_MOST_NAMES]))}{_more(fusion.waits_for)}")
    if fusion.foreign:
        foreign = escape(", ".join(fusion.foreign[:_MOST_NAMES]))
        parts.append(f"of which its einsum does not need {foreign}{_more(fusion.foreign)}")
    if not fusion.alternatives:
        parts.append("there is no other decision to take")
    return "<br>".join(part for part in parts if part)


def _first(names: Sequence[str], einsum: str) -> list[str]:
    """A few names, the einsum's among them."""
    few = list(names[:_MOST_NAMES])
    return few if einsum in few or einsum not in names else [*few[:-1], einsum]


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
