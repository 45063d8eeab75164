"""Operations in flight and bytes live over time, loops unfolded where the timeline shows their iterations.

Iterations that are not shown count with the most that their body holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from engine.ir.graph import Ints
from engine.simulate.run import Call, ComputationRun, Stretch
from engine.simulate.shown import Shown
from engine.timeline.timeline import Curve

_Own = Callable[[ComputationRun], Ints]
_Most = Callable[[ComputationRun], int]


class Curves:
    """Changes are tables of shape [2, changes]: time and by how much, in the order in which they happen."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    def in_flight(self, entry: ComputationRun) -> Curve:
        """Asynchronous operations from the end of their start to the end of their done."""
        return _curve(self._changes(entry, _flight_steps, lambda run: run.in_flight, {}))

    def memory(self, entry: ComputationRun) -> Curve:
        """Bytes live, parameters included."""
        changes = self._changes(entry, _memory_steps, lambda run: run.extra, {})
        owned = np.array([[0], [entry.peak - entry.extra]], dtype=np.int64)
        return _curve(np.concatenate([owned, changes], axis=1))

    def _changes(self, run: ComputationRun, own: _Own, most: _Most, known: dict[int, Ints]) -> Ints:
        if id(run) in known:
            return known[id(run)]
        steps = own(run)
        place = run.plan.order.positions()
        parts: list[Ints] = []
        done = 0
        for node in sorted(run.calls, key=lambda node: int(place[node])):
            call = run.calls[node]
            at = int(place[node]) + 1
            parts.append(steps[:, done:at])
            parts.extend(self._of_call(run, node, call, own, most, known))
            done = at
        parts.append(steps[:, done:])
        table = np.concatenate(parts, axis=1)
        known[id(run)] = table[:, table[1] != 0]
        return known[id(run)]

    def _of_call(
        self, run: ComputationRun, node: int, call: Call, own: _Own, most: _Most, known: dict[int, Ints]
    ) -> Iterator[Ints]:
        begin = int(run.end[node]) - call.totals.makespan
        if not call.stretches:
            peak = max(most(callee) for callee in run.plan.calls[node].runs)
            yield np.array([[begin, int(run.end[node])], [peak, -peak]], dtype=np.int64)
        first = 0
        for stretch in call.stretches:
            shown = self._shown.iterations(int(run.graph.ids[node]), call, first, stretch) - first
            yield from self._of_stretch(stretch, shown, begin, own, most, known)
            first += stretch.count
            begin += stretch.count * stretch.duration

    def _of_stretch(
        self, stretch: Stretch, shown: Ints, begin: int, own: _Own, most: _Most, known: dict[int, Ints]
    ) -> Iterator[Ints]:
        """Changes of iterations 0..count-1, of which those in `shown` are unfolded."""
        peak = max(most(run) for run in stretch.runs)
        if not peak:
            return
        parts, at = [], 0
        for run in stretch.runs:
            parts.append(self._changes(run, own, most, known) + np.array([[at], [0]]))
            at += run.makespan
        one = np.concatenate(parts, axis=1)
        upto = 0
        for first, last in (*_blocks(shown), (stretch.count, stretch.count)):
            if first > upto:
                times = [begin + upto * stretch.duration, begin + first * stretch.duration]
                yield np.array([times, [peak, -peak]], dtype=np.int64)
            if first < last:
                table = np.tile(one, last - first)
                starts = begin + np.arange(first, last, dtype=np.int64) * stretch.duration
                table[0] += np.repeat(starts, len(one[0]))
                yield table
            upto = last


def _blocks(numbers: Ints) -> list[tuple[int, int]]:
    """Ascending numbers as ranges [first, last)."""
    if not len(numbers):
        return []
    first, last = int(numbers[0]), int(numbers[-1]) + 1
    if last - first == len(numbers):
        return [(first, last)]
    blocks = [(first, first + 1)]
    for number in numbers[1:].tolist():
        if number == blocks[-1][1]:
            blocks[-1] = (blocks[-1][0], number + 1)
        else:
            blocks.append((number, number + 1))
    return blocks


def _flight_steps(run: ComputationRun) -> Ints:
    """Change after each position, shape [2, n]."""
    nodes = run.plan.order.nodes
    return np.stack([run.end[nodes], run.plan.work.flying[nodes]])


def _memory_steps(run: ComputationRun) -> Ints:
    """Change on top of what the caller owns at each position, and back to nothing at the end; shape [2, n + 1]."""
    nodes = run.plan.order.nodes
    live = run.plan.live - (run.peak - run.extra)
    change = np.diff(live, prepend=0, append=0)
    return np.stack([np.append(run.start[nodes], run.makespan), change])


def _curve(changes: Ints) -> Curve:
    """Where several values fall on one moment, the largest and the last of them are kept."""
    time, value = changes[0], np.cumsum(changes[1])
    if not len(time):
        return Curve(time, value)
    firsts = np.flatnonzero(np.diff(time, prepend=-1))
    lasts = np.append(firsts[1:], len(time)) - 1
    largest = np.maximum.reduceat(value, firsts)
    last = value[lasts]
    times = np.repeat(time[firsts], 2)
    values = np.stack([largest, last], axis=1).ravel()
    kept = np.ones(len(times), dtype=np.bool_)
    kept[1:] = values[1:] != values[:-1]
    return Curve(_freeze(times[kept]), _freeze(values[kept]))


def _freeze(array: Ints) -> Ints:
    array.flags.writeable = False
    return array
