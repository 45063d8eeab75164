"""Where the time of one variant went in another: instruction by instruction of the module that both came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.ir.module import Module
from engine.timeline.statistics import Times, times_by_instruction
from engine.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Difference:
    """One instruction of the module as loaded, and everything that was made from it, in two variants."""

    origin: int
    """Instruction id in the module as loaded, or of an instruction that came from nothing in it."""
    base: Times
    other: Times

    @property
    def stream(self) -> int:
        """By how much the compute stream spends more on it in the other variant, waits included; picoseconds."""
        return self.other.stream - self.base.stream


def differences(base: Timeline, base_module: Module, other: Timeline, other_module: Module) -> tuple[Difference, ...]:
    """All instructions in which two timelines differ, the largest difference on the compute stream first.

    Both modules must come from one. What was made from several instructions counts for each in equal parts.
    """
    one, two = _by_origin(base, base_module), _by_origin(other, other_module)
    nothing = Times()
    found = (Difference(o, one.get(o, nothing), two.get(o, nothing)) for o in sorted(one.keys() | two.keys()))
    return tuple(sorted((d for d in found if d.base != d.other), key=lambda d: (-abs(d.stream), d.origin)))


def _by_origin(timeline: Timeline, module: Module) -> Mapping[int, Times]:
    found: dict[int, Times] = {}
    for instruction, times in times_by_instruction(timeline).items():
        origins = module.origins_of(instruction)
        for part, origin in enumerate(origins):
            share = Times(
                *(_part(value, part, len(origins)) for value in (times.compute, times.transfer, times.exposed))
            )
            found[origin] = found.get(origin, Times()).plus(share)
    return found


def _part(value: int, number: int, parts: int) -> int:
    """Part `number` of `value` divided as evenly as whole picoseconds allow."""
    return value * (number + 1) // parts - value * number // parts
