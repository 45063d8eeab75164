"""Tags by which a job's compiler finds the plan's instructions again: their names, written into their op_name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from engine.cost.program import Program
from engine.hlo.hlo_pb2 import HloInstructionProto, HloModuleProto
from engine.ir.module import Module
from engine.schedule.problem import Schedule

GROUP = "_scheduling_group_id"
"""Frontend attribute by which XLA's latency-hiding scheduler keeps instructions together."""
_TAG = re.compile(r"lapstrake=([\w.\-]+)")
_BOOKKEEPING = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "copy"))
"""What takes no part in an order: free, or for the compiler to place."""


def tagged(module: Module) -> Module:
    """The module with every instruction's name in its op_name, which clones, fusions and compilers carry along."""
    proto = HloModuleProto()
    proto.CopyFrom(module.proto)
    for computation in proto.computations:
        for instruction in computation.instructions:
            own = f"lapstrake={instruction.name}"
            instruction.metadata.op_name = f"{instruction.metadata.op_name} {own}".strip()
    return replace(module, proto=proto)


def is_tagged(module: Module) -> bool:
    """Whether any instruction carries such a tag."""
    return any(_TAG.search(i.metadata.op_name) for c in module.proto.computations for i in c.instructions)


def orders(program: Program, schedule: Schedule) -> Mapping[str, list[str]]:
    """Computation name → tags in the order of `schedule`; a start and a done carry ``/start`` and ``/done``.

    A fusion stands for what is in it: the job's compiler decides anew what it fuses.
    """
    found: dict[str, list[str]] = {}
    for computation, graph in program.graphs.items():
        members = [program.module.instructions[i] for i in graph.ids.tolist()]
        tags: list[str] = []
        for node in schedule.orders[computation].nodes.tolist():
            tags += _tags(program.module, members[node])
        found[graph.name] = list(dict.fromkeys(tags))
    return found


def fusions(program: Program) -> list[list[str]]:
    """Tags of what each fusion of the module holds, for those that hold two or more."""
    found = [
        list(dict.fromkeys(_tags(program.module, instruction)))
        for graph in program.graphs.values()
        for instruction in (program.module.instructions[i] for i in graph.ids.tolist())
        if instruction.opcode == "fusion"
    ]
    return [tags for tags in found if len(tags) > 1]


def grouped(module: Module, program: Program, schedule: Schedule) -> Module:
    """`module`, tagged, with XLA's scheduling groups: each permute with the einsum that hides most of it.

    `program` is what the rest of the plan makes of `module`, in the order of `schedule`. Between a start and its done
    nothing depends on either, so that no path leaves a group and comes back, which XLA would refuse.
    """
    proto = HloModuleProto()
    proto.CopyFrom(module.proto)
    named = {i.name: i for c in proto.computations for i in c.instructions}
    for number, members in enumerate(_groups(program, schedule), 1):
        for name in members & named.keys():
            named[name].frontend_attributes.map[GROUP] = str(number)
    return replace(module, proto=proto)


def _groups(program: Program, schedule: Schedule) -> Iterator[frozenset[str]]:
    for computation, graph in program.graphs.items():
        order = schedule.orders[computation].nodes.tolist()
        at = {node: place for place, node in enumerate(order)}
        compute = program.costs[computation].compute
        einsums = {n: tags for n in order if (tags := _einsums(program.module, int(graph.ids[n])))}
        hidden: dict[int, set[str]] = {}
        for start in order:
            if graph.opcodes[start] != "collective-permute-start":
                continue
            between = [n for n in order[at[start] : at[int(graph.partner[start])]] if n in einsums]
            if between:
                longest = max(between, key=lambda n: int(compute[n]))
                permute = _TAG.findall(program.module.instructions[int(graph.ids[start])].metadata.op_name)
                hidden.setdefault(longest, set()).update(permute[-1:])
        yield from (frozenset({*permutes, *einsums[node]}) for node, permutes in hidden.items())


def _einsums(module: Module, instruction: int) -> tuple[str, ...]:
    """Tags of the einsums that an instruction is, or holds."""
    found = module.instructions[instruction]
    if found.opcode == "fusion":
        inside = module.computations[found.called_computation_ids[0]].instructions
        return tuple(tag for inner in inside for tag in _einsums(module, inner.id))
    return tuple(_TAG.findall(found.metadata.op_name)[-1:]) if found.opcode in ("dot", "convolution") else ()


def names(program: Program, schedule: Schedule) -> Mapping[str, list[str]]:
    """Computation name → instruction names in the order of `schedule`: for a module that its compiler knows."""
    return {
        graph.name: [graph.names[node] for node in schedule.orders[computation].nodes.tolist()]
        for computation, graph in program.graphs.items()
    }


def _tags(module: Module, instruction: HloInstructionProto) -> Iterator[str]:
    if instruction.opcode == "fusion":
        for inner in module.computations[instruction.called_computation_ids[0]].instructions:
            yield from _tags(module, inner)
        return
    found = _TAG.findall(instruction.metadata.op_name)
    if not found or instruction.opcode in _BOOKKEEPING:
        return
    end = instruction.opcode.rpartition("-")[2]
    yield f"{found[-1]}/{end}" if end in ("start", "done") else found[-1]
