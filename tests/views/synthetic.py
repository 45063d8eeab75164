"""Variants made from a seed, without XLA, passes or a simulator: what the window's tests and benchmarks draw.

A decoder-like module: layers of two einsums with the gathers they need, then a loop. `overlap` decides whether a gather
is in flight while the einsum before it runs (as after a good schedule) or is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from engine.chips.budget import Budget
from engine.chips.chip import Rate
from engine.chips.library import load_chip
from engine.chips.machine import Machine
from engine.chips.topology import Torus
from engine.cost.costs import Costs, Origin
from engine.cost.program import Program
from engine.hlo import hlo_pb2
from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto
from engine.ir import shapes
from engine.ir.buffers import Buffers
from engine.ir.graph import Csr, Graph
from engine.ir.graphs import graphs_of
from engine.ir.module import Header, Module, Source
from engine.passes.candidate import Candidate, GateTerms
from engine.schedule.problem import Order, Schedule
from engine.session.plan import MachineSpec, Plan
from engine.session.variant import Variant
from engine.timeline.folds import Folds, no_folds
from engine.timeline.timeline import Category, Curve, Lane, LaneKind, Metrics, Timeline

US = 1_000_000
TRIPS = 126
LANES = (
    Lane("compute", LaneKind.COMPUTE),
    Lane("ICI x+", LaneKind.TRANSFER),
    Lane("ICI x−", LaneKind.TRANSFER),
    Lane("ICI y+", LaneKind.TRANSFER),
)


@dataclass
class _Slices:
    rows: list[tuple[int, int, int, int, int, int, int, int, int]] = field(default_factory=list)
    folded: tuple[int, ...] = ()
    """What `Folds` has of the one loop."""

    def add(
        self,
        instruction: int,
        lane: int,
        start: int,
        duration: int,
        category: Category,
        depth: int = 0,
        repeat: int = 1,
        iteration: int = 0,
        waits_for: int = -1,
    ) -> None:
        self.rows.append((instruction, lane, start, duration, category, depth, repeat, iteration, waits_for))

    def timeline(self, in_flight: Curve, memory: Curve) -> Timeline:
        table = np.array(self.rows, np.int64).reshape(-1, 9)
        table = table[np.lexsort((-table[:, 3], table[:, 2], table[:, 1]))]
        return Timeline(
            instruction=table[:, 0],
            lane=table[:, 1].astype(np.int16),
            start=table[:, 2],
            duration=table[:, 3],
            category=table[:, 4].astype(np.uint8),
            depth=table[:, 5].astype(np.uint8),
            repeat=table[:, 6],
            iteration=table[:, 7],
            waits_for=table[:, 8],
            lanes=LANES,
            in_flight=in_flight,
            memory=memory,
            makespan=int((table[:, 2] + table[:, 3]).max()) if len(table) else 0,
            folds=Folds(*(np.array([n], np.int64) for n in self.folded)) if self.folded else no_folds(),
        )


BEST = Plan("decompose,async-permute", "bottom-up")
"""The plan of a variant that decomposes."""


def variant(
    seed: int = 0,
    layers: int = 6,
    *,
    overlap: bool = False,
    loop: bool = True,
    name: str = "",
    plan: Plan | None = None,
    machine: MachineSpec | None = None,
) -> Variant:
    """A variant of the synthetic module with `layers` layers; ids are the same for every seed and overlap."""
    module = module_of(layers, loop=loop)
    timeline, exposed = timeline_of(module, seed, layers, overlap=overlap, loop=loop)
    return around(module, timeline, exposed, name=name, plan=plan, machine=machine)


def around(
    module: Module,
    timeline: Timeline,
    exposed: int,
    *,
    name: str = "",
    plan: Plan | None = None,
    machine: MachineSpec | None = None,
) -> Variant:
    """A variant that shows `timeline`."""
    graphs = graphs_of(module)
    program = Program(
        module=module,
        machine=Machine(
            load_chip("tpu-v4"), 8, Torus((2, 2, 2), (False,) * 3, Rate(45e9, 50e9), 1_000_000), np.arange(8)
        ),
        graphs=graphs,
        costs={key: _costs(graph) for key, graph in graphs.items()},
        buffers={key: _buffers(graph) for key, graph in graphs.items()},
        trips={9000: TRIPS},
    )
    plan = plan or Plan(passes="decompose,async-permute", scheduler="bottom-up")
    compute = timeline.duration[timeline.category < Category.PERMUTE].sum()
    transfer = timeline.duration[(timeline.category == 3) | (timeline.category == 4)].sum()
    return Variant(
        name=name or plan.scheduler,
        machine=machine or MachineSpec(),
        plan=plan,
        program=program,
        candidates=candidates_of(module),
        schedule=Schedule(
            plan.scheduler,
            plan.budget or Budget(total=4),
            {key: Order(np.arange(len(graph))) for key, graph in graphs.items()},
        ),
        timeline=timeline,
        metrics=Metrics(
            makespan=timeline.makespan,
            compute=int(compute),
            comm=int(transfer),
            exposed=exposed,
            transfer_union=int(transfer),
            peak_memory=timeline.memory.peak,
            max_in_flight=timeline.in_flight.peak,
            flops=10**12,
            flops_utilization=0.5,
            lower_bound=int(compute),
        ),
    )


def module_of(layers: int, *, loop: bool = True) -> Module:
    """all-gather → dot → add, twice a layer, then a while loop with a permute in its body."""
    entry = HloComputationProto(id=1, name="main")
    last = _add(entry, 1000, "param.0", "parameter", ())
    for layer in range(layers):
        for half in range(2):
            base = 2000 + layer * 100 + half * 10
            shard = _add(entry, base, f"param.{layer}.{half}", "parameter", ())
            start = _add(entry, base + 1, f"all-gather-start.{layer}.{half}", "all-gather-start", (shard,), layer)
            done = _add(entry, base + 2, f"all-gather-done.{layer}.{half}", "all-gather-done", (start,), layer)
            dot = _add(entry, base + 3, f"dot.{layer}.{half}", "dot", (last, done), layer)
            last = _add(entry, base + 4, f"add.{layer}.{half}", "add", (dot, dot), layer)
    module = HloModuleProto(name="jit_step", entry_computation_name="main", entry_computation_id=1)
    if loop:
        body = HloComputationProto(id=2, name="body")
        carried = _add(body, 10, "carried", "parameter", ())
        begin = _add(body, 11, "collective-permute-start.1", "collective-permute-start", (carried,))
        dot = _add(body, 12, "dot.body", "dot", (carried, carried))
        done = _add(body, 13, "collective-permute-done.1", "collective-permute-done", (begin,))
        body.root_id = _add(body, 14, "add.body", "add", (dot, done))
        condition = HloComputationProto(id=3, name="condition")
        state = _add(condition, 20, "state", "parameter", ())
        condition.root_id = _add(condition, 21, "less", "compare", (state, state))
        last = _add(entry, 9000, "while.1", "while", (last,), called=(2, 3))
        module.computations.extend((body, condition))
    entry.root_id = _add(entry, 9001, "transpose.result", "transpose", (last,))
    module.computations.append(entry)
    return Module(module, Header(num_partitions=8), source=Source("step.hlo", "0" * 64))


def _add(
    computation: HloComputationProto,
    number: int,
    name: str,
    opcode: str,
    operands: tuple[int, ...],
    layer: int | None = None,
    called: tuple[int, ...] = (),
) -> int:
    instruction = HloInstructionProto(id=number, name=name, opcode=opcode, operand_ids=operands)
    instruction.called_computation_ids.extend(called)
    instruction.shape.CopyFrom(shapes.array(hlo_pb2.BF16, (4096, 1024)))
    if layer is not None:
        instruction.metadata.op_name = f"jit(step)/layer_{layer}/{opcode}"
        instruction.metadata.source_file = "model.py"
        instruction.metadata.source_line = 40 + layer
    computation.instructions.append(instruction)
    return number


def timeline_of(module: Module, seed: int, layers: int, *, overlap: bool, loop: bool) -> tuple[Timeline, int]:
    """Slices of the synthetic module, and the time in which it waits."""
    random = np.random.default_rng(seed)
    slices = _Slices()
    transfers: list[tuple[int, int, int]] = []
    now = exposed = 0
    for layer in range(layers):
        for half in range(2):
            base = 2000 + layer * 100 + half * 10
            transfer = int(random.integers(150, 420)) * US
            begin = max(0, now - 300 * US) if overlap else now
            lane = 1 + (layer + half) % 2
            taken = max((t[1] for t in transfers if t[2] == lane), default=0)
            begin = max(begin, taken)
            slices.add(base + 1, lane, begin, transfer, Category.COLLECTIVE)
            transfers.append((begin, begin + transfer, lane))
            if begin + transfer > now:
                slices.add(base + 2, 0, now, begin + transfer - now, Category.EXPOSED, waits_for=base + 1)
                exposed += begin + transfer - now
                now = begin + transfer
            for offset, low, high, category in ((3, 250, 500, Category.EINSUM), (4, 20, 60, Category.ELEMENTWISE)):
                duration = int(random.integers(low, high)) * US
                slices.add(base + offset, 0, now, duration, category)
                now += duration
    if loop:
        now, waited = _loop(slices, transfers, now, overlap=overlap)
        exposed += waited
    slices.add(9001, 0, now, 80 * US, Category.COPY)
    return slices.timeline(_flights(transfers), _memory(now)), exposed


def _loop(slices: _Slices, transfers: list[tuple[int, int, int]], now: int, *, overlap: bool) -> tuple[int, int]:
    trips, shown, compute, transfer = TRIPS, 3, 60 * US, 75 * US
    each = compute + (transfer - compute if overlap else transfer) + 8 * US
    waited = each - compute - 8 * US
    slices.add(9000, 0, now, each * trips, Category.LOOP, repeat=trips)
    slices.folded = (9000, now + shown * each, (trips - shown) * each, trips - shown, each, shown, 1)
    for iteration in range(shown):
        at = now + iteration * each
        begin = at if overlap else at + compute
        slices.add(12, 0, at, compute, Category.EINSUM, 1, iteration=iteration)
        slices.add(11, 1, begin, transfer, Category.PERMUTE, 1, iteration=iteration)
        slices.add(13, 0, at + compute, waited, Category.EXPOSED, 1, iteration=iteration, waits_for=11)
        slices.add(14, 0, at + compute + waited, 8 * US, Category.ELEMENTWISE, 1, iteration=iteration)
        transfers.append((begin, begin + transfer, 1))
    return now + each * trips, waited * trips


def _flights(transfers: list[tuple[int, int, int]]) -> Curve:
    time = np.array([t for begin, end, _ in transfers for t in (begin, end)], np.int64)
    step = np.tile(np.array([1, -1], np.int64), len(transfers))
    times, at = np.unique(time, return_inverse=True)
    change = np.zeros(len(times), np.int64)
    np.add.at(change, at, step)
    return Curve(times, np.cumsum(change))


def _memory(end: int) -> Curve:
    time = np.linspace(0, max(1, end), 60).astype(np.int64)
    value = (1.2e9 + 6e8 * np.sin(np.linspace(0, 9, 60)) ** 2).astype(np.int64)
    return Curve(time, value)


def wide_timeline(count: int, seed: int = 0, lanes: int = 4) -> Timeline:
    """`count` slices without a module, for benchmarks and properties of drawing."""
    random = np.random.default_rng(seed)
    each = count // lanes
    parts = []
    for lane in range(lanes):
        duration = (random.lognormal(0.0, 1.2, each) * US).astype(np.int64) + 1
        gap = (random.exponential(0.2, each) * US).astype(np.int64)
        start = np.cumsum(duration + gap) - duration
        category = random.integers(0, 3, each) if lane == 0 else random.integers(3, 5, each)
        if lane == 0:
            category = np.where(random.random(each) < 0.05, int(Category.EXPOSED), category)
        parts.append((np.full(each, lane), start, duration, category))
    lanes_of, start, duration, category = (np.concatenate(column) for column in zip(*parts, strict=True))
    size = len(start)
    time = np.sort(random.integers(0, int(start.max()), max(2, size // 10)))
    return Timeline(
        instruction=np.arange(size) % 1000 + 1,
        lane=lanes_of.astype(np.int16),
        start=start,
        duration=duration,
        category=category.astype(np.uint8),
        depth=np.zeros(size, np.uint8),
        repeat=np.ones(size, np.int64),
        iteration=np.zeros(size, np.int64),
        waits_for=np.where(category == Category.EXPOSED, 1, -1),
        lanes=tuple(LANES[n % len(LANES)] for n in range(lanes)),
        in_flight=Curve(time, random.integers(0, 5, len(time))),
        memory=Curve(time, random.integers(10**9, 2 * 10**9, len(time))),
        makespan=int((start + duration).max()),
    )


def candidates_of(module: Module) -> tuple[Candidate, ...]:
    """One candidate a gather: alike in rows of one half, chosen where the number is even."""
    return tuple(_candidates(module))


def _candidates(module: Module) -> Iterator[Candidate]:
    gathers = [i for i in module.entry.instructions if i.opcode == "all-gather-start"]
    for number, gather in enumerate(gathers):
        half = number % 2
        comp, comm, ring = 400 * US, 300 * US, (350 if half == 0 else 900) * US
        gate = GateTerms(comp, comm, ring, 12 * US)
        yield Candidate(
            id=gather.name,
            kind="all-gather-einsum",
            collective=gather.id,
            einsums=(gather.id + 2,),
            group_size=8,
            case="non-contracting" if half == 0 else "contracting",
            chosen=half == 0,
            reason="saves 288 µs" if half == 0 else "transfer 900 µs + extra 12 µs > 700 µs together",
            gate=gate,
            variant="unrolled, ring=both" if half == 0 else "",
            row=f"half {half}",
        )


def _costs(graph: Graph) -> Costs:
    count = len(graph)
    zeros = np.zeros(count, np.int64)
    starts = np.array(["start" in opcode for opcode in graph.opcodes])
    return Costs(
        compute=np.where(np.array([o in ("dot", "add", "fusion") for o in graph.opcodes]), 300 * US, 0),
        transfer=np.where(starts, 250 * US, 0),
        kind=np.zeros(count, np.uint8),
        flops=np.where(np.array([o == "dot" for o in graph.opcodes]), 10**11, 0),
        hbm_bytes=np.full(count, 8 << 20),
        origin=np.full(count, int(Origin.MODEL), np.uint8),
        load_start=np.zeros(count + 1, np.int64),
        load_link=zeros[:0],
        load_bytes=zeros[:0],
    )


def _buffers(graph: Graph) -> Buffers:
    none = np.empty(0, np.int64)
    flags = np.empty(0, np.bool_)
    return Buffers(
        size=none,
        node=none,
        readers=Csr(np.zeros(1, np.int64), none),
        touches=Csr(np.zeros(len(graph) + 1, np.int64), none),
        live_in=flags,
        live_out=flags,
    )
