"""A plan and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine import options
from engine.cost.costs import Origin
from engine.cost.program import Program
from engine.ir.module import Module
from engine.ir.opcodes import COLLECTIVES
from engine.passes.candidate import Candidate
from engine.passes.fusion import Fusion
from engine.quantities import bytes_text, counted_text, gain_text, time_text
from engine.schedule.binding import Held
from engine.schedule.problem import Schedule
from engine.session.given import Recording
from engine.session.plan import MachineSpec, Plan
from engine.timeline.timeline import Metrics, Timeline


@dataclass(frozen=True, eq=False)
class Variant:
    """One row of the comparison. `program.module` is the module after the plan's passes."""

    name: str
    machine: MachineSpec
    plan: Plan
    program: Program
    candidates: tuple[Candidate, ...]
    """Every collective of the module as loaded, with the verdict of this plan's passes; empty without passes."""
    schedule: Schedule
    timeline: Timeline
    metrics: Metrics
    fusions: tuple[Fusion, ...] = ()
    """Fusion decisions of this plan's passes."""
    notes: tuple[str, ...] = ()
    """What was inferred or assumed on the way, each one sentence."""
    recording: Recording | None = None
    """The file that its times come from; None where the plan was simulated."""
    held: tuple[Held, ...] = ()
    """Starts that the budget kept waiting, longest first."""
    proven: int | None = None
    """Picoseconds that the scheduler proved no order of these instructions can beat; None where it proved nothing."""

    @property
    def source(self) -> Origin:
        """Where the times came from."""
        return self.timeline.source

    @property
    def proof(self) -> str:
        """How far the makespan is from the best order, as far as that was proven; empty where nothing was."""
        if self.proven is None:
            return ""
        if self.metrics.makespan <= self.proven:
            return "proven optimal"
        return f"within {self.metrics.makespan / max(1, self.proven) - 1:.2%} of optimal"

    @property
    def is_measured(self) -> bool:
        """Whether the times were measured; what a profile does not tell (memory, in flight, a bound) is 0 then."""
        return self.source == Origin.MEASURED

    @property
    def over_memory(self) -> int:
        """Bytes by which the simulated peak exceeds the chip's HBM; 0 where it fits, or nothing tells it."""
        return 0 if self.is_measured else max(0, self.metrics.peak_memory - self.program.machine.chip.hbm_bytes)

    @property
    def memory_warning(self) -> str:
        """One sentence where the plan would run out of memory; empty where it fits."""
        if not self.over_memory:
            return ""
        chip = self.program.machine.chip
        peak, over, room = map(bytes_text, (self.metrics.peak_memory, self.over_memory, chip.hbm_bytes))
        return (
            f"Its peak memory of {peak}, as simulated, is {over} more than the {room} of HBM that {chip.title} has: it "
            "would not run there. A memory cap keeps a schedule below."
        )

    def priced_unlike(self, other: Variant) -> tuple[str, ...]:
        """Instructions whose given time prices one of the two, but not the other: what the model says of their
        counterparts is no part of a gain. Sorted."""
        own, others = (frozenset[str]().union(*(used.priced for used in v.program.imported)) for v in (self, other))
        return tuple(sorted(own ^ others))

    def compares_with(self, other: Variant) -> bool:
        """Whether a difference of their times says anything: a prediction is not set against a measurement."""
        return self.source == other.source


def best_of(variants: Sequence[Variant], base: Variant | None = None) -> Variant:
    """The one that a reader takes: of those that were simulated and fit the memory the fastest that is priced as `base`
    is, the module as loaded, by default the first.

    What is not priced alike comes behind whatever is, however fast it looks. Of equals one that gives verdicts on
    collectives, and the first, the module as loaded last. At least one is given.
    """
    base = variants[0] if base is None else base

    def rank(variant: Variant) -> tuple[bool, bool, int, bool, bool]:
        unlike = bool(variant.priced_unlike(base))
        return variant.over_memory > 0, unlike, variant.metrics.makespan, not variant.candidates, variant is base

    return min([v for v in variants if not v.is_measured] or variants, key=rank)


