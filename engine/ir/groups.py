"""Replica groups in each of the forms HLO writes them, as explicit lists of device ids.

Collectives name who takes part as a list, as a transposed iota, as axes of a mesh, or not at all (everybody), and
depending on `channel_id` and `use_global_device_ids` the numbers are replicas, partitions or devices
(``replica · num_partitions + partition``). Everything after this file sees lists only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from math import prod

import numpy as np

from engine.errors import UnsupportedError
from engine.hlo.hlo_pb2 import HloInstructionProto, MeshAxesReplicaGroupListProto
from engine.ir.graph import Ints
from engine.ir.module import Header
from engine.quantities import counted_text

Lists = tuple[tuple[int, ...], ...]

_GLOBAL = frozenset({"all-gather", "all-reduce", "reduce-scatter", "all-gather-start", "all-reduce-start"})
"""Collectives whose `use_global_device_ids` counts; the others read ids as partitions once they have a channel."""


class Mode(StrEnum):
    """What the ids in the groups are."""

    PARTITION = "partition"
    REPLICA = "replica"


class GroupsError(UnsupportedError):
    """Replica groups that no ring of collective permutes can run in; the message is the reason in a few words."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Replica groups of one collective, written out: one tuple of device ids a group, by position in the group."""

    members: Lists
    mode: Mode

    @property
    def size(self) -> int:
        """N, the number of ring positions."""
        return len(self.members[0])


@dataclass(frozen=True, slots=True)
class Digit:
    """One digit of a position that arithmetic finds: ``(id // stride) % modulus * weight``."""

    stride: int
    modulus: int
    weight: int


def written_lists(instruction: HloInstructionProto) -> Lists:
    """The groups as the instruction writes them, whatever the form; empty when it names none.

    Raises UnsupportedError where an iota or a mesh does not fit itself.
    """
    form = instruction.WhichOneof("replica_group_list")
    if instruction.replica_groups:
        return tuple(tuple(g.replica_ids) for g in instruction.replica_groups)
    if form == "collective_device_list":
        return tuple(tuple(g.replica_ids) for g in instruction.collective_device_list.replica_groups)
    if form == "iota_collective_device_list":
        iota = instruction.iota_collective_device_list
        return _iota_lists(
            iota.num_replica_groups,
            iota.num_devices_per_group,
            tuple(iota.iota_reshape_dims),
            tuple(iota.iota_transpose_perm),
        )
    if form == "mesh_axes_replica_group_list":
        return _mesh_lists(instruction.mesh_axes_replica_group_list.SerializeToString(deterministic=True))
    return ()


def device_groups(instruction: HloInstructionProto, header: Header) -> Lists:
    """Who exchanges data with whom, as device ids ``replica · num_partitions + partition``, by position.

    For every collective with replica groups (not for permutes). A group that acts within each replica, or within
    each partition, appears once for each of them. Raises UnsupportedError for ids the module does not have.
    """
    partitions, replicas = header.num_partitions, header.replica_count
    lists = _checked(written_lists(instruction), instruction, header)
    kind = id_kind(instruction)
    if kind == "device":
        return lists
    if kind == "partition":
        return tuple(tuple(r * partitions + p for p in group) for r in range(replicas) for group in lists)
    if kind == "replica":
        return tuple(tuple(r * partitions + p for r in group) for p in range(partitions) for group in lists)
    return tuple(tuple(r * partitions + p for r in group for p in range(partitions)) for group in lists)


def ring_groups(instruction: HloInstructionProto, header: Header) -> Groups:
    """The groups as rings of partitions, or of replicas, for permutes that do the collective's work.

    A permute acts alike within every replica (partition ids) or within every partition (replica ids), so groups that
    span both, or differ from replica to replica, are refused. Raises GroupsError.
    """
    lists = device_groups(instruction, header)
    return _rings(lists, header.num_partitions, header.replica_count)


