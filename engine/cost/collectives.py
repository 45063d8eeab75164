"""How long collectives and permutes take on a machine's links, and what they load."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import ceil, prod
from typing import NamedTuple

import numpy as np

from engine.chips.chip import DomainLinks
from engine.chips.machine import Machine
from engine.chips.slices import Slices
from engine.chips.topology import Domains, Floats, Load, Torus, classes_of
from engine.errors import UnsupportedError
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.graph import Bools, Ints
from engine.ir.groups import Groups, Lists
from engine.ir.module import Header
from engine.quantities import counted_text

PICO = 1e12


class Transfer(NamedTuple):
    """One transfer when it is alone on the network."""

    time: int
    """Picoseconds."""
    links: tuple[int, ...]
    """Numbers of the loaded classes of `Machine.links`, ascending."""
    bytes: tuple[int, ...]
    """On the heaviest link of each."""


NOTHING = Transfer(0, (), ())


class _Moved(NamedTuple):
    """A transfer before its links are put into classes."""

    time: float
    """Picoseconds."""
    carried: Floats
    """Bytes on each physical link."""


_MOST_PAIRS = 300_000
"""Transfers that are routed one by one; takes some tens of milliseconds."""


def permute_time(machine: Machine, pairs: Lists, size: int) -> Transfer:
    """A collective permute of `size` bytes between each (source, target) pair of device numbers."""
    return _permute(machine, pairs, size)


@lru_cache(maxsize=4096)
def _permute(machine: Machine, pairs: Lists, size: int) -> Transfer:
    return _transfer(machine, _permuted(machine, pairs, size))


def _permuted(machine: Machine, pairs: Lists, size: int) -> _Moved:
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    return _routed(machine, ends[:, 0], ends[:, 1], float(size))


def permute_carries(machine: Machine, pairs: Lists) -> Floats:
    """What every physical link carries of a collective permute of one byte."""
    return _permuted(machine, pairs, 1).carried


def collective_carries(machine: Machine, opcode: str, groups: Groups | Lists, size: int) -> Floats:
    """What every physical link carries of a collective, in bytes; parameters as of `collective_time`."""
    members = groups.members if isinstance(groups, Groups) else groups
    return _moved(machine, opcode.removesuffix("-start"), members, size).carried


def _routed(machine: Machine, sources: Ints, targets: Ints, size: float, steps: int = 1, launches: int = 1) -> _Moved:
    """Transfers routed all at once, `steps` times in a row, by that many launches."""
    carried = machine.carry(sources, targets, size)
    if not carried.bytes.any():
        return _Moved(0.0, carried.bytes)
    moving = steps * (carried.latency + _on_links(machine, carried.bytes, size))
    return _Moved(launches * _launch(machine) + moving, carried.bytes * steps)


def _on_links(machine: Machine, carried: Floats, size: float) -> float:
    """Time of the slowest link; the network between domains is at its rate whatever the messages' size."""
    topology = machine.topology
    if isinstance(topology, Domains):
        ports = 2 * topology.size
        inside = float(carried[:ports].max()) / topology.link.usable * PICO
        between = float(carried[ports:].max(initial=0.0)) / topology.network.usable * PICO
        return max(_slowed(machine, size, inside), between)
    rates = np.array([link.rate.usable for link in machine.links])
    return float((classes_of(topology).heaviest(carried) / rates).max()) * PICO


def _nothing(machine: Machine) -> _Moved:
    return _Moved(0.0, np.zeros(len(machine.topology.alike.of)))


def _transfer(machine: Machine, moved: _Moved) -> Transfer:
    loads = classes_of(machine.topology).heaviest(moved.carried)
    used = np.flatnonzero(loads > 0)
    return Transfer(ceil(moved.time), tuple(map(int, used)), tuple(ceil(loads[k]) for k in used))


def _launch(machine: Machine) -> int:
    return machine.chip.network.launch


def _slowed(machine: Machine, size: float, wire: float) -> float:
    """Time on a switched link with its message-size curve.

    About half of the rate is reached at `half_bytes`, nearly all of it at ten times as much. The smallest messages go
    by a protocol of their own and still reach a ninth (the shape of public nccl-tests curves).
    """
    network = machine.chip.network
    if isinstance(network, DomainLinks) and network.half_bytes > 0 and size > 0:
        return wire * (1 + network.half_bytes / (size + network.half_bytes / 8))
    return wire


