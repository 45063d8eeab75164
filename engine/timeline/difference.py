"""Where the time of one variant went in another: instruction by instruction of what both came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from engine.ir.graph import Ints
from engine.timeline.statistics import TimeColumns, Times, time_columns
from engine.timeline.timeline import Timeline

_COLUMNS = 3
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
    sides = [_by_key(time_columns(base), base_keys), _by_key(time_columns(other), other_keys)]
    keys = np.unique(np.concatenate([own for own, _ in sides]))
    tables = np.zeros((2, len(keys), _COLUMNS), np.int64)
    for table, (own, times) in zip(tables, sides, strict=True):
        table[np.searchsorted(keys, own)] = times
    differing = np.flatnonzero((tables[0] != tables[1]).any(axis=1))
    stream = tables[:, :, 0] + tables[:, :, 2]
    order = differing[np.lexsort((keys[differing], -np.abs(stream[1] - stream[0])[differing]))]
    rows = zip(keys[order].tolist(), tables[0][order].tolist(), tables[1][order].tolist(), strict=True)
    return tuple(Difference(key, Times(*one), Times(*two)) for key, one, two in rows)


def _by_key(columns: TimeColumns, keys: Keys) -> tuple[Ints, Ints]:
    """Keys, ascending, and times under each: compute, transfer and exposed, shape [k, 3]."""
    of = [keys(instruction) for instruction in columns.instruction.tolist()]
    parts = np.fromiter(map(len, of), np.int64, len(of))
    flat = np.fromiter(chain.from_iterable(of), np.int64, int(parts.sum()))
    number = np.arange(len(flat)) - np.repeat(np.cumsum(parts) - parts, parts)
    times = np.stack([columns.compute, columns.transfer, columns.exposed], axis=1)
    shares = _shares(np.repeat(times, parts, axis=0), number[:, None], np.repeat(parts, parts)[:, None])
    found, place = np.unique(flat, return_inverse=True)
    sums = np.zeros((len(found), _COLUMNS), np.int64)
    np.add.at(sums, place, shares)
    return found, sums


def _shares(value: Ints, number: Ints, parts: Ints) -> Ints:
    """Part `number` of each value divided as evenly as whole picoseconds allow."""
    even, rest = np.divmod(value, parts)
    shares: Ints = even + rest * (number + 1) // parts - rest * number // parts
    return shares
