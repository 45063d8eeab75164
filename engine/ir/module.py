"""A loaded HLO module: XLA's proto plus what the proto does not hold.

A `Module` is a value. Nobody changes the proto of one that exists: passes edit a copy (`engine.ir.edit`) and return a
new Module. Instructions are known by their proto id, which stays the same through passes that do not touch them;
`origins` says which instructions of the module as loaded a new one came from, and no id is given again that a removed
one had (`gone`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from types import MappingProxyType

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto
from engine.hlo.wire import Places, places_in

_NONE_GONE: Mapping[int, int] = MappingProxyType({})
_NO_ORIGINS: Mapping[int, tuple[int, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Header:
    """Fields of the text header that HloModuleProto does not hold (they live in XLA's HloModuleConfig)."""

    num_partitions: int = 1
    replica_count: int = 1
    rest: tuple[tuple[str, str], ...] = ()
    """Other header fields the proto loses (``allow_spmd_sharding_propagation_to_…``), as printed, in order."""

    @property
    def devices(self) -> int:
        """How many devices run the module."""
        return self.num_partitions * self.replica_count


@dataclass(frozen=True, slots=True)
class Source:
    """Where a module was read from."""

    path: str
    """As the user gave it; ``-`` for standard input."""
    sha256: str
    """Of the bytes as read, before decompression."""


@dataclass(frozen=True, slots=True)
class JobMesh:
    """The mesh of the job that a module belongs to, as the job names it."""

    axes: tuple[tuple[str, int], ...]
    """Name and size of each axis, slowest first."""
    origin: str
    """The file that says so."""


@dataclass(frozen=True, eq=False)
class Module:
    """One HLO module. See the module docstring for what may be relied on."""

    proto: HloModuleProto
    header: Header = Header()
    notes: tuple[str, ...] = ()
    """What reading inferred or left out, each one sentence for the user."""
    origins: Mapping[int, tuple[int, ...]] = field(default_factory=lambda: _NO_ORIGINS)
    """Instruction id → ids of the module as loaded that it came from. An id that is missing is its own origin."""
    source: Source | None = None
    elided: frozenset[int] = frozenset()
    """Ids of constants that the text left out (``constant({...})``): what the proto holds for them means nothing."""
    job_mesh: JobMesh | None = None
    """None where nothing beside the module says it."""
    gone: Mapping[int, int] = field(default_factory=lambda: _NONE_GONE)
    """Id of each computation that passes removed instructions of, be it there or not → the last local id removed: an
    id stands for one instruction through all passes, since selections and origins outlive what they are about."""

    @property
    def name(self) -> str:
        return self.proto.name

    @cached_property
    def computations(self) -> Mapping[int, HloComputationProto]:
        """By id, in the proto's order (callees before callers)."""
        return {c.id: c for c in self.proto.computations}

    @property
    def entry(self) -> HloComputationProto:
        return self.computations[self.proto.entry_computation_id]

    @cached_property
    def instructions(self) -> Mapping[int, HloInstructionProto]:
        """Every instruction of every computation, by id."""
        return {i.id: i for c in self.proto.computations for i in c.instructions}

    @cached_property
    def by_opcode(self) -> Mapping[str, tuple[HloInstructionProto, ...]]:
        """Every instruction, by opcode, in the proto's order: for who looks for few among many."""
        found: dict[str, list[HloInstructionProto]] = {}
        for computation in self.proto.computations:
            for instruction in computation.instructions:
                found.setdefault(instruction.opcode, []).append(instruction)
        return {opcode: tuple(instructions) for opcode, instructions in found.items()}

    @cached_property
    def computation_of(self) -> Mapping[int, int]:
        """Instruction id → id of the computation that holds it."""
        counted = (repeat(c.id, len(c.instructions)) for c in self.proto.computations)
        return dict(zip(self.instructions, chain.from_iterable(counted), strict=True))

    @cached_property
    def by_name(self) -> Mapping[str, HloInstructionProto]:
        """Every instruction by name; names are unique within a module."""
        return {i.name: i for c in self.proto.computations for i in c.instructions}

    @cached_property
    def callees(self) -> frozenset[int]:
        """Ids of the computations that a call, or a conditional as one of its branches, runs."""
        calls = (i for opcode in ("call", "conditional") for i in self.by_opcode.get(opcode, ()))
        return frozenset(id_ for call in calls for id_ in call.called_computation_ids)

    @property
    def is_scheduled(self) -> bool:
        """Whether the module carries an order of its own (``is_scheduled=true``)."""
        return len(self.proto.schedule.sequences) > 0

    def origins_of(self, instruction: int) -> tuple[int, ...]:
        """Ids, in the module as loaded, that `instruction` came from; itself if it was there."""
        return self.origins.get(instruction, (instruction,))

    def computation_at(self, computation: int) -> HloComputationProto:
        """The computation of an id, for who looks into few of them."""
        return self.computations[computation]

    def instruction_at(self, computation: int, position: int) -> HloInstructionProto:
        """The instruction at a position of a computation's list."""
        return self.computations[computation].instructions[position]

    def __reduce__(self) -> tuple[object, ...]:
        """For sending a module to a worker process: what can be computed again is left out."""
        kept = (self.header, self.notes, dict(self.origins), self.source, self.elided, self.job_mesh, dict(self.gone))
        proto = self.__dict__.get("serialised") or self.proto.SerializeToString()
        places = self.__dict__.get("places") or places_in(proto)
        return _restore, (proto, places, *kept)

    def with_notes(self, *notes: str) -> Module:
        return replace(self, notes=self.notes + notes)


def _restore(
    proto: bytes,
    places: Places,
    header: Header,
    notes: tuple[str, ...],
    origins: Mapping[int, tuple[int, ...]],
    source: Source | None,
    elided: frozenset[int],
    job_mesh: JobMesh | None,
    gone: Mapping[int, int],
) -> Module:
    sent = _Sent.__new__(_Sent)
    sent.__dict__.update(
        serialised=proto,
        places=places,
        header=header,
        notes=notes,
        origins=MappingProxyType(origins),
        source=source,
        elided=elided,
        job_mesh=job_mesh,
        gone=MappingProxyType(gone),
    )
    return sent


class _Sent(Module):
    """A module as it came from another process: parsed when it is first looked into, and sent on as it came.

    The window holds the modules of many variants and looks into few of them; where it needs single instructions it
    reads these, since parsing all of a large module would hold it up.
    """

    def computation_at(self, computation: int) -> HloComputationProto:
        if "proto" in self.__dict__:
            return super().computation_at(computation)
        places: Places = self.__dict__["places"]
        return places.read_computation(self.__dict__["serialised"], computation)

    def instruction_at(self, computation: int, position: int) -> HloInstructionProto:
        if "proto" in self.__dict__:
            return super().instruction_at(computation, position)
        places: Places = self.__dict__["places"]
        return places.read(self.__dict__["serialised"], computation, position)

    @cached_property
    def proto(self) -> HloModuleProto:
        return HloModuleProto.FromString(self.__dict__["serialised"])