def ring_time(machine: Machine, groups: Groups | Lists, shard_bytes: int, steps: int, both: bool) -> Transfer:
    """The permutes of a decomposed collective: every position sends one shard a step along the logical ring.

    `steps` counts shard-hops on each link of the ring: N-1 rolled in one direction, N/2 per direction with `both`
    (Wang et al. §5.5). With `both` a shard moves in each direction at every step.
    """
    members = groups.members if isinstance(groups, Groups) else groups
    return _ring(machine, members, shard_bytes, steps, both, steps)


@lru_cache(maxsize=1024)
def _ring(machine: Machine, groups: Lists, shard_bytes: int, steps: int, both: bool, launches: int) -> Transfer:
    return _transfer(machine, _around(machine, groups, shard_bytes, steps, both, launches))


def _around(machine: Machine, groups: Lists, shard_bytes: int, steps: int, both: bool, launches: int) -> _Moved:
    if steps <= 0 or len(groups[0]) < 2:
        return _nothing(machine)
    sources, targets = _ring_pairs(groups)
    if both:
        sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
    return _routed(machine, sources, targets, float(shard_bytes), steps, launches)


def _ring_pairs(groups: Lists) -> tuple[Ints, Ints]:
    """Every member sends to the one before it."""
    sources = np.concatenate([np.array(g, np.int64) for g in groups])
    targets = np.concatenate([np.roll(np.array(g, np.int64), 1) for g in groups])
    return sources, targets


def collective_time(machine: Machine, opcode: str, groups: Groups | Lists, size: int) -> Transfer:
    """A collective that stays whole, by the fastest of the algorithms modelled.

    `size` is the bytes of the whole array on one device: gathered (all-gather), before it is scattered
    (reduce-scatter), reduced (all-reduce) or exchanged (all-to-all). `opcode` may carry ``-start``.
    """
    members = groups.members if isinstance(groups, Groups) else groups
    return _collective(machine, opcode.removesuffix("-start"), members, size)


@lru_cache(maxsize=4096)
def _collective(machine: Machine, opcode: str, groups: Lists, size: int) -> Transfer:
    return _transfer(machine, _moved(machine, opcode, groups, size))


def _moved(machine: Machine, opcode: str, groups: Lists, size: int) -> _Moved:
    sizes = sorted({len(group) for group in groups})
    if len(sizes) > 1:
        return _together([tuple(g for g in groups if len(g) == n) for n in sizes], machine, opcode, size)
    members = sizes[0]
    if members < 2 or size == 0:
        return _nothing(machine)
    if opcode == "all-reduce":
        return _twice(_moved(machine, "reduce-scatter", groups, size), machine)
    if isinstance(machine.topology, Domains):
        return _switched(machine, opcode, groups, size)
    if isinstance(machine.topology, Slices):
        return _over_slices(machine, machine.topology, opcode, groups, size)
    return _wired(machine, opcode, groups, size)


def _wired(machine: Machine, opcode: str, groups: Lists, size: int) -> _Moved:
    options = [_all_pairs(machine, groups, size) if "all-to-all" in opcode else _both_ways(machine, groups, size)]
    box = _box(machine, groups)
    if box is not None:
        options.append(_over_box(machine, opcode, groups, box, size))
    return min(options, key=lambda moved: moved.time)


def _together(parts: list[Lists], machine: Machine, opcode: str, size: int) -> _Moved:
    """Groups of different sizes run at the same time; each size is priced as if it were alone."""
    found = [_moved(machine, opcode, part, size) for part in parts]
    return _Moved(max(moved.time for moved in found), np.max([moved.carried for moved in found], axis=0))


def _twice(moved: _Moved, machine: Machine) -> _Moved:
    """A reduce-scatter and the all-gather that follows it; launched once."""
    return _Moved(2 * ceil(moved.time) - _launch(machine), 2 * moved.carried)


def _both_ways(machine: Machine, groups: Lists, size: int) -> _Moved:
    members = len(groups[0])
    return _around(machine, groups, ceil(size / members), ceil((members - 1) / 2), both=True, launches=1)


def _all_pairs(machine: Machine, groups: Lists, size: int) -> _Moved:
    """Every member sends an N-th to every other, all at once; of very many pairs only the first group's are routed."""
    members = len(groups[0])
    all_of_them = len(groups) * members**2 <= _MOST_PAIRS
    among = np.array(groups if all_of_them else groups[:1], np.int64)
    sources, targets = np.repeat(among, members, axis=1).ravel(), np.tile(among, members).ravel()
    apart = sources != targets
    found = _routed(machine, sources[apart], targets[apart], size / members)
    if all_of_them:
        return found
    # The others load links like the first group's, of which only the class is known.
    alike = machine.topology.alike
    return found._replace(carried=alike.heaviest(found.carried)[alike.of])