@lru_cache(maxsize=256)
def _rings(lists: Lists, partitions: int, replicas: int) -> Groups:
    if len({len(group) for group in lists}) != 1:
        sizes = sorted({len(group) for group in lists})
        raise GroupsError(f"groups of different sizes ({', '.join(map(str, sizes))})")
    if replicas == 1:
        return Groups(lists, Mode.PARTITION)
    if partitions == 1:
        return Groups(lists, Mode.REPLICA)
    if all(d // partitions == group[0] // partitions for group in lists for d in group):
        return Groups(_alike(lists, partitions, "replica", by=0), Mode.PARTITION)
    if all(d % partitions == group[0] % partitions for group in lists for d in group):
        return Groups(_alike(lists, partitions, "partition", by=1), Mode.REPLICA)
    raise GroupsError("groups span replicas and partitions")


def _alike(lists: Lists, partitions: int, what: str, by: int) -> Lists:
    """The groups of one replica (by=0) or partition (by=1), if every other one has the same."""
    seen: dict[int, set[tuple[int, ...]]] = {}
    ordered: dict[tuple[int, ...], None] = {}
    for group in lists:
        split = [divmod(d, partitions) for d in group]
        inner = tuple(pair[1 - by] for pair in split)
        seen.setdefault(split[0][by], set()).add(inner)
        ordered.setdefault(inner)
    if len({frozenset(groups) for groups in seen.values()}) != 1:
        raise GroupsError(f"groups differ from {what} to {what}")
    return tuple(ordered)


def shift_pairs(groups: Groups, hops: int) -> Lists:
    """`source_target_pairs` of a ring shift: in every group, position r sends to position r - `hops` (mod N).

    One hop is the "left" shift of Wang et al. §5.1: {0,N-1}, {1,0}, …; a negative number shifts right.
    """
    return tuple((group[r], group[(r - hops) % groups.size]) for group in groups.members for r in range(groups.size))


def positions(groups: Groups, ids: int) -> Ints:
    """Position in its group of every id below `ids`, shape [ids]; 0 for an id that is in no group. Read-only."""
    found = np.zeros(ids, np.int64)
    members = np.array(groups.members, np.int64)
    found[members] = np.arange(groups.size)
    found.setflags(write=False)
    return found


@lru_cache(maxsize=256)
def digits(groups: Groups) -> tuple[Digit, ...] | None:
    """Arithmetic for the position in a group: its sum over the digits is the position of every member's id.

    One digit ``(id // stride) % N`` for an axis of a mesh, several for merged axes in any order; None where the
    groups are irregular and the position must be looked up in a table.
    """
    first, size = groups.members[0], groups.size
    found: list[Digit] = []
    weight = 1
    while weight < size:
        stride = first[weight] - first[0]
        modulus = 1
        while modulus * weight < size and first[modulus * weight] - first[0] == modulus * stride:
            modulus += 1
        while size % (modulus * weight):
            modulus -= 1
        if stride < 1 or modulus < 2:
            return None
        found.append(Digit(stride, modulus, weight))
        weight *= modulus
    members = np.array(groups.members, np.int64)
    position = sum((members // d.stride % d.modulus * d.weight for d in found), np.zeros_like(members))
    return tuple(found) if bool(np.all(position == np.arange(size))) else None


def id_kind(instruction: HloInstructionProto) -> str:
    """What the ids are: ``replica``, ``partition``, ``device``, or ``both`` (replica ids, each with all partitions)."""
    if not instruction.channel_id:
        return "replica"
    if instruction.use_global_device_ids:
        return "device"
    return "both" if instruction.opcode in _GLOBAL else "partition"


def id_count(instruction: HloInstructionProto, header: Header) -> int:
    """How many ids there are that the groups of a collective may name, from 0."""
    counts = {"replica": header.replica_count, "both": header.replica_count, "partition": header.num_partitions}
    return counts.get(id_kind(instruction), header.devices)


def not_there(instruction: HloInstructionProto, header: Header, member: int) -> str:
    """A sentence for an id that a module does not have."""
    kind = id_kind(instruction)
    what = "replica" if kind == "both" else kind
    return (
        f"its groups name {what} {member}, but the module has {counted_text(id_count(instruction, header), what)}; "
        "check num_partitions and replica_count in its header"
    )


def _checked(lists: Lists, instruction: HloInstructionProto, header: Header) -> Lists:
    limit = id_count(instruction, header)
    lists = tuple(group for group in lists if group) or (tuple(range(limit)),)
    if len(lists) == 1 and lists[0] == tuple(range(limit)):
        return lists
    seen: set[int] = set()
    for group in lists:
        for member in group:
            if not 0 <= member < limit:
                raise UnsupportedError(f"{instruction.name}: {not_there(instruction, header, member)}")
            if member in seen:
                raise UnsupportedError(f"{instruction.name}: {member} is in its groups twice")
            seen.add(member)
    return lists


@lru_cache(maxsize=256)
def _iota_lists(count: int, size: int, dims: tuple[int, ...], perm: tuple[int, ...]) -> Lists:
    dims = dims or (count * size,)
    if count * size != prod(dims) or not _is_permutation(perm, len(dims)):
        raise UnsupportedError(f"replica groups [{count},{size}]<={list(dims)}T{perm}: the sizes do not fit each other")
    return _lists(_iota(dims, perm).reshape(count, size))


@lru_cache(maxsize=256)
def _mesh_lists(serialized: bytes) -> Lists:
    written = MeshAxesReplicaGroupListProto.FromString(serialized)
    sizes = [axis.size for axis in written.mesh.axes]
    devices = _mesh_devices(written, prod(sizes))
    split, grouped = _split_axes(written, sizes)
    rest = [k for k in range(len(split)) if k not in grouped]
    order = devices.reshape(split).transpose([*rest, *grouped])
    return _lists(order.reshape(-1, prod(split[k] for k in grouped)))


def _mesh_devices(written: MeshAxesReplicaGroupListProto, count: int) -> Ints:
    mesh = written.mesh
    if mesh.HasField("iota_transform"):
        dims, perm = tuple(mesh.iota_transform.reshape_dims), tuple(mesh.iota_transform.transpose_perm)
        if prod(dims) != count or not _is_permutation(perm, len(dims)):
            raise UnsupportedError(f"mesh of {count} devices with device_ids [{list(dims)}T{perm}]: sizes do not fit")
        return _iota(dims, perm).reshape(-1)
    if not mesh.device_ids:
        return np.arange(count)
    if len(mesh.device_ids) != count:
        raise UnsupportedError(f"mesh of {count} devices lists {len(mesh.device_ids)} device ids")
    return np.array(mesh.device_ids, np.int64)


def _split_axes(written: MeshAxesReplicaGroupListProto, sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    """The mesh's shape with each axis split where sub-axes need it, and which of those parts are grouped, in order."""
    cuts: list[set[int]] = [{1, size} for size in sizes]
    wanted: list[tuple[int, int, int]] = []
    for axis in written.axes:
        k = axis.mesh_axis_index
        if not 0 <= k < len(sizes):
            raise UnsupportedError(f"replica groups name mesh axis {k} of a mesh with {len(sizes)} axes")
        sub = axis.sub_axis_info if axis.HasField("sub_axis_info") else None
        start, stop = (sub.pre_size, sub.pre_size * sub.size) if sub is not None else (1, sizes[k])
        cuts[k] |= {start, stop}
        wanted.append((k, start, stop))
    split: list[int] = []
    part_of: dict[tuple[int, int, int], int] = {}
    for k, marks in enumerate(cuts):
        ordered = sorted(marks)
        for low, high in pairwise(ordered):
            if low < 1 or high % low:
                raise UnsupportedError(f"replica groups split mesh axis {k} of size {sizes[k]} at {low} and {high}")
            part_of[k, low, high] = len(split)
            split.append(high // low)
    ones = [(k, a, b) for k, a, b in wanted if a == b]
    parts = [part_of.get(axis, -1) for axis in wanted if axis not in ones]
    if -1 in parts or len(set(parts)) != len(parts):
        raise UnsupportedError("replica groups name overlapping parts of a mesh axis")
    return split, parts


def _iota(dims: Sequence[int], perm: Sequence[int]) -> Ints:
    devices = np.arange(prod(dims)).reshape(tuple(dims))
    return devices.transpose(tuple(perm)) if perm else devices


def _is_permutation(perm: Sequence[int], rank: int) -> bool:
    return not perm or sorted(perm) == list(range(rank))


def _lists(devices: Iterable[Ints]) -> Lists:
    return tuple(tuple(map(int, group)) for group in devices)
