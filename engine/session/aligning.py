"""Relates a module that a compiler made to the one it was given, so that variants of both can be compared.

Compilers number instructions anew and keep names and op_names only where they have a use for them. What is found again
gets its origin in the module as loaded; what is not keeps an id that nothing else has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto
from engine.ir.module import Module
from engine.ir.numbering import LOCAL_BITS

_ABOVE = 1 << 20 << LOCAL_BITS
"""Ids from here on are not taken by what passes add to a module: they are those of a computation that it has not. The
local ids stay as small as they were: of each computation XLA makes a table as long as its highest local id."""
_EINSUM = "einsum"
_COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")
_TELLING = frozenset({_EINSUM, "custom-call", *_COLLECTIVES})
"""A fusion with one of these stands for it, not for what is computed around it."""
_ALIKE = 4
"""An op_name that more instructions share than the gradients of one line of a program says nothing."""
_SUFFIXES = ("-start", "-done")

_Key = tuple[str, str]


def aligned(module: Module, loaded: Module) -> Module:
    """`module` with ids that neither `loaded` nor what passes made of it has, and with origins in `loaded`.

    An instruction is found again by its name and kind, else by its op_name and kind where these tell which one is
    meant; a fusion by what it holds. What a compiler makes of a collective and its einsum carries the einsum's op_name:
    it comes from the collectives of that op_name, else from the einsums.
    """
    origins = _origins(module, loaded)
    proto = HloModuleProto()
    proto.CopyFrom(module.proto)
    for computation in proto.computations:
        computation.root_id += _ABOVE
        for instruction in computation.instructions:
            _move(instruction)
    for sequence in proto.schedule.sequences.values():
        sequence.instruction_ids[:] = [id_ + _ABOVE for id_ in sequence.instruction_ids]
    moved = {id_ + _ABOVE: found for id_, found in origins.items()}
    return replace(module, proto=proto, origins=MappingProxyType(moved))


def _move(instruction: HloInstructionProto) -> None:
    instruction.id += _ABOVE
    for ids in (instruction.operand_ids, instruction.control_predecessor_ids):
        ids[:] = [id_ + _ABOVE for id_ in ids]


def _origins(module: Module, loaded: Module) -> Mapping[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    by_name = {_named(i): i.id for i in loaded.instructions.values()}
    there, here = _by_op_name(loaded), _by_op_name(module)
    for instruction in module.instructions.values():
        origin = by_name.get(_named(instruction))
        if origin is not None:
            found[instruction.id] = (origin,)
    for key, ids in here.items():
        candidates = there.get(key, ())
        if len(candidates) == 1:
            pairs: Iterable[tuple[int, int]] = ((id_, candidates[0]) for id_ in ids)
        elif len(candidates) == len(ids):
            pairs = zip(ids, candidates, strict=True)  # alike on both sides, as layers are: in their order
        else:
            continue
        for id_, candidate in pairs:
            found.setdefault(id_, (candidate,))
    for computation in module.proto.computations:
        for instruction in computation.instructions:
            held = tuple(_held(instruction, module, found))
            if held:
                found[instruction.id] = held
            elif instruction.id not in found and instruction.metadata.op_name:
                found.update(_made_for(instruction, there))
    return found


def _made_for(
    instruction: HloInstructionProto, there: Mapping[_Key, list[int]]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The collectives (for what moves data), else the einsums, with the instruction's op_name, where they are few."""
    name, kind = instruction.metadata.op_name, _kind(instruction)
    moves = [id_ for other in _COLLECTIVES for id_ in there.get((name, other), ())] if kind in _COLLECTIVES else []
    einsums = there.get((name, _EINSUM), []) if kind in (*_COLLECTIVES, "fusion", "while", _EINSUM) else []
    alike = next((ids for ids in (moves, einsums) if 0 < len(ids) <= _ALIKE), None)
    if alike is not None:
        yield instruction.id, tuple(alike)


def _held(instruction: HloInstructionProto, module: Module, found: Mapping[int, tuple[int, ...]]) -> Iterator[int]:
    """Origins of what a fusion, or an asynchronous start, holds. Callees come before callers."""
    if instruction.opcode not in ("fusion", "async-start"):
        return
    inner = [i for c in instruction.called_computation_ids for i in module.computations[c].instructions]
    telling = [i for i in inner if _kind(i) in _TELLING] or inner
    yield from dict.fromkeys(o for i in telling if i.opcode != "parameter" for o in found.get(i.id, ()))


def _by_op_name(module: Module) -> Mapping[_Key, list[int]]:
    """Ids by op_name and kind, in the module's order; a done counts with its start."""
    keyed: defaultdict[_Key, list[int]] = defaultdict(list)
    for computation in module.proto.computations:
        for instruction in _work(computation):
            keyed[(instruction.metadata.op_name, _kind(instruction))].append(instruction.id)
    return keyed


def _work(computation: HloComputationProto) -> Iterator[HloInstructionProto]:
    for instruction in computation.instructions:
        if instruction.metadata.op_name and instruction.opcode not in ("constant", "get-tuple-element", "fusion"):
            yield instruction


def _named(instruction: HloInstructionProto) -> _Key:
    return instruction.name, _kind(instruction)


def _kind(instruction: HloInstructionProto) -> str:
    """The opcode; a start and its done are one kind, and einsums are dots to some and convolutions to others."""
    opcode = instruction.opcode
    if opcode in ("dot", "convolution"):
        return _EINSUM
    return next((opcode.removesuffix(s) for s in _SUFFIXES if opcode.endswith(s)), opcode)