def _over_slices(machine: Machine, topology: Slices, opcode: str, groups: Lists, size: int) -> _Moved:
    """Within slices over their links; between slices members of one place exchange their parts over the hosts' ports.

    An array is gathered from the other slices part by part, then within the slice, and scattered the other way round.
    What all exchange with all takes links and ports at the same time. Groups that are not alike in all of their slices
    are routed as they are.
    """
    slice_of = machine.position // topology.torus.size
    split = [
        [tuple(d for d in group if slice_of[d] == s) for s in dict.fromkeys(slice_of[list(group)])] for group in groups
    ]
    parts = len(split[0])
    if parts == 1:
        return _in_slices(machine, topology, opcode, groups, size)
    alike = len({len(part) for group in split for part in group}) == 1 and len({len(group) for group in split}) == 1
    members = len(split[0][0])
    if "all-to-all" in opcode and alike:
        within = tuple(part for group in split for part in group)
        inner = _in_slices(machine, topology, opcode, within, ceil(size / parts)) if members > 1 else _nothing(machine)
        return _beside(machine, inner, topology.ports(machine.position, groups, size))
    if not alike:
        return _wired(machine, opcode, groups, size)
    across = tuple(tuple(part[place] for part in group) for group in split for place in range(members))
    sources, targets = _ring_pairs(across)
    outer = _routed(machine, sources, targets, size / (members * parts), parts - 1)
    inner = _in_slices(machine, topology, opcode, tuple(part for group in split for part in group), size)
    return _Moved(outer.time + inner.time, outer.carried + inner.carried)


def _beside(machine: Machine, inner: _Moved, ports: Load) -> _Moved:
    """What goes over the links of slices, and at the same time over the ports of their hosts."""
    rates = np.array([link.rate.usable for link in machine.links])
    wire = float((classes_of(machine.topology).heaviest(ports.bytes) / rates).max()) * PICO
    return _Moved(max(inner.time, _launch(machine) + ports.latency + wire), inner.carried + ports.bytes)


def _in_slices(machine: Machine, topology: Slices, opcode: str, groups: Lists, size: int) -> _Moved:
    """Groups that each lie in one slice; slices do not disturb each other."""
    chips = topology.torus.size
    of_group = machine.position[[group[0] for group in groups]] // chips
    inside = replace(machine, topology=topology.torus, position=machine.position % chips)
    carried = np.zeros(len(topology.alike.of))
    each = len(topology.torus.alike.of)
    time = 0.0
    for number in np.unique(of_group).tolist():
        here = tuple(group for group, at in zip(groups, of_group, strict=True) if at == number)
        found = _moved(inside, opcode, here, size)
        carried[number * each : (number + 1) * each] = found.carried
        time = max(time, found.time)
    return _Moved(time, carried)


class _Box(NamedTuple):
    """A group whose chips are a box: its axes, in units of one link's rate."""

    lengths: tuple[int, ...]
    wraps: tuple[bool, ...]
    shares: tuple[float, ...]
    """How many groups use the heaviest link along each axis."""
    axes: tuple[int, ...]
    devices: int
    """Devices of the group on each chip."""

    @property
    def chips(self) -> int:
        return prod(self.lengths)


