"""Prices the instructions of one module on one machine; equal instructions are priced once."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from engine.chips.budget import Kind
from engine.chips.machine import Machine
from engine.cost.collectives import NOTHING, PICO, Transfer, collective_time, pairs_of, permute_time
from engine.cost.compute import work_time
from engine.cost.costs import Costs, Origin
from engine.cost.kept_slices import kept_in_slices, run_as
from engine.cost.link_classes import Moving, tell_apart
from engine.cost.work import FREE, Reader
from engine.errors import UnsupportedError
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir import shapes
from engine.ir.flow import Flow
from engine.ir.graph import Graph
from engine.ir.graphs import SEQUENTIAL
from engine.ir.groups import device_groups
from engine.ir.module import Module

KINDS = MappingProxyType(
    {
        "collective-permute": Kind.PERMUTE,
        "all-gather": Kind.ALL_GATHER,
        "reduce-scatter": Kind.REDUCE_SCATTER,
        "all-reduce": Kind.ALL_REDUCE,
        "all-to-all": Kind.ALL_TO_ALL,
        "ragged-all-to-all": Kind.ALL_TO_ALL,
        "collective-broadcast": Kind.OTHER,
        "send": Kind.OTHER,
        "recv": Kind.OTHER,
    }
)
"""Kind of each opcode that moves data between devices, without ``-start`` and ``-done``."""
HOST = 5
"""Memory space of the host's memory in XLA's layouts."""
_COPIES = frozenset({"copy-start", "copy-done", "slice-start", "slice-done"})
_ASYNC = frozenset({"async-start", "async-update", "async-done"})


_Number = TypeVar("_Number", np.int64, np.uint8)


class _Price(NamedTuple):
    time: int
    flops: int
    hbm: int


class Pricing:
    """Prices by opcode and shapes; holds what it has priced."""

    def __init__(self, module: Module, machine: Machine) -> None:
        self._module = module
        self._machine = machine
        self._reader = Reader(module)
        self._instructions = module.instructions
        self.scattered = kept_in_slices(Flow(module))
        """Ids of all-reduces that are priced as reduce-scatters."""
        self._shapes: dict[int, bytes] = {}
        self._prices: dict[object, _Price] = {}
        self._transfers: dict[object, Transfer] = {}

    def tell_links_apart(self, graphs: Iterable[Graph]) -> Machine:
        """The machine, with classes of links for the transfers of `graphs`, by which prices are from now on."""
        moving: dict[object, Moving] = {}
        for graph in graphs:
            for opcode, id_ in zip(graph.opcodes, graph.ids.tolist(), strict=True):
                if opcode in FREE or opcode in SEQUENTIAL or opcode.endswith(("-done", "-update")):
                    continue
                wrapped = self.wrapped(self._instructions[id_])
                base = run_as(wrapped, self.scattered)
                if base in KINDS and base not in ("send", "recv"):
                    size = self.moved_bytes(wrapped, base)
                    key = base, size, _connection(wrapped)
                    if key not in moving:
                        moving[key] = self._moving(wrapped, base, size)
        self._machine = tell_apart(self._machine, moving.values())
        self._transfers.clear()
        return self._machine

    def costs(self, graph: Graph) -> Costs:
        """Modelled costs of one computation."""
        count = len(graph)
        compute, transfer = [0] * count, [0] * count
        kinds, origin = [0] * count, [0] * count
        flops, hbm = [0] * count, [0] * count
        starts, links, loads = [0], list[int](), list[int]()
        for node, (opcode, id_) in enumerate(zip(graph.opcodes, graph.ids.tolist(), strict=True)):
            if opcode not in FREE and opcode not in SEQUENTIAL:
                instruction = self._instructions[id_]
                wrapped = self.wrapped(instruction)
                kind = _kind(opcode, run_as(wrapped, self.scattered))
                kinds[node] = kind
                if not opcode.endswith(("-done", "-update")):
                    origin[node] = Origin.MODEL
                    if kind == Kind.COMPUTE:
                        compute[node], flops[node], hbm[node] = self._compute(instruction)
                    else:
                        moved, hbm[node] = self._transfer(instruction, wrapped, kind)
                        transfer[node] = moved.time
                        links.extend(moved.links)
                        loads.extend(moved.bytes)
            starts.append(len(links))
        return Costs(
            compute=_frozen(compute, np.int64),
            transfer=_frozen(transfer, np.int64),
            kind=_frozen(kinds, np.uint8),
            flops=_frozen(flops, np.int64),
            hbm_bytes=_frozen(hbm, np.int64),
            origin=_frozen(origin, np.uint8),
            load_start=_frozen(starts, np.int64),
            load_link=_frozen(links, np.int64),
            load_bytes=_frozen(loads, np.int64),
        )

    def compute_time(self, instruction: HloInstructionProto) -> int:
        """Picoseconds of one execution on the compute stream."""
        return self._compute(instruction).time

    def _compute(self, instruction: HloInstructionProto) -> _Price:
        key = self._signature(instruction)
        found = self._prices.get(key)
        if found is None:
            work = self._reader.work(instruction)
            found = _Price(work_time(work, self._machine.chip), round(work.flops), round(work.hbm))
            self._prices[key] = found
        return found

    def _signature(self, instruction: HloInstructionProto) -> object:
        """Equal for instructions that cost the same: opcode, shapes with layouts, and what else decides."""
        opcode = instruction.opcode
        key = opcode, self._shape(instruction.id), *map(self._shape, instruction.operand_ids)
        if opcode == "fusion":
            return *key, self._reader.first_alike(instruction.called_computation_ids[0])
        if opcode in ("dot", "ragged-dot", "scaled-dot"):
            numbers = instruction.dot_dimension_numbers, instruction.ragged_dot_dimension_numbers
            precision = instruction.precision_config
            return *key, *(field.SerializeToString() for field in (*numbers, precision))
        if opcode in ("convolution", "custom-call"):
            return instruction.id
        return key

    def _shape(self, id_: int) -> bytes:
        found = self._shapes.get(id_)
        if found is None:
            found = self._shapes[id_] = self._instructions[id_].shape.SerializeToString()
        return found

    def wrapped(self, instruction: HloInstructionProto) -> HloInstructionProto:
        """What a generic asynchronous instruction wraps; any other instruction itself."""
        while instruction.opcode in _ASYNC:
            if instruction.opcode == "async-start":
                called = self._module.computations[instruction.called_computation_ids[0]]
                return self._instructions[called.root_id]
            instruction = self._instructions[instruction.operand_ids[0]]
        return instruction

    def _transfer(
        self, instruction: HloInstructionProto, wrapped: HloInstructionProto, kind: Kind
    ) -> tuple[Transfer, int]:
        """A transfer and the bytes it moves in HBM; `wrapped` is the collective itself."""
        base = run_as(wrapped, self.scattered)
        if kind == Kind.COPY or base not in KINDS:
            return self._local(instruction, base)
        size = self.moved_bytes(wrapped, base)
        if base in ("send", "recv"):
            return self._point_to_point(size, base)
        key = base, size, _connection(wrapped)
        found = self._transfers.get(key)
        if found is None:
            found = self._transfers[key] = self._price_transfer(wrapped, base, size)
        read, written = size, size
        if base == "all-gather":
            written = max(size, shapes.byte_count(wrapped.shape) - (size if wrapped.shape.tuple_shapes else 0))
        elif base == "reduce-scatter":
            written = shapes.byte_count(wrapped.shape)
            if wrapped.id in self.scattered:
                written //= max(map(len, device_groups(wrapped, self._module.header)))
        return found, read + written

    def moved_bytes(self, collective: HloInstructionProto, base: str) -> int:
        """Bytes that a device gives to a collective whose opcode, without its start, is `base`."""
        operands = [self._instructions[o].shape for o in collective.operand_ids]
        return sum(shapes.byte_count(shape) for shape in (operands[:1] if base == "ragged-all-to-all" else operands))

    def _moving(self, collective: HloInstructionProto, base: str, size: int) -> Moving:
        """Who sends to whom, and how much; of a permute, whose way does not depend on it, no bytes."""
        if base == "collective-permute":
            return base, pairs_of(collective, self._module.header), 0
        members = device_groups(collective, self._module.header)
        return base, members, size * max(map(len, members)) if base == "all-gather" else size

    def _price_transfer(self, collective: HloInstructionProto, base: str, size: int) -> Transfer:
        base, members, whole = self._moving(collective, base, size)
        if base == "collective-permute":
            return permute_time(self._machine, members, size)
        return collective_time(self._machine, base, members, whole)

    def _local(self, instruction: HloInstructionProto, base: str) -> tuple[Transfer, int]:
        """A copy between memories of one device, or another asynchronous computation, beside the compute stream."""
        if base in ("copy", "slice", "dynamic-slice", "dynamic-update-slice"):
            operand = self._instructions[instruction.operand_ids[1 if "update" in base else 0]].shape
            done = [s for s in instruction.shape.tuple_shapes if shapes.is_array(s)][:1] or [operand]
            moved = min(shapes.byte_count(operand), shapes.byte_count(done[0]))
            spaces = [shapes.memory_space(shape) for shape in (operand, done[0])]
            rate = self._machine.chip.host_bandwidth if HOST in spaces else self._machine.copy_bandwidth
            return Transfer(ceil(moved / rate * PICO), (), ()), moved * (spaces.count(0) or 1)
        wrapped = self.wrapped(instruction)
        if wrapped is instruction:
            return NOTHING, 0
        work = self._reader.work(wrapped)
        return Transfer(work_time(work, self._machine.chip), (), ()), round(work.hbm)

    def _point_to_point(self, size: int, base: str) -> tuple[Transfer, int]:
        """A send goes one hop over the first link, for the text need not say where to; a receive waits for it."""
        if base == "recv" or size == 0 or not self._machine.links:
            return NOTHING, 0
        wire = size / self._machine.links[0].rate.usable * PICO
        return Transfer(ceil(self._machine.chip.network.launch + wire), (0,), (size,)), size


def _kind(opcode: str, base: str) -> Kind:
    """Kind of an instruction by its opcode and what it is run as, or what it wraps is."""
    if opcode in _COPIES:
        return Kind.COPY
    if base in KINDS:
        return KINDS[base]
    if opcode in _ASYNC:
        return Kind.COPY if base in ("copy", "slice", "dynamic-slice", "dynamic-update-slice") else Kind.OTHER
    return Kind.COMPUTE


def _connection(collective: HloInstructionProto) -> object:
    """What decides who talks to whom, cheap to compare."""
    if collective.opcode.startswith("collective-permute"):
        pairs = tuple([(p.source, p.target) for p in collective.source_target_pairs])
        return pairs, bool(collective.channel_id)
    form = collective.WhichOneof("replica_group_list")
    written = getattr(collective, form).SerializeToString(deterministic=True) if form else b""
    listed = tuple([tuple(g.replica_ids) for g in collective.replica_groups])
    return written, listed, bool(collective.channel_id), collective.use_global_device_ids


def _frozen(values: list[int], dtype: type[_Number]) -> npt.NDArray[_Number]:
    try:
        array: npt.NDArray[_Number] = np.array(values, dtype)
    except OverflowError:
        raise UnsupportedError(
            "the module has arrays so large that their cost does not fit 64 bits of picoseconds, bytes or operations"
        ) from None
    array.setflags(write=False)
    return array
