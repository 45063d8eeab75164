"""How many devices a module runs on when its header does not say: read from replica groups and permute pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto, OpSharding
from engine.ir.groups import id_count, id_kind, not_there
from engine.ir.module import Header, Module


def infer_counts(proto: HloModuleProto, header: Header) -> tuple[Header, str | None]:
    """The header with partition and replica counts filled in where it says 1 and collectives name more devices.

    A collective without a channel works across replicas, one with a channel across partitions (or over global ids).
    The note says what was inferred and from which instructions; None when nothing was.
    """
    if header.devices > 1:
        return header, None
    found: dict[str, tuple[int, HloInstructionProto]] = {}
    for computation in proto.computations:
        for instruction in computation.instructions:
            devices = devices_named(instruction)
            if devices > 1 and devices > found.get(_counted_by(instruction), (0, instruction))[0]:
                found[_counted_by(instruction)] = devices, instruction
    counted, reasons = _counts(found)
    if not reasons:
        return header, None
    said = " and ".join(f"{field}={counted[field]}" for field in reasons)
    witnesses = " and ".join(dict.fromkeys(f"{i.opcode} {i.name}" for i in reasons.values()))
    verb = "was" if len(reasons) == 1 else "were"
    note = f"{said} {verb} inferred from {witnesses}: the header does not say it."
    replicas, partitions = counted["replica_count"], counted["num_partitions"]
    return replace(header, replica_count=replicas, num_partitions=partitions), note


def _counts(
    found: Mapping[str, tuple[int, HloInstructionProto]],
) -> tuple[dict[str, int], dict[str, HloInstructionProto]]:
    """Header fields and the instructions that tell them. Global ids number the partitions of every replica in turn."""
    counts = {kind: devices for kind, (devices, _) in found.items()}
    replicas = counts.get("replica", 1)
    partitions = counts.get("partition", 1)
    devices = counts.get("device", 0)
    reasons = {"replica_count": found["replica"][1]} if replicas > 1 else {}
    if devices:
        if devices % replicas or devices // replicas < partitions:
            replicas, reasons = 1, {}
        partitions = max(partitions, devices // replicas)
        if partitions > 1:
            reasons["num_partitions"] = found["device" if partitions == devices // replicas else "partition"][1]
    elif partitions > 1:
        reasons["num_partitions"] = found["partition"][1]
    return {"replica_count": replicas, "num_partitions": partitions}, reasons


def _counted_by(instruction: HloInstructionProto) -> str:
    if instruction.use_global_device_ids:
        return "device"
    return "partition" if instruction.channel_id else "replica"


_COLLECTIVE = ("all-", "async-", "collective-", "custom-call", "ragged-all-to-all", "reduce-scatter")
"""What the opcodes begin with that may name devices: asking the others what they name takes time in large modules."""


_GROUPED = ("all-", "ragged-all-to-all", "reduce-scatter")
"""What the opcodes begin with whose replica groups hold every device once."""


def devices_named(instruction: HloInstructionProto) -> int:
    """The highest device number that a collective names, plus one; 0 when it names none."""
    if not instruction.opcode.startswith(_COLLECTIVE):
        return 0
    which = instruction.WhichOneof("replica_group_list")
    if which == "iota_collective_device_list":
        iota = instruction.iota_collective_device_list
        return iota.num_replica_groups * iota.num_devices_per_group
    if which == "mesh_axes_replica_group_list":
        mesh = instruction.mesh_axes_replica_group_list.mesh
        return max(mesh.device_ids, default=prod(axis.size for axis in mesh.axes) - 1) + 1
    groups = instruction.replica_groups or instruction.collective_device_list.replica_groups
    if groups:
        return max((d for group in groups for d in group.replica_ids), default=-1) + 1
    pairs = instruction.source_target_pairs
    return max((max(pair.source, pair.target) for pair in pairs), default=-1) + 1


Grouped = Sequence[tuple[HloInstructionProto, HloComputationProto]]
"""Collectives with replica groups, as a rule, and the computations that they are in."""


def grouped_in(proto: HloModuleProto) -> Grouped:
    """The collectives whose groups `misnamed` and `uncovered` look at, in the module's order."""
    return [
        (instruction, computation)
        for computation in proto.computations
        for instruction in computation.instructions
        if (opcode := instruction.opcode).startswith(_GROUPED) and not opcode.endswith("-done")
    ]


def uncovered(grouped: Grouped, header: Header) -> str | None:
    """A sentence where replica groups name fewer or more ids than the header has devices, in XLA's own words for it;
    None where all fit. Only ids are counted: groups of a large machine are not written out."""
    there = {"device": header.devices, "partition": header.num_partitions}
    found: list[tuple[HloInstructionProto, int, int]] = []
    for instruction, _ in grouped:
        named = _ids_named(instruction)
        wanted = there.get(id_kind(instruction), header.replica_count) if named else 0
        if named != wanted:
            found.append((instruction, named, wanted))
    if not found:
        return None
    first, named, wanted = found[0]
    more = f", and so do {len(found) - 1} more collectives" if len(found) > 1 else ""
    return (
        f"The replica groups of {first.name} should contain {wanted:,} devices, which is what the header says, but "
        f"name {named:,}{more}: XLA refuses to compile such a module. Either its first line or its groups were changed."
    )


def _ids_named(instruction: HloInstructionProto) -> int:
    """How many ids the replica groups of a collective name; 0 where it names none, which means all."""
    which = instruction.WhichOneof("replica_group_list")
    if which == "iota_collective_device_list":
        return devices_named(instruction)
    if which == "mesh_axes_replica_group_list":
        return 0
    groups = instruction.replica_groups or instruction.collective_device_list.replica_groups
    return sum(len(group.replica_ids) for group in groups)


def misnamed(grouped: Grouped, header: Header) -> str | None:
    """What is wrong where replica groups name an id twice, or one that the module does not have; None where all fit."""
    for instruction, computation in grouped:
        groups = instruction.replica_groups or instruction.collective_device_list.replica_groups
        ids = [d for group in groups for d in group.replica_ids]
        most = devices_named(instruction) - 1
        least, where = min(ids, default=0), f"{instruction.name} in {computation.name}"
        if least < 0 or most >= id_count(instruction, header):
            return f"{where}: {not_there(instruction, header, least if least < 0 else most)}"
        if len(set(ids)) < len(ids):
            twice = next(one for number, one in enumerate(ids) if one in ids[:number])
            return f"{where}: {twice} is in its groups twice"
    return None


def is_partitioned(proto: HloModuleProto) -> bool:
    """Whether the module is what one device runs: it has collectives, or nothing in it is annotated to be split."""
    split = False
    for computation in reversed(proto.computations):  # the entry is the last, and what they call has none
        for instruction in computation.instructions:
            if instruction.channel_id or devices_named(instruction):
                return True
            split = split or _is_split(instruction.sharding)
    return not split


_ANNOTATIONS = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.")
"""What the targets of custom calls begin with that stand for shardings until the partitioner has run."""


def awaits_partitioning(module: Module) -> bool:
    """Whether the module is still the program of all devices together: annotated, or with parts of it written for one
    device (`shard_map`) and their borders marked."""
    calls = module.by_opcode.get("custom-call", ())
    return any(c.custom_call_target.startswith(_ANNOTATIONS) for c in calls) or not is_partitioned(module.proto)


def _is_split(sharding: OpSharding) -> bool:
    return len(sharding.tile_assignment_dimensions) > 0 or any(_is_split(s) for s in sharding.tuple_shardings)
