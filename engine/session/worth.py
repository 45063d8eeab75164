"""Whether a plan is worth anything: not where the compiler is as fast without one, by its own cycles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.session.production import LOOSE, PINNED, WHOLE, Produced


@dataclass(frozen=True, slots=True)
class Worth:
    """The fastest of a plan's variants beside the fastest that the compiler makes without one."""

    ours: Produced | None
    """With one permute each way at a time; None where no variant of the plan was predicted so."""
    own: Produced | None
    """As predicted by default, or with the compiler's own decomposition, however many permutes go the same way at
    once; None where it predicts neither."""

    @property
    def nothing(self) -> bool:
        """Whether the compiler needs no plan: its options are enough where `own` has any."""
        return self.own is not None and (self.ours is None or self.own.cycles <= self.ours.cycles)


def weigh(found: Sequence[Produced]) -> Worth:
    """What `produce` found. Collectives that are left whole and made asynchronous are no default: a plan can say so."""
    ours = [p for p in found if p.variant.name in (LOOSE, PINNED) and p.counts]
    own = [p for p in found if p.variant.name not in (LOOSE, PINNED) and not p.variant.name.endswith(WHOLE)]
    return Worth(min(ours, key=_cycles, default=None), min(own, key=_cycles, default=None))


def _cycles(produced: Produced) -> int:
    return produced.cycles
