"""Programs drawn up node by node instead of read from HLO: for benchmarks, studies and tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from engine.chips.budget import Kind
from engine.chips.machine import Machine
from engine.cost.costs import Costs, Origin
from engine.cost.program import Program
from engine.hlo.hlo_pb2 import BF16, HloModuleProto
from engine.ir.buffers import Buffers
from engine.ir.graph import Csr, Ints
from engine.ir.graphs import graphs_of
from engine.ir.module import Module

NO_COPIES: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Node:
    opcode: str
    operands: tuple[int, ...]
    compute: int = 0
    transfer: int = 0
    kind: Kind = Kind.COMPUTE
    loads: tuple[tuple[int, int], ...] = ()
    hbm: int = 0
    flops: int = 0
    size: int = 0
    called: tuple[int, ...] = ()
    trips: int = 0
    weights: tuple[int, ...] = ()


@dataclass
class Sketch:
    """One computation to be. Every method adds a node and returns its number; times are picoseconds."""

    nodes: list[_Node] = field(default_factory=list)

    def parameter(self, size: int = 0) -> int:
        """An argument of `size` bytes."""
        return self._add(_Node("parameter", (), size=size))

    def compute(
        self, time: int, *operands: int, hbm: int = 0, flops: int = 0, size: int = 0, einsum: bool = False
    ) -> int:
        """An operation that moves `hbm` bytes and leaves `size` bytes."""
        opcode = "dot" if einsum else "add"
        return self._add(_Node(opcode, operands, time, hbm=hbm, flops=flops, size=size))

    def start(
        self, time: int, *operands: int, loads: Mapping[int, int] | None = None, size: int = 0, hbm: int = 0
    ) -> int:
        """Begin a permute that takes `time` when alone and puts `loads` (link class → bytes) on the network."""
        entries = tuple(sorted((loads or {}).items()))
        return self._add(_Node("collective-permute-start", operands, 0, time, Kind.PERMUTE, entries, hbm, size=size))

    def done(self, start: int) -> int:
        """Wait for the permute that `start` began."""
        return self._add(_Node("collective-permute-done", (start,), kind=Kind.PERMUTE))

    def collective(self, time: int, *operands: int, loads: Mapping[int, int] | None = None, size: int = 0) -> int:
        """A blocking all-gather."""
        entries = tuple(sorted((loads or {}).items()))
        return self._add(_Node("all-gather", operands, 0, time, Kind.ALL_GATHER, entries, size=size))

    def loop(self, body: int, condition: int, trips: int, *operands: int) -> int:
        """A while that runs the computations with these numbers."""
        return self._add(_Node("while", operands, called=(body, condition), trips=trips))

    def call(self, callee: int, *operands: int) -> int:
        return self._add(_Node("call", operands, called=(callee,)))

    def conditional(self, branches: Iterable[int], *operands: int, weights: tuple[int, ...] = ()) -> int:
        """One of several computations; `weights` say how often each, equally where there are none."""
        return self._add(_Node("conditional", operands, called=tuple(branches), weights=weights))

    def _add(self, node: _Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1


def draw_program(random: Random, machine: Machine, *, computations: int = 3, nodes: int = 12) -> Program:
    """A program of any shape: up to `computations` that call earlier ones, each of up to `nodes` nodes and more."""
    sketches = [Sketch()]
    sketches[0].compute(random.choice((0, 1_000)))
    count = random.randint(1, computations)
    sketches.extend(_draw_sketch(random, machine, k, random.randint(0, nodes)) for k in range(1, count + 1))
    return assemble(sketches, machine, {k: random.choice((0, 700)) for k in range(count)})


def _draw_sketch(random: Random, machine: Machine, number: int, nodes: int) -> Sketch:
    sketch = Sketch()
    sketch.parameter(random.randint(0, 100))
    under_way: list[int] = []
    for _ in range(nodes):
        operands = random.sample(range(len(sketch.nodes)), k=min(len(sketch.nodes), random.randint(0, 2)))
        operands = [node for node in operands if not sketch.nodes[node].opcode.endswith("-start")]
        took = random.choice((0, 1, 999, 1_000_000, random.randint(1, 50_000_000)))
        link = random.randrange(len(machine.links))
        loads = {link: int(random.choice((0.1, 1.0)) * machine.links[link].rate.usable * took * 1e-12)}
        size = random.randint(0, 100)
        match random.choice(("compute", "compute", "start", "done", "collective", "call", "loop", "conditional")):
            case "start":
                under_way.append(sketch.start(took, *operands, loads=loads, size=size))
            case "done" if under_way:
                sketch.done(under_way.pop(random.randrange(len(under_way))))
            case "collective":
                sketch.collective(took, *operands, loads=loads, size=size)
            case "call":
                sketch.call(random.randrange(number), *operands)
            case "loop":
                sketch.loop(random.randrange(number), 0, random.choice((0, 1, 2, 5)), *operands)
            case "conditional":
                weights = random.choice(((), (1, 3), (0, 1)))
                sketch.conditional((0, random.randrange(number)), *operands, weights=weights)
            case _:
                hbm = int(random.random() * 2 * machine.hbm_bandwidth * took * 1e-12)
                sketch.compute(
                    took, *operands, hbm=hbm, flops=took, size=size, einsum=bool(operands) and random.random() < 0.5
                )
    for start in under_way:
        sketch.done(start)
    return sketch


def assemble(sketches: Iterable[Sketch], machine: Machine, copies: Mapping[int, int] = NO_COPIES) -> Program:
    """A program of computations numbered as given, the last one being the entry; the last node is the root.

    `copies` are picoseconds of loop-carried copies by number of the loop body.
    """
    proto, trips, weights, costs, buffers = HloModuleProto(name="sketch"), {}, {}, {}, {}
    first = 1
    for number, sketch in enumerate(sketches):
        nodes = sketch.nodes
        computation = proto.computations.add(id=number, name=f"computation.{number}", root_id=first + len(nodes) - 1)
        for offset, node in enumerate(nodes):
            instruction = computation.instructions.add(id=first + offset, name=f"{node.opcode}.{first + offset}")
            instruction.opcode = node.opcode
            instruction.shape.element_type = BF16
            instruction.operand_ids.extend(first + operand for operand in node.operands)
            instruction.called_computation_ids.extend(node.called)
            if node.opcode == "while":
                trips[first + offset] = node.trips
            if node.weights:
                weights[first + offset] = node.weights
        costs[number] = _costs(nodes)
        buffers[number] = _buffers(nodes)
        proto.entry_computation_id = number
        first += len(nodes)
    module = Module(proto)
    graphs = graphs_of(module)
    return Program(
        module=module,
        machine=machine,
        graphs=graphs,
        costs={k: costs[k] for k in graphs},
        buffers={k: buffers[k] for k in graphs},
        trips=trips,
        copies=copies,
        weights=weights,
    )


def _costs(nodes: list[_Node]) -> Costs:
    entries = [entry for node in nodes for entry in node.loads]
    return Costs(
        compute=_column(node.compute for node in nodes),
        transfer=_column(node.transfer for node in nodes),
        kind=np.array([node.kind for node in nodes], dtype=np.uint8),
        flops=_column(node.flops for node in nodes),
        hbm_bytes=_column(node.hbm for node in nodes),
        origin=np.full(len(nodes), Origin.MODEL, dtype=np.uint8),
        load_start=_starts(len(node.loads) for node in nodes),
        load_link=_column(link for link, _ in entries),
        load_bytes=_column(size for _, size in entries),
    )


def _buffers(nodes: list[_Node]) -> Buffers:
    """One buffer for each node that has a size, read by its users; a start's lives until its done is read."""
    owner = [k for k, node in enumerate(nodes) if node.size]
    number = {node: k for k, node in enumerate(owner)}
    readers: list[set[int]] = [set() for _ in owner]
    touches: list[set[int]] = [{number[k]} if k in number else set() for k in range(len(nodes))]
    forwarded: dict[int, int] = {}
    for k, node in enumerate(nodes):
        for operand in node.operands:
            source = forwarded.get(operand, operand)
            if node.opcode.endswith("-done"):
                forwarded[k] = source
            if source in number:
                readers[number[source]].add(k)
                touches[k].add(number[source])
    root = forwarded.get(len(nodes) - 1, len(nodes) - 1)
    return Buffers(
        size=_column(nodes[k].size for k in owner),
        node=_column(owner),
        readers=_csr(readers),
        touches=_csr(touches),
        live_in=np.array([nodes[k].opcode == "parameter" for k in owner], dtype=np.bool_),
        live_out=np.array([k == root for k in owner], dtype=np.bool_),
    )


def _csr(rows: list[set[int]]) -> Csr:
    return Csr(_starts(map(len, rows)), _column(item for row in rows for item in sorted(row)))


def _starts(lengths: Iterable[int]) -> Ints:
    return _column(accumulate(lengths, initial=0))


def _column(values: Iterable[int]) -> Ints:
    column: npt.NDArray[np.int64] = np.array(list(values), dtype=np.int64)
    column.flags.writeable = False
    return column
