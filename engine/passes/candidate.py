"""Places where a collective and einsums could be decomposed, with the verdict and the numbers behind it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.cost.costs import Origin

_MODELLED = (Origin.MODEL,)


@dataclass(frozen=True, slots=True)
class GateTerms:
    """Terms of the gate ``comp + comm + beside >= max(comp, ring) + extra``, in integer picoseconds.

    Wang et al. §5.5 with one term more. They are for one execution; loops multiply them by `Candidate.trips`.
    """

    comp: int
    comm: int
    ring: int
    extra: int
    beside: int = 0
    """What other work hides of the ring and of what precedes and follows it, less what it would hide of the
    collective, were it whole: negative where it waits for less as it is."""
    comp_from: tuple[Origin, ...] = _MODELLED
    """Where the times of the einsums come from, each origin once, in ascending order."""
    comm_from: tuple[Origin, ...] = _MODELLED
    """Likewise of the collectives."""

    @property
    def gain(self) -> int:
        return self.comp + self.comm + self.beside - max(self.comp, self.ring) - self.extra

    def then(self, other: GateTerms) -> GateTerms:
        """Of two loops one after the other; what each leaves exposed by itself is not hidden by the other."""
        comp, ring = self.comp + other.comp, self.ring + other.ring
        apart = max(self.comp, self.ring) + max(other.comp, other.ring) - max(comp, ring)
        extra = self.extra + other.extra + apart
        return GateTerms(
            comp,
            self.comm + other.comm,
            ring,
            extra,
            self.beside + other.beside,
            # What has no einsums, or saves no collective, says nothing about where its times come from.
            _both(self.comp_from if self.comp else (), other.comp_from if other.comp else ()),
            _both(self.comm_from if self.comm else (), other.comm_from if other.comm else ()),
        )


def _both(one: tuple[Origin, ...], other: tuple[Origin, ...]) -> tuple[Origin, ...]:
    return tuple(sorted({*one, *other})) or _MODELLED


@dataclass(frozen=True, slots=True)
class Candidate:
    """One collective of the module as the pass found it, and what was decided."""

    id: str
    """Name of the collective instruction; what ``force=`` and ``forbid=`` take."""
    kind: str
    """``all-gather-einsum``, ``einsum-reduce-scatter``, ``all-reduce``, ``chain`` or ``other``."""
    collective: int
    """Instruction id in the module the pass was given."""
    einsums: tuple[int, ...]
    """Instruction ids of the einsums that could overlap with it; empty when there are none."""
    group_size: int
    case: str | None
    """``non-contracting``, ``contracting``, ``batch``, ``scatter``; None where no einsum was found."""
    chosen: bool
    reason: str
    """The verdict in words with its numbers: why it was decomposed, or why not."""
    gate: GateTerms | None = None
    """None where the gate was not asked. Collectives that are decomposed as one share its terms between them, so that
    gains add up; a chain repeats what its two ends share."""
    variant: str = ""
    """Form of the decomposition that was chosen: ``unrolled, ring=both``; empty where not decomposed."""
    trips: int = 1
    """How often the collective runs in one execution of the entry computation."""
    row: str = ""
    """Key shared by alike sites (same shapes and groups, op_name equal up to its numbers)."""
    origins: tuple[int, ...] = ()
    """Ids of the module as loaded that the collective came from, where a pass before made it."""

    @property
    def loaded(self) -> tuple[int, ...]:
        """Ids of the collective in the module as loaded."""
        return self.origins or (self.collective,)
