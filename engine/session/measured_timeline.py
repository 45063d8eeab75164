"""One measured execution on one device as a timeline: slices in lanes, frames around loops, waits as gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from engine.chips.budget import Kind
from engine.cost.costs import Origin
from engine.cost.program import Program
from engine.ir.graph import Ints
from engine.ir.graphs import SEQUENTIAL
from engine.ir.opcodes import COLLECTIVES, is_start
from engine.profile.profile import ALONE, SYNCHRONOUS_LANE, Profile
from engine.session.variant import Variant
from engine.simulate.categories import compute_categories, transfer_category
from engine.timeline.lanes import rows as lane_rows
from engine.timeline.timeline import Category, Curve, Lane, LaneKind, Metrics, Timeline


@dataclass(frozen=True, eq=False)
class Step:
    """Events of one execution on one device."""

    profile: Profile
    program: Program
    rows: Ints
    """Numbers of its events that belong to an instruction."""
    instruction: Ints
    """Instruction id by event of the whole profile."""
    executed: Mapping[int, int]
    """Instruction id → id of the instruction that runs it: the fusion that it is in, else itself."""

    @cached_property
    def kinds(self) -> Mapping[int, Kind]:
        """By instruction id, of everything that is executed."""
        return {
            int(id_): Kind(kind)
            for computation, graph in self.program.graphs.items()
            for id_, kind in zip(graph.ids.tolist(), self.program.costs[computation].kind.tolist(), strict=True)
        }

    @cached_property
    def categories(self) -> Mapping[int, Category]:
        """Of what each executed instruction does on the compute stream."""
        return {
            int(id_): Category(category)
            for graph in self.program.graphs.values()
            for id_, category in zip(
                graph.ids.tolist(), compute_categories(self.program.module, graph).tolist(), strict=True
            )
        }

    @cached_property
    def starts(self) -> Mapping[int, int]:
        """Id of a done → id of its start."""
        return {
            int(graph.ids[node]): int(graph.ids[partner])
            for graph in self.program.graphs.values()
            for node, partner in enumerate(graph.partner.tolist())
            if 0 <= partner < node
        }


@dataclass(slots=True)
class _Slice:
    instruction: int
    lane: str
    kind: LaneKind
    start: int
    end: int
    category: Category
    waits_for: int = -1
    repeat: int = 1
    depth: int = 0
    iteration: int = 0


def step_timeline(step: Step, *, overlaps: bool) -> Timeline:
    """The timeline of `step`. Operations that run beside each other get lanes of their own.

    Where nothing `overlaps` (CPU devices), a transfer is exposed from its beginning to its end.
    """
    slices = _slices(step)
    begin = min(s.start for s in slices)
    frames = [s for s in slices if s.category is Category.LOOP]
    _nest(step, slices, frames)
    slices += _waits(step, slices, overlaps)
    lanes, numbers = _lanes(slices)
    order = sorted(range(len(slices)), key=lambda k: (numbers[k], slices[k].start, slices[k].start - slices[k].end))
    ordered = [slices[k] for k in order]
    columns = np.array(
        [(s.instruction, s.start - begin, s.end - s.start, s.repeat, s.iteration, s.waits_for) for s in ordered],
        dtype=np.int64,
    ).T
    instruction, start, duration, repeat, iteration, waits = (np.ascontiguousarray(column) for column in columns)
    lane = np.array([numbers[k] for k in order], dtype=np.int16)
    category = np.array([s.category for s in ordered], dtype=np.uint8)
    depth = np.array([s.depth for s in ordered], dtype=np.uint8)
    nothing = Curve(_frozen(np.zeros(1, dtype=np.int64)), _frozen(np.zeros(1, dtype=np.int64)))
    for column in (instruction, start, duration, repeat, iteration, waits, lane, category, depth):
        column.flags.writeable = False
    return Timeline(
        instruction=instruction,
        lane=lane,
        start=start,
        duration=duration,
        category=category,
        depth=depth,
        repeat=repeat,
        iteration=iteration,
        waits_for=waits,
        lanes=lanes,
        in_flight=nothing,
        memory=nothing,
        makespan=max(s.end for s in slices) - begin,
        source=Origin.MEASURED,
    )


def step_metrics(step: Step, timeline: Timeline, predicted: Variant) -> Metrics:
    """What was measured; what was not (memory, operations in flight, a lower bound) is 0."""
    kinds = np.array([lane.kind for lane in timeline.lanes], dtype=np.uint8)[timeline.lane]
    exposed = timeline.category == Category.EXPOSED
    compute = (kinds == LaneKind.COMPUTE) & ~exposed & (timeline.category != Category.LOOP)
    transfer = kinds == LaneKind.TRANSFER
    return replace(
        predicted.metrics,
        makespan=timeline.makespan,
        compute=_union(timeline, compute),
        comm=int(timeline.duration[transfer].sum()),
        exposed=_union(timeline, exposed),
        transfer_union=_union(timeline, transfer),
        peak_memory=0,
        max_in_flight=0,
        flops_utilization=0.0,
        lower_bound=0,
    )


def _frozen(array: Ints) -> Ints:
    array.flags.writeable = False
    return array


def _slices(step: Step) -> list[_Slice]:
    profile, module = step.profile, step.program.module
    own = set(step.instruction[step.rows].tolist())
    alone = ALONE in profile.notes
    flying = {
        step.executed[int(step.instruction[row])]
        for row in step.rows.tolist()
        if profile.lines[profile.line[row]].kind is LaneKind.TRANSFER
    }
    slices = []
    for row in step.rows.tolist():
        id_ = int(step.instruction[row])
        runs = step.executed[id_]
        if runs != id_ and runs in own:
            continue  # inside a fusion that is run as a call: its slice holds this one
        line, start = profile.lines[profile.line[row]], int(profile.start[row])
        end, opcode = start + int(profile.duration[row]), module.instructions[runs].opcode
        if opcode in SEQUENTIAL:
            slices.append(_Slice(runs, "compute", LaneKind.COMPUTE, start, end, Category.LOOP))
        elif profile.copies[row] or (alone and _transfers(opcode)):
            slices.append(_Slice(runs, "compute", LaneKind.COMPUTE, start, end, Category.COPY))
        elif runs in step.starts:
            slices.append(_Slice(runs, "compute", LaneKind.COMPUTE, start, end, Category.EXPOSED, step.starts[runs]))
        elif line.kind is LaneKind.TRANSFER or (runs not in flying and _transfers(opcode)):
            category = transfer_category(step.kinds.get(runs, Kind.OTHER))
            slices.append(_Slice(runs, _lane_of(line.name, profile.platform), LaneKind.TRANSFER, start, end, category))
        elif runs not in flying:  # else the issue of a transfer that has a line of its own
            category = step.categories.get(runs, Category.ELEMENTWISE)
            name = line.name if profile.platform == "gpu" else "compute"
            slices.append(_Slice(runs, name, LaneKind.COMPUTE, start, end, category))
    return slices or [_Slice(-1, "compute", LaneKind.COMPUTE, 0, 0, Category.ELEMENTWISE)]


def _transfers(opcode: str) -> bool:
    return opcode in COLLECTIVES or is_start(opcode)


def _lane_of(line: str, platform: str) -> str:
    if platform == "cpu":
        return SYNCHRONOUS_LANE
    return line if platform == "gpu" else "transfers"


def _nest(step: Step, slices: Sequence[_Slice], frames: Sequence[_Slice]) -> None:
    """Depths and iterations, in place: a slice lies in the frame of what runs its computation, around its start."""
    module = step.program.module
    runs: dict[int, list[_Slice]] = {}
    for frame in frames:
        for callee in module.instructions[frame.instruction].called_computation_ids:
            runs.setdefault(callee, []).append(frame)
    for found in runs.values():
        found.sort(key=lambda frame: frame.start)
    begins = {callee: [frame.start for frame in found] for callee, found in runs.items()}
    holders: dict[int, _Slice] = {}
    counts: dict[tuple[int, int, str], int] = {}
    for piece in sorted(slices, key=lambda s: (s.start, s.start - s.end)):
        home = module.computation_of.get(piece.instruction, -1)
        if home not in runs:
            continue
        at = int(np.searchsorted(begins[home], piece.start, side="right")) - 1
        if at < 0 or piece.start >= runs[home][at].end:
            continue
        holder = runs[home][at]
        holders[id(piece)] = holder
        key = id(holder), piece.instruction, f"{piece.category} {piece.lane}"
        piece.iteration = counts.get(key, 0)
        counts[key] = piece.iteration + 1
        holder.repeat = max(holder.repeat, piece.iteration + 1) if not _is_condition(step, home) else holder.repeat
    for piece in slices:
        around = holders.get(id(piece))
        while around is not None:
            piece.depth += 1
            around = holders.get(id(around))


def _is_condition(step: Step, computation: int) -> bool:
    return computation not in step.program.loop_bodies


def _waits(step: Step, slices: Sequence[_Slice], overlaps: bool) -> list[_Slice]:
    """Gaps on the compute lane for transfers that stop it: blocking ones, and on CPU devices all."""
    module = step.program.module
    waits = []
    for piece in slices:
        if piece.kind is not LaneKind.TRANSFER:
            continue
        if overlaps and module.instructions[piece.instruction].opcode not in COLLECTIVES:
            continue
        wait = replace(piece, lane="compute", kind=LaneKind.COMPUTE, category=Category.EXPOSED)
        wait.waits_for = piece.instruction
        waits.append(wait)
    return waits


def _lanes(slices: Sequence[_Slice]) -> tuple[tuple[Lane, ...], list[int]]:
    """Lanes, compute first, and the number of each slice's. Frames lie with what they hold; the rest gets rows."""
    groups: dict[tuple[LaneKind, str], list[int]] = {}
    for k, piece in enumerate(slices):
        groups.setdefault((piece.kind, piece.lane), []).append(k)
    lanes: list[Lane] = []
    numbers = [0] * len(slices)
    for kind, name in sorted(groups, key=lambda group: (group[0], group[1] != "compute", group[1])):
        members = groups[kind, name]
        placed = [k for k in members if slices[k].category is not Category.LOOP]
        placed.sort(key=lambda k: slices[k].start)
        first = len(lanes)
        start = np.array([slices[k].start for k in placed], dtype=np.int64)
        end = np.array([max(slices[k].end, slices[k].start + 1) for k in placed], dtype=np.int64)
        rows = lane_rows(start, end).tolist()
        count = max(rows, default=0) + 1
        lanes += [Lane(name if row == 0 else f"{name} {row + 1}", kind) for row in range(count)]
        for k, row in zip(placed, rows, strict=True):
            numbers[k] = first + row
        for k in set(members) - set(placed):
            numbers[k] = first
    return tuple(lanes), numbers


def _union(timeline: Timeline, chosen: np.typing.NDArray[np.bool_]) -> int:
    """Picoseconds that at least one of the chosen slices covers."""
    start = timeline.start[chosen]
    order = np.argsort(start, kind="stable")
    start, end = start[order], (start + timeline.duration[chosen])[order]
    if not len(start):
        return 0
    reached = np.concatenate([start[:1], np.maximum.accumulate(end)[:-1]])
    return int(np.maximum(0, end - np.maximum(start, reached)).sum())
