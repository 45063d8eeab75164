"""What the comparison lists: variants of the stack, plans that were only tried, and variants without a result."""

from __future__ import annotations

from dataclasses import dataclass

from engine.cost.costs import Origin
from engine.quantities import gain_text
from engine.session.plan import Plan
from engine.session.variant import UNLIKE
from engine.timeline.timeline import Metrics
from views.timeline.paint_header import ACROSS


@dataclass(frozen=True)
class Line:
    """A row: a variant of the stack, or a plan that was only tried (no key)."""

    key: str
    title: str
    plan: Plan
    metrics: Metrics
    source: str
    module: str = ""
    """What its module is called, empty where there is but one."""
    proof: str = ""
    """How far it is from the best order, where its scheduler proved that."""
    room: int = 0
    """Bytes of HBM that the chip has."""
    origin: Origin = Origin.MODEL
    """Only times of one origin are compared: a prediction is not set against a measurement."""
    unlike: tuple[str, ...] = ()
    """Instructions whose given time prices it or the base, but not both."""
    unsure: bool = False
    """Whether times are given and it was only predicted: what they price in it is told once it is a variant."""

    def change(self, base: Line | None) -> str:
        """The makespan against the base's, empty where the two do not compare."""
        if base is None or self is base or self.origin != base.origin:
            return ""
        text = gain_text(base.metrics.makespan, self.metrics.makespan)
        text += ACROSS if self.module != base.module else ""
        return f"{text} {UNLIKE}" if self.unlike else text


@dataclass(frozen=True)
class Failed:
    """A row: a variant of the stack whose plan has no result."""

    key: str
    title: str
    plan: Plan
    why: str
    module: str = ""
    ending: str = "failed"
    """``failed`` or ``cancelled``; empty while its result is still to come."""
    alike: str = ""
    """Key of a variant above it that has none for the same reason."""