def _box(machine: Machine, groups: Lists) -> _Box | None:
    torus = machine.topology
    if not isinstance(torus, Torus):
        return None
    members = np.array(groups, np.int64)
    at = torus.coordinates[machine.position[members]]
    axes, lengths, wraps, shares = [], [], [], []
    for axis in range(len(torus.shape)):
        values = np.unique(at[0, :, axis])
        if len(values) > 1:
            axes.append(axis)
            lengths.append(len(values))
            wraps.append(torus.wrap[axis] and len(values) == torus.shape[axis])
            shares.append(_share(torus, at, axis))
    chips = len(np.unique(machine.position[members[0]]))
    if prod(lengths) != chips or members.shape[1] % chips:
        return None
    return _Box(tuple(lengths), tuple(wraps), tuple(shares), tuple(axes), members.shape[1] // chips)


def _share(torus: Torus, at: Ints, axis: int) -> float:
    """Groups whose span along `axis` covers the same link, per line of chips."""
    low, high = at[:, :, axis].min(axis=1), at[:, :, axis].max(axis=1)
    others = np.delete(at, axis, axis=2) @ np.concatenate([[1], np.cumprod(np.delete(torus.shape, axis))])[:-1]
    covered = np.zeros((int(np.prod(torus.shape)) // torus.shape[axis], torus.shape[axis]))
    for group in range(len(at)):
        covered[np.unique(others[group]), low[group] : high[group]] += 1
    return float(covered.max())


def _over_box(machine: Machine, opcode: str, groups: Lists, box: _Box, size: int) -> _Moved:
    """All axes at once: the data are cut so that every axis takes its part in the proportion of its capacity."""
    torus = machine.topology
    assert isinstance(torus, Torus)
    if box.chips == 1:
        return _nothing(machine)
    loads = np.zeros(len(torus.shape))
    hops = sum(n // 2 if w else n - 1 for n, w in zip(box.lengths, box.wraps, strict=True))
    if "all-to-all" in opcode:
        for axis, length, wrap, share in zip(box.axes, box.lengths, box.wraps, box.shares, strict=True):
            loads[axis] = size * box.devices * length / (8 if wrap else 4) * share
    else:
        capacity = sum((2 if w else 1) / s for w, s in zip(box.wraps, box.shares, strict=True))
        loads[list(box.axes)] = size * (box.chips - 1) / box.chips / capacity
    wire = loads.max() / torus.link.usable * PICO
    carried = np.where(_spanned(torus, machine.position[np.array(groups, np.int64)]), loads[None, :, None], 0.0)
    return _Moved(_launch(machine) + hops * torus.hop_latency + wire, carried.reshape(-1))


def _spanned(torus: Torus, chips: Ints) -> Bools:
    """Whether each link, [chip that it leaves, axis, + or -], lies within a group of `chips` [groups, members].

    A group whose chips are no neighbours along an axis spans the line from its first to its last chip.
    """
    inside = np.zeros((torus.size, len(torus.shape), 2), np.bool_)
    at = torus.coordinates[chips]
    for axis, length in enumerate(torus.shape):
        low, high = at[:, :, axis].min(axis=1), at[:, :, axis].max(axis=1)
        whole = torus.wrap[axis] & (high - low == length - 1)
        for place in range(length):
            line = at.copy()
            line[:, :, axis] = place
            numbers = torus.numbers(line)
            ahead, behind = (low <= place) & (place < high) | whole, (low < place) & (place <= high) | whole
            inside[numbers[ahead], axis, 0] = True
            inside[numbers[behind], axis, 1] = True
    return inside


def _switched(machine: Machine, opcode: str, groups: Lists, size: int) -> _Moved:
    """Rings over a switch; between domains every member of a domain uses its share of the domain's port."""
    topology, network = machine.topology, machine.chip.network
    assert isinstance(topology, Domains)
    assert isinstance(network, DomainLinks)
    members = len(groups[0])
    chips = machine.position[np.array(groups, np.int64)]
    domain_of = chips // topology.domain
    spanned = len(np.unique(domain_of[0]))
    sent = size * (members - 1) / members
    ports = np.zeros((2, topology.size))
    ports[:, chips.ravel()] = sent
    time = _slowed(machine, sent, sent / topology.link.usable * PICO)
    latency = (members - 1 if spanned == 1 else members // spanned - 1) * topology.link_latency
    carried = [ports.ravel()]
    if topology.domains > 1:
        between = np.zeros((2, topology.domains))
        if spanned > 1:
            per_domain = size * (spanned - 1) / spanned
            if "all-to-all" in opcode:
                per_domain *= members / spanned
            groups_in_domain = max(1, topology.domain // max(1, members // spanned)) if len(groups) > 1 else 1
            between[:, np.unique(domain_of)] = per_domain * min(groups_in_domain, len(groups))
            time = max(time, float(between.max()) / topology.network.usable * PICO)
            latency += (spanned - 1) * topology.network_latency
        carried.append(between.ravel())
    return _Moved(network.launch + latency + time, np.concatenate(carried))


def pairs_of(instruction: HloInstructionProto, header: Header) -> Lists:
    """Device numbers of a collective permute's pairs, in every replica or partition; ids follow XLA's rules.

    Raises UnsupportedError for ids that the module does not have.
    """
    partitions, replicas = header.num_partitions, header.replica_count
    pairs = tuple((p.source, p.target) for p in instruction.source_target_pairs)
    what, limit = ("partition", partitions) if instruction.channel_id else ("replica", replicas)
    wrong = next((id_ for pair in pairs for id_ in pair if not 0 <= id_ < limit), None)
    if wrong is not None:
        raise UnsupportedError(
            f"{instruction.name}: its pairs name {what} {wrong}, but the module has {counted_text(limit, what)};"
            " check num_partitions and replica_count in its header"
        )
    if not instruction.channel_id:
        return tuple((s * partitions + p, t * partitions + p) for p in range(partitions) for s, t in pairs)
    if replicas == 1:
        return pairs
    return tuple((r * partitions + s, r * partitions + t) for r in range(replicas) for s, t in pairs)
