"""Times given for the module as loaded, carried to what passes make of it.

A time that replaces the model's for an einsum says nothing by name about the partial einsums that the einsum becomes:
priced by the model alone they would be set against a whole that is not, and the difference be taken for a gain. So what
is made of one such einsum, and of no other, takes the model's time × given / modelled time of the whole; a collective
that was only made asynchronous keeps what was given. For everything else the variants are not priced alike, which is
said (`UsedCosts.priced`, `engine.session.variant`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from engine.chips.budget import Kind
from engine.chips.machine import Machine
from engine.cost.costs import Costs
from engine.cost.imports import ImportedCosts, compiler_estimates
from engine.cost.pricing import Pricing
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.graph import Graph
from engine.ir.graphs import SEQUENTIAL, graphs_of
from engine.ir.module import Module
from engine.ir.opcodes import MATMULS


@dataclass(frozen=True, slots=True)
class _Carried:
    """What one node has from a loaded instruction."""

    whole: int
    """Id of that one."""
    time: int
    """Picoseconds."""
    moves: bool
    """Whether it is the transfer's, not the compute stream's."""
    scaled: bool


class Carrying(NamedTuple):
    """What came of the times of the module as loaded in one computation. Ids are of that module."""

    costs: Costs
    kept: frozenset[int]
    """Instructions whose times something has as they are."""
    scaled: frozenset[int]
    """Einsums whose times are shared out over what was made of them."""
    mixed: frozenset[int]
    """Einsums that something was made of together with others: that stays the model's."""


