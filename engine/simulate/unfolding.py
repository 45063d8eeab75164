"""Turns the runs of computations into one timeline: loops unfolded, transfers laid on lanes, curves drawn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.cost.program import Program
from engine.ir.graph import Ints
from engine.simulate.categories import compute_categories, transfer_category, transfer_lane
from engine.simulate.curves import Curves
from engine.simulate.run import Call, ComputationRun, Stretch
from engine.simulate.shown import Shown
from engine.simulate.work import Work
from engine.timeline.folds import Folds
from engine.timeline.lanes import rows
from engine.timeline.timeline import Category, Lane, LaneKind, Timeline

_COMPUTE = "compute"


def unfold(program: Program, entry: ComputationRun, cap: int, expand: tuple[tuple[int, int], ...] = ()) -> Timeline:
    """The timeline of a program, given the run of its entry.

    Every iteration is shown while there are no more than `cap` slices; then the loops that take most slices show their
    first, second and last iterations and those named in `expand` (loop's instruction id, iteration).
    """
    unfolding = _Unfolding(program)
    shown = Shown(entry, unfolding.count, cap, expand)
    columns = unfolding.columns(entry, shown)
    curves = Curves(shown)
    return _assemble(columns, unfolding.lanes, unfolding.links, curves, entry)


_FIELDS = ("instruction", "lane", "start", "duration", "category", "depth", "repeat", "iteration", "waits_for")
_LANE = _FIELDS.index("lane")
_START = _FIELDS.index("start")
_DURATION = _FIELDS.index("duration")
_DEPTH = _FIELDS.index("depth")
_ITERATION = _FIELDS.index("iteration")
_CATEGORY = _FIELDS.index("category")
_FOLDED = 255
"""Instead of a category: the row is a folded stretch; what its slices would wait for is how long its sample takes."""


class _Unfolding:
    """Slices of runs as tables of shape [fields, slices], from the beginning of each run."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.links = tuple(link.name for link in program.machine.links)
        self._own: dict[int, Ints] = {}
        self._whole: dict[int, Ints] = {}
        self.lanes: dict[str, int] = {_COMPUTE: 0}

    def count(self, run: ComputationRun) -> int:
        """How many slices `run` has without its callees."""
        return len(self.own(run)[0])

    def own(self, run: ComputationRun) -> Ints:
        """Slices of `run` without its callees; their depth is 0 and so is their iteration."""
        if id(run) not in self._own:
            self._own[id(run)] = np.concatenate(list(self._pieces(run)), axis=1)
        return self._own[id(run)]

    def columns(self, run: ComputationRun, shown: Shown) -> Ints:
        """Slices of `run` and of its callees."""
        if id(run) not in self._whole:
            parts = [self.own(run)]
            for node, call in run.calls.items():
                loop = int(run.graph.ids[node])
                begin = int(run.end[node]) - call.totals.makespan
                parts.extend(self._iterations(loop, call, begin, shown))
            self._whole[id(run)] = np.concatenate(parts, axis=1)
        return self._whole[id(run)]

    def _iterations(self, loop: int, call: Call, begin: int, shown: Shown) -> Iterator[Ints]:
        listed, until, length = 0, begin, 0
        """Iterations that are dealt with, the end of the last one that is shown, and how long that took."""
        for first, stretch, start in stretches(call, begin):
            iterations = shown.iterations(loop, call, first, stretch)
            if not len(iterations):
                continue
            after = np.concatenate(([listed], iterations[:-1] + 1))
            for at in np.flatnonzero(iterations > after).tolist():
                number, stop = int(after[at]), start + (int(iterations[at]) - first) * stretch.duration
                since, sample = (
                    (until, length) if at == 0 else (start + (number - first) * stretch.duration, stretch.duration)
                )
                yield _fold(loop, since, stop, number, int(iterations[at]) - number, sample)
            listed = int(iterations[-1]) + 1
            until, length = start + (listed - first) * stretch.duration, stretch.duration
            one = self._one(loop, stretch, shown)
            table = np.tile(one, len(iterations))
            each = np.repeat(iterations, one.shape[1])
            table[_START] += start + (each - first) * stretch.duration
            table[_ITERATION] = np.where(table[_DEPTH] == 0, each, table[_ITERATION])
            table[_DEPTH] += 1
            yield table
        total = sum(stretch.count for stretch in call.stretches)
        if listed < total:
            yield _fold(loop, until, begin + call.totals.makespan, listed, total - listed, length)

    def _one(self, loop: int, stretch: Stretch, shown: Shown) -> Ints:
        """Slices of one iteration."""
        parts = []
        at = 0
        for run in stretch.runs:
            table = self.columns(run, shown).copy()
            table[_START] += at
            parts.append(table)
            at += run.makespan
        if stretch.copies:
            parts.append(_table([loop], 0, [at], [stretch.copies], Category.COPY))
        return np.concatenate(parts, axis=1)

    def _pieces(self, run: ComputationRun) -> Iterator[Ints]:
        work = run.plan.work
        ids = run.graph.ids
        transfers = np.flatnonzero(run.depart >= 0)
        called = np.array(sorted(run.calls), dtype=np.int64)
        until = np.where(run.depart >= 0, run.depart, run.end)
        until[called] -= np.array([run.calls[node].totals.makespan for node in called.tolist()], np.int64)
        busy = np.flatnonzero(until > run.start)
        categories = compute_categories(self._program.module, run.graph)
        yield _table(ids[busy], 0, run.start[busy], (until - run.start)[busy], categories[busy].tolist())

        waiting = np.flatnonzero(run.start > run.reached)
        gaps = (run.start - run.reached)[waiting]
        yield _table(ids[waiting], 0, run.reached[waiting], gaps, Category.EXPOSED, waits_for=work.awaited[waiting])

        arrive = np.where(run.arrive >= 0, run.arrive, run.makespan)
        length = arrive - run.depart
        blocking = np.array([n for n in transfers.tolist() if n in work.blocking], dtype=np.int64)
        yield _table(
            ids[blocking], 0, run.depart[blocking], length[blocking], Category.EXPOSED, waits_for=ids[blocking]
        )

        yield self._transfers(work, transfers.tolist(), run.depart[transfers], length[transfers])
        rest = sorted(run.carried.items())
        begins, lengths = [begin for _, (begin, _) in rest], [end - begin for _, (begin, end) in rest]
        yield self._transfers(work, [node for node, _ in rest], begins, lengths)

        totals = [run.calls[node].totals.makespan for node in called.tolist()]
        trips = [run.calls[node].trips for node in called.tolist()]
        yield _table(ids[called], 0, run.end[called] - totals, totals, Category.LOOP, repeat=trips)

    def _transfers(self, work: Work, nodes: list[int], begin: Ints | list[int], length: Ints | list[int]) -> Ints:
        """Slices of the transfers of `nodes`, on the lanes that they are drawn on."""
        lanes = [self._lane(transfer_lane(work, node, self.links)) for node in nodes]
        categories = [int(transfer_category(work.kind[node])) for node in nodes]
        return _table(work.graph.ids[nodes], lanes, begin, length, categories)

    def _lane(self, name: str) -> int:
        return self.lanes.setdefault(name, len(self.lanes))


def stretches(call: Call, begin: int) -> Iterator[tuple[int, Stretch, int]]:
    """(first iteration, stretch, when it begins) of every stretch of a call that begins at `begin`."""
    first = 0
    for stretch in call.stretches:
        yield first, stretch, begin
        first += stretch.count
        begin += stretch.count * stretch.duration


def _table(
    instruction: Ints | list[int],
    lane: int | list[int],
    start: Ints | list[int],
    duration: Ints | list[int],
    category: Category | Ints | list[int],
    repeat: int | list[int] = 1,
    waits_for: int | Ints = -1,
) -> Ints:
    table = np.empty((len(_FIELDS), len(instruction)), dtype=np.int64)
    for row, values in enumerate((instruction, lane, start, duration, category, 0, repeat, 0, waits_for)):
        table[row] = values
    return table[:, table[_DURATION] > 0]


def _fold(loop: int, start: int, stop: int, iteration: int, count: int, sample: int) -> Ints:
    """`count` iterations from `iteration` on that are not shown."""
    table = _table([loop], 0, [start], [stop - start], [_FOLDED], [count], waits_for=sample)
    table[_DEPTH], table[_ITERATION] = 1, iteration
    return table


def _folds(table: Ints) -> Folds:
    table = table[:, np.lexsort((table[_DEPTH], table[_START]))]
    names = ("instruction", "start", "duration", "repeat", "waits_for", "iteration", "depth")
    columns = [table[_FIELDS.index(name)].copy() for name in names]
    for column in columns:
        column.flags.writeable = False
    return Folds(*columns)


def _assemble(
    table: Ints, names: dict[str, int], links: tuple[str, ...], curves: Curves, entry: ComputationRun
) -> Timeline:
    """Sort slices, give transfers that overlap rows of their own, and number the lanes as they are shown."""
    folded = table[_CATEGORY] == _FOLDED
    folds, table = _folds(table[:, folded]), table[:, ~folded]
    table = table[:, np.lexsort((table[_DEPTH], -table[_DURATION], table[_START], table[_LANE]))]
    start, duration = table[_START], table[_DURATION]
    lanes = [Lane(_COMPUTE, LaneKind.COMPUTE)]
    for name in sorted(names, key=lambda name: (links.index(name) if name in links else len(links), name)):
        own = np.flatnonzero(table[_LANE] == names[name])
        if name == _COMPUTE or not len(own):
            continue
        row = rows(start[own], start[own] + duration[own])
        count = int(row.max()) + 1
        table[_LANE, own] = -(len(lanes) + row)
        lanes.extend(Lane(name if k == 0 else f"{name} ·{k + 1}", LaneKind.TRANSFER) for k in range(count))
    table[_LANE] = np.abs(table[_LANE])
    table = table[:, np.argsort(table[_LANE], kind="stable")]
    types = dict.fromkeys(_FIELDS, np.int64) | {"lane": np.int16, "category": np.uint8, "depth": np.uint8}
    columns = {name: table[row].astype(types[name]) for row, name in enumerate(_FIELDS)}
    for column in columns.values():
        column.flags.writeable = False
    return Timeline(
        **columns,
        lanes=tuple(lanes),
        in_flight=curves.in_flight(entry),
        memory=curves.memory(entry),
        makespan=entry.makespan,
        folds=folds,
    )