def with_verdicts(variants: Sequence[Variant]) -> Variant | None:
    """The best whose passes gave verdicts on collectives, which a report lists; None where none did. The first is the
    module as loaded."""
    judged = [variant for variant in variants if variant.candidates]
    return best_of(judged, variants[0]) if judged else None


def verdicts_in_words(variants: Sequence[Variant], verdicts: Variant, quotes: str = "''") -> str:
    """How many collectives are decomposed in `verdicts`, and first, where the best of `variants` decomposes none, that
    it does not."""
    best, chosen = best_of(variants), sum(c.chosen for c in verdicts.candidates)
    name, other = (v.name.join(quotes) for v in (verdicts, best))
    took, less = (time_text(v.metrics.makespan) for v in (verdicts, best))
    if best is verdicts:
        return f"{chosen} decomposed in {name}, {took}"
    of = f"{name}, {took}" + (f", {chosen} decomposed" if chosen else "")
    return f"none decomposed in the best plan, {other}, {less}; the verdicts are of {of}"


def memory_warnings(variants: Sequence[Variant]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each warning once, with the names of the variants it is of."""
    found: dict[str, list[str]] = {}
    for variant in variants:
        if variant.memory_warning:
            found.setdefault(variant.memory_warning, []).append(variant.name)
    return tuple((text, tuple(names)) for text, names in found.items())


def unjudged_in_words(module: Module, variants: Sequence[Variant]) -> str:
    """What is said of a module's collectives where none of `variants` gave verdicts on them."""
    count = collectives_in(module)
    if not count:
        return "no collectives"
    looked = "not looked at" if count == 1 else "none looked at"
    asked = any(name == "decompose" for v in variants for name, _ in options.split(v.plan.passes))
    why = "decompose knows no such kind" if asked else "the plan has no decompose"
    return f"{counted_text(count, 'collective')}, {looked}: {why}"


def collectives_in(module: Module) -> int:
    """How many exchanges between devices are written in a module, asynchronous ones counted once."""
    return sum(len(those) for opcode, those in module.by_opcode.items() if opcode.removesuffix("-start") in COLLECTIVES)


def notes_of(variants: Sequence[Variant]) -> tuple[str, ...]:
    """What is to be said of variants, each sentence once; of some of them alone it begins with their names."""
    loaded = set(variants[0].notes if variants else ())
    judged = [variant for variant in variants if variant.candidates]
    found: dict[str, list[Variant]] = {}
    for variant in variants:
        for note in variant.notes:
            found.setdefault(note, []).append(variant)
    return tuple(
        note
        if note in loaded or all(variant in those for variant in judged)
        else f"{'; '.join(dict.fromkeys(variant.name for variant in those))}: {note}"
        for note, those in found.items()
    )


UNLIKE = "≠"
"""Beside a gain over what is not priced alike."""
_NAMED = 4


def unlike_in_words(names: Sequence[str]) -> str:
    """Why a difference is no gain alone: what `Variant.priced_unlike` found, in a sentence without its full stop."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    which = ", ".join(names[:_NAMED]) + more
    return f"not priced alike: given times of {which} price the one, the model what stands for it in the other"


def gain_in_words(before: Variant, after: Variant) -> str:
    """How much faster or slower `after` is, marked where the two are not priced alike: ``−12.5 % ≠``."""
    text = gain_text(before.metrics.makespan, after.metrics.makespan)
    return f"{text} {UNLIKE}" if after.priced_unlike(before) else text


_OTHERS = {Origin.COMPILER: "a compiler's estimates", Origin.MEASURED: "measurements", Origin.TABLE: "a table"}


def costs_in_words(variants: Iterable[Variant]) -> str:
    """Whose times variants are simulated with: ``the model``, ``the model, in part measurements``."""
    found = {
        origin for variant in variants for costs in variant.program.costs.values() for origin in costs.origin.tolist()
    }
    others = [name for origin, name in _OTHERS.items() if origin in found]
    return "the model" + (f", in part from {' and '.join(others)}" if others else "")