class Loaded:
    """The module as loaded, with the times that imports, and the compiler's estimates in it, give its instructions."""

    def __init__(self, module: Module, machine: Machine, imports: Sequence[ImportedCosts]) -> None:
        self.module = module
        self.estimates = compiler_estimates(module, machine.chip)
        """What the module carries itself; None where it carries none."""
        self._machine = machine
        own = (self.estimates,) if self.estimates is not None else ()
        self.given_by = tuple(sorted((*own, *imports), key=lambda found: found.origin))
        """Where times come from, lowest rank first."""

    @cached_property
    def executed(self) -> Mapping[str, str]:
        """Name → opcode of what runs as an instruction of its own."""
        graphs = graphs_of(self.module).values()
        return {name: opcode for g in graphs for name, opcode in zip(g.names, g.opcodes, strict=True)}

    @cached_property
    def given(self) -> Mapping[int, tuple[ImportedCosts, int]]:
        """Id of an instruction → the import whose time for it wins, and the time in picoseconds."""
        return {
            self.module.by_name[name].id: (found, time)
            for found in self.given_by
            for name, time in found.times.items()
            if self.executed.get(name, "while") not in SEQUENTIAL
        }

    def names_of(self, ids: Iterable[int], found: ImportedCosts) -> frozenset[str]:
        """Names of those of `ids` whose time is from `found`."""
        return frozenset(
            self.module.instructions[id_].name for id_ in ids if id_ in self.given and self.given[id_][0] is found
        )

    def carry(self, module: Module, graph: Graph, costs: Costs, pricing: Pricing, named: frozenset[str]) -> Carrying:
        """`costs` with the times of what passes made of loaded instructions, but for those `named` by an import."""
        found: dict[int, _Carried] = {}
        mixed: set[int] = set()
        for node, (name, id_) in enumerate(zip(graph.names, graph.ids.tolist(), strict=True)):
            if name in named or module.origins_of(id_) == (id_,) or graph.opcodes[node] in SEQUENTIAL:
                continue
            instruction = module.instructions[id_]
            if costs.kind[node] == Kind.COMPUTE:
                wholes = self._wholes(module, _einsums(module, instruction))
                carried = self._scaled(wholes, int(costs.compute[node]))
            else:
                wrapped = pricing.wrapped(instruction)
                wholes = {*module.origins_of(wrapped.id), *module.origins_of(id_)}
                carried = self._moved(wholes, wrapped, pricing) if not _ends(graph.opcodes[node]) else None
            if carried is not None:
                found[node] = carried
            elif len(wholes) > 1 and costs.kind[node] == Kind.COMPUTE:
                mixed |= wholes & self.given.keys()
        kept, scaled = (frozenset(c.whole for c in found.values() if c.scaled is which) for which in (False, True))
        return Carrying(self._with(costs, found), kept, scaled, frozenset(mixed))

    def _with(self, costs: Costs, found: Mapping[int, _Carried]) -> Costs:
        if not found:
            return costs
        compute, transfer, origin = costs.compute.copy(), costs.transfer.copy(), costs.origin.copy()
        for node, carried in found.items():
            (transfer if carried.moves else compute)[node] = carried.time
            origin[node] = self.given[carried.whole][0].origin
        for column in (compute, transfer, origin):
            column.setflags(write=False)
        scaled = frozenset(node for node, carried in found.items() if carried.scaled)
        return replace(costs, compute=compute, transfer=transfer, origin=origin, scaled=scaled)

    def _scaled(self, wholes: set[int], modelled: int) -> _Carried | None:
        """The time of a node that holds einsums, all made of `wholes`."""
        if len(wholes) != 1 or not wholes <= self.given.keys():
            return None
        (whole,) = wholes
        of_whole = self._pricing.compute_time(self.module.instructions[whole])
        if not of_whole:
            return None
        return _Carried(whole, round(modelled * self.given[whole][1] / of_whole), moves=False, scaled=True)

    def _moved(self, wholes: set[int], wrapped: HloInstructionProto, pricing: Pricing) -> _Carried | None:
        """The time of a start, or of a collective written anew, that moves what one loaded collective moved."""
        if len(wholes) != 1 or not wholes <= self.given.keys():
            return None
        (whole,) = wholes
        loaded = self._pricing.wrapped(self.module.instructions[whole])
        base = loaded.opcode.removesuffix("-start")
        if wrapped.opcode.removesuffix("-start") != base:
            return None
        if pricing.moved_bytes(wrapped, base) != self._pricing.moved_bytes(loaded, base):
            return None
        return _Carried(whole, self.given[whole][1], moves=True, scaled=False)

    def _wholes(self, module: Module, einsums: Iterable[HloInstructionProto]) -> set[int]:
        """Ids of the loaded instructions with einsums that `einsums` were made of."""
        owners = {self._owner.get(o, o) for einsum in einsums for o in module.origins_of(einsum.id)}
        return {o for o in owners if o in self._holders}

    @cached_property
    def _pricing(self) -> Pricing:
        return Pricing(self.module, self._machine)

    @cached_property
    def _holders(self) -> frozenset[int]:
        """Ids of what is executed with einsums in it."""
        instructions = (self.module.by_name[name] for name in self.executed)
        return frozenset(i.id for i in instructions if any(_einsums(self.module, i)))

    @cached_property
    def _owner(self) -> Mapping[int, int]:
        """Id of an instruction in a fusion → id of the fusion that is executed."""
        return {
            inner.id: id_
            for name, opcode in self.executed.items()
            if opcode == "fusion"
            for id_ in (self.module.by_name[name].id,)
            for inner in _inside(self.module, self.module.instructions[id_])
        }


def _einsums(module: Module, instruction: HloInstructionProto) -> Iterator[HloInstructionProto]:
    """An einsum itself, or those in a fusion."""
    if instruction.opcode in MATMULS:
        yield instruction
    yield from (inner for inner in _inside(module, instruction) if inner.opcode in MATMULS)


def _inside(module: Module, instruction: HloInstructionProto) -> Iterator[HloInstructionProto]:
    """Instructions of a fusion, and of fusions in it."""
    if instruction.opcode == "fusion":
        for inner in module.computations[instruction.called_computation_ids[0]].instructions:
            yield inner
            yield from _inside(module, inner)


def _ends(opcode: str) -> bool:
    return opcode.endswith(("-done", "-update"))
