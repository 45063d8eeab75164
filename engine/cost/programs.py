"""Prices every instruction of what a module executes, and puts the result together as a `Program`."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from engine.chips.budget import Kind
from engine.chips.machine import Machine
from engine.cost.collectives import NOTHING, Transfer, collective_time, pairs_of, permute_time
from engine.cost.compute import PICO, work_time
from engine.cost.costs import Costs, Origin
from engine.cost.program import Program
from engine.cost.work import FREE, Reader
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir import shapes
from engine.ir.buffering import buffers_of
from engine.ir.graph import Graph
from engine.ir.graphs import SEQUENTIAL, graphs_of
from engine.ir.groups import device_groups
from engine.ir.module import Module
from engine.ir.trips import trips_of

KINDS: dict[str, Kind] = {
    "collective-permute": Kind.PERMUTE,
    "all-gather": Kind.ALL_GATHER,
    "reduce-scatter": Kind.REDUCE_SCATTER,
    "all-reduce": Kind.ALL_REDUCE,
    "all-to-all": Kind.ALL_TO_ALL,
    "ragged-all-to-all": Kind.ALL_TO_ALL,
    "collective-broadcast": Kind.OTHER,
    "copy-start": Kind.COPY,
    "copy-done": Kind.COPY,
    "slice-start": Kind.COPY,
    "slice-done": Kind.COPY,
    "send": Kind.OTHER,
    "send-done": Kind.OTHER,
    "recv": Kind.OTHER,
    "recv-done": Kind.OTHER,
}
_COLLECTIVES = tuple(name for name, kind in KINDS.items() if Kind.PERMUTE <= kind <= Kind.ALL_TO_ALL)
_ASYNC = frozenset({"async-start", "async-update", "async-done"})


def prepare(module: Module, machine: Machine, imports: Sequence[object] = ()) -> Program:
    """Graphs, costs, buffers and trip counts of everything `module` executes on `machine`.

    `imports` replace modelled costs, later ones over earlier ones of the same origin.
    """
    trips, notes = trips_of(module)
    graphs = graphs_of(module)
    pricing = _Pricing(module, machine)
    return Program(
        module=module,
        machine=machine,
        graphs=graphs,
        costs={id_: pricing.costs(graph) for id_, graph in graphs.items()},
        buffers={id_: buffers_of(module, graph) for id_, graph in graphs.items()},
        trips=trips,
        notes=(*machine.notes, *notes),
    )


class _Pricing:
    def __init__(self, module: Module, machine: Machine) -> None:
        self._module = module
        self._machine = machine
        self._reader = Reader(module)
        self._instructions = module.instructions

    def costs(self, graph: Graph) -> Costs:
        count = len(graph)
        compute, transfer = np.zeros(count, np.int64), np.zeros(count, np.int64)
        kind, origin = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
        flops, hbm = np.zeros(count, np.int64), np.zeros(count, np.int64)
        starts = np.zeros(count + 1, np.int64)
        links: list[int] = []
        loads: list[int] = []
        for node, (opcode, id_) in enumerate(zip(graph.opcodes, graph.ids, strict=True)):
            starts[node + 1] = len(links)
            if opcode in FREE or opcode in SEQUENTIAL:
                continue
            instruction = self._instructions[int(id_)]
            collective = self._wrapped(instruction)
            base = collective.opcode.removesuffix("-start").removesuffix("-done")
            kind[node] = KINDS.get(opcode, KINDS.get(base, Kind.OTHER if opcode in _ASYNC else Kind.COMPUTE))
            if opcode.endswith(("-done", "-update")):
                continue
            origin[node] = Origin.MODEL
            if base in _COLLECTIVES:
                found = self.transfer(collective)
                transfer[node] = found.time
                hbm[node] = _moved(collective)
                links.extend(found.links)
                loads.extend(found.bytes)
                starts[node + 1] = len(links)
            elif kind[node] != Kind.COMPUTE:
                hbm[node] = 2 * shapes.byte_count(self._instructions[instruction.operand_ids[0]].shape)
                transfer[node] = ceil(hbm[node] / self._machine.hbm_bandwidth * PICO)
            else:
                work = self._reader.work(instruction)
                compute[node] = work_time(work, self._machine.chip)
                flops[node], hbm[node] = int(work.flops), int(work.hbm)
        columns = (
            compute,
            transfer,
            kind,
            flops,
            hbm,
            origin,
            starts,
            np.array(links, np.int64),
            np.array(loads, np.int64),
        )
        for column in columns:
            column.setflags(write=False)
        return Costs(*columns)

    def _wrapped(self, instruction: HloInstructionProto) -> HloInstructionProto:
        """What an asynchronous instruction wraps, as far as it is in a computation of its own."""
        if instruction.opcode == "async-start":
            called = self._module.computations[instruction.called_computation_ids[0]]
            return self._instructions[called.root_id]
        if instruction.opcode in _ASYNC:
            return self._wrapped(self._instructions[instruction.operand_ids[0]])
        return instruction

    def transfer(self, collective: HloInstructionProto) -> Transfer:
        base = collective.opcode.removesuffix("-start")
        operands = sum(shapes.byte_count(self._instructions[o].shape) for o in collective.operand_ids)
        if base == "collective-permute":
            return permute_time(self._machine, pairs_of(collective, self._module.header), operands)
        groups = device_groups(collective, self._module.header)
        if not groups:
            return NOTHING
        size = operands * len(groups[0]) if base == "all-gather" else operands
        return collective_time(self._machine, base, groups, size)


def _moved(collective: HloInstructionProto) -> int:
    """Bytes a collective reads and writes in HBM: once its result, about."""
    return 2 * shapes.byte_count(collective.shape)
