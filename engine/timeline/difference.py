"""Where the time of one variant went in another: instruction by instruction of what both came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.timeline.statistics import Times, times_by_instruction
from engine.timeline.timeline import Timeline

Keys = Callable[[int], Sequence[int]]
"""Instruction id → keys under which its time is compared: ids of the module as loaded that it came from, or what stands
for these in another module."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Everything that two variants ran under one key."""

    key: int
    base: Times
    other: Times

    @property
    def stream(self) -> int:
        """By how much the compute stream spends more on it in the other variant, waits included; picoseconds."""
        return self.other.stream - self.base.stream


def differences(base: Timeline, base_keys: Keys, other: Timeline, other_keys: Keys) -> tuple[Difference, ...]:
    """All keys under which two timelines differ, the largest difference on the compute stream first.

    What has several keys counts for each in equal parts.
    """
    one, two = times_by_key(base, base_keys), times_by_key(other, other_keys)
    nothing = Times()
    found = (Difference(o, one.get(o, nothing), two.get(o, nothing)) for o in sorted(one.keys() | two.keys()))
    return tuple(sorted((d for d in found if d.base != d.other), key=lambda d: (-abs(d.stream), d.key)))


def times_by_key(timeline: Timeline, keys: Keys) -> Mapping[int, Times]:
    """Times under each key, iterations that are not shown included."""
    found: dict[int, Times] = {}
    for instruction, times in times_by_instruction(timeline).items():
        parts = keys(instruction)
        for part, key in enumerate(parts):
            share = Times(*(_part(value, part, len(parts)) for value in (times.compute, times.transfer, times.exposed)))
            found[key] = found.get(key, Times()).plus(share)
    return found


def _part(value: int, number: int, parts: int) -> int:
    """Part `number` of `value` divided as evenly as whole picoseconds allow."""
    return value * (number + 1) // parts - value * number // parts
