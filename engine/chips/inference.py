"""A machine for a module: what the user named, and the rest inferred from device count and replica groups."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd, prod

import numpy as np

from engine.chips.chip import Chip, DomainLinks, TorusLinks, Wrap
from engine.chips.links import read_links
from engine.chips.machine import Machine
from engine.chips.mesh import DeviceOrder, Mesh, infer_mesh, parse_mesh, place
from engine.chips.slices import Slices
from engine.chips.topology import Domains, Topology, Torus
from engine.errors import UnsupportedError, UsageError
from engine.ir.graph import Ints
from engine.ir.groups import device_groups
from engine.ir.module import Module
from engine.ir.opcodes import COLLECTIVES

MOST_DEVICES = 1 << 18
"""Devices of a module: some thirty times the largest pod. So many are placed in about two seconds."""

_GROUPED = tuple(sorted(COLLECTIVES - {"collective-permute"}))


def machine_for(module: Module, chip: Chip, topology: str | None = None, mesh: str | None = None) -> Machine:
    """The machine that runs `module`, one device of it on each of its chips.

    `topology` is ``4x4x4`` (``4tx4mx8t`` forces torus or mesh per axis; ``2@4x4x4`` is two such slices on a data-centre
    network), on GPUs ``NODESxGPUS``, or the path of a TOML file that lists links; `mesh` is ``x=8,y=8`` with axes
    slowest first, and may end in ``;order=ring`` or ``;order=natural`` (`engine.chips.mesh.DeviceOrder`). Raises
    UsageError where they do not fit the module.
    """
    devices = module.header.devices
    if devices > MOST_DEVICES:
        raise UsageError(
            f"the module is for {devices:,} devices (num_partitions times replica_count), but {MOST_DEVICES:,} are the "
            "most that are planned for, more than any machine has: look at its first line"
        )
    notes: list[str] = []
    wired = _topology(chip, devices, topology, notes)
    axes, order = _written(mesh, devices) if mesh else (_mesh(module, devices, notes), DeviceOrder.MESH)
    if mesh:
        notes += _overruled(module, axes)
    position = _positions(axes, order, wired, devices, notes)
    position.setflags(write=False)
    return Machine(chip, devices, wired, position, axes, tuple(notes))


def check_machine(chip: Chip, devices: int, topology: str | None, mesh: str | None) -> None:
    """Raises UsageError where `machine_for` would for every module on so many devices. It places none, which takes
    long for many, and reads no files: what is in these is for `machine_for` to say."""
    if topology is not None and not topology.endswith(".toml"):
        _topology(chip, devices, topology, [])
    if mesh:
        _written(mesh, devices)


def _written(mesh: str, devices: int) -> tuple[Mesh, DeviceOrder]:
    axes, order = parse_mesh(mesh)
    if prod(size for _, size in axes) != devices:
        shown = ",".join(f"{name}={size}" for name, size in axes)
        raise UsageError(f"mesh {shown} has {prod(size for _, size in axes)} devices, but the module runs on {devices}")
    return axes, order


def _mesh(module: Module, devices: int, notes: list[str]) -> Mesh:
    job = module.job_mesh
    if job is not None and prod(size for _, size in job.axes) == devices:
        shown = ",".join(f"{name}={size}" for name, size in job.axes)
        notes.append(f"The mesh {shown} is the job's, from {job.origin}.")
        return job.axes
    groups = list(_groups(module))
    axes = infer_mesh(devices, groups)
    if devices > 1:
        shown = ",".join(f"{name}={size}" for name, size in axes)
        whence = "inferred from the replica groups" if groups else "assumed: no collective has replica groups"
        notes.append(f"The mesh {shown} was {whence}.")
    return axes


def _overruled(module: Module, axes: Mesh) -> Iterable[str]:
    """That the user's mesh is not the job's: its axes may mean other devices."""
    job = module.job_mesh
    if job is not None and tuple(axis for axis in axes if axis[1] > 1) != job.axes:
        given, own = (",".join(f"{name}={size}" for name, size in mesh) for mesh in (axes, job.axes))
        yield f"The mesh {given} was given and is taken; the job's own, from {job.origin}, is {own}."


def _groups(module: Module) -> Iterable[Ints]:
    """One group of every distinct list of groups, most frequent first."""
    seen: dict[tuple[int, ...], int] = {}
    for instruction in module.instructions.values():
        if not instruction.opcode.startswith(_GROUPED) or instruction.opcode.endswith("-done"):
            continue
        try:
            first = device_groups(instruction, module.header)[0]
        except UnsupportedError:
            continue
        seen[first] = seen.get(first, 0) + 1
    return [np.array(group, np.int64) for group in sorted(seen, key=lambda g: -seen[g])]


def _topology(chip: Chip, devices: int, text: str | None, notes: list[str]) -> Topology:
    if text is not None and text.endswith(".toml"):
        return read_links(text, devices)
    if isinstance(chip.network, TorusLinks):
        if text is not None and "@" in text:
            return _slices(chip, chip.network, devices, text, notes)
        return _torus(chip, chip.network, devices, text, notes)
    return _domains(chip.network, devices, text, notes)


def _torus(chip: Chip, network: TorusLinks, devices: int, text: str | None, notes: list[str]) -> Torus:
    chips = -(-devices // chip.devices_per_chip)
    shape, forced = (_torus_shape(network, chips), None) if text is None else _read_shape(text)
    shown = "x".join(map(str, shape))
    if prod(shape) != chips:
        raise UsageError(
            f"topology {text} has {prod(shape)} chips, but the module runs on {devices} devices"
            f" ({chip.devices_per_chip} a chip): {chips} chips are needed"
        )
    if len(shape) > 3:
        raise UsageError(f"a torus has up to 3 axes, but topology {text} has {len(shape)}")
    if text is None and chips > 1:
        notes.append(f"Topology {shown} was assumed for {chips} chips.")
    if any(size > most for size, most in zip(sorted(shape), sorted(network.largest), strict=False)):
        notes.append(f"{shown} is larger than a {chip.title} pod ({'x'.join(map(str, network.largest))}).")
    return Torus(shape, forced or _wraps(network, shape), network.link, network.hop_latency)


def _slices(chip: Chip, network: TorusLinks, devices: int, text: str, notes: list[str]) -> Slices:
    written, _, shape = text.partition("@")
    if not written.isdecimal() or int(written) < 2:
        raise UsageError(f"slices are written 2@4x4x4, two or more of one shape, but '{text}' came")
    if network.slices is None:
        raise UsageError(
            f"nothing is known of the network between slices of {chip.title}; a chip's file says it under [slices]"
        )
    count = int(written)
    if devices % count:
        raise UsageError(f"topology {text} has {count} slices, but {devices} devices do not divide over them")
    return Slices(count, _torus(chip, network, devices // count, shape, notes), network.slices)


def _domains(network: DomainLinks, devices: int, text: str | None, notes: list[str]) -> Domains:
    if text is None:
        # As few domains as can be filled evenly: a job does not always use every device of each.
        domains = next(d for d in range(1, devices + 1) if devices % d == 0 and devices // d <= network.domain)
        size = devices // domains
        if devices > 1:
            notes.append(f"Topology {domains}x{size} (domains × devices) was assumed for {devices} devices.")
    else:
        shape, _ = _read_shape(text)
        domains, size = shape if len(shape) == 2 else (1, prod(shape))
        if len(shape) > 2 or domains * size != devices:
            raise UsageError(f"a GPU topology is NODESxGPUS with {devices} devices in all, but '{text}' came")
    return Domains(domains, size, network.link, network.network, network.link_latency, network.network_latency)


def _read_shape(text: str) -> tuple[tuple[int, ...], tuple[bool, ...] | None]:
    pieces = text.lower().split("x")
    marks = [piece.lstrip("0123456789") for piece in pieces]
    sizes = [piece[: len(piece) - len(mark)] for piece, mark in zip(pieces, marks, strict=True)]
    if not all(size.isdecimal() and int(size) > 0 for size in sizes) or not set(marks) <= {"", "t", "m"}:
        raise UsageError(f"a topology is written 4x4x4 (4tx4tx4m forces wrap t or mesh m per axis), but '{text}' came")
    shape = tuple(map(int, sizes))
    return shape, None if not any(marks) else tuple(mark == "t" for mark in marks)


def _wraps(network: TorusLinks, shape: tuple[int, ...]) -> tuple[bool, ...]:
    if network.wrap == Wrap.CUBES:
        cubes = len(shape) == network.dimensions and all(size % 4 == 0 for size in shape)
        return (cubes,) * len(shape)
    return tuple(size == full for size, full in zip(shape, network.largest, strict=False))


def _torus_shape(network: TorusLinks, chips: int) -> tuple[int, ...]:
    """The most cubic box that fits into a pod; one of whole cubes, which wraps, before one that is not."""

    def badness(shape: tuple[int, ...]) -> tuple[float, ...]:
        over = sum(size > most for size, most in zip(shape, sorted(network.largest), strict=True))
        wraps = network.wrap == Wrap.CUBES and all(_wraps(network, shape))
        return over, not wraps, shape[-1] / shape[0]

    return min(_boxes(chips, network.dimensions), key=badness)


def _boxes(chips: int, dimensions: int, least: int = 1) -> Iterable[tuple[int, ...]]:
    """Ascending factorisations."""
    if dimensions == 1:
        if chips >= least:
            yield (chips,)
        return
    for size in range(least, int(chips ** (1 / dimensions) + 1e-9) + 1):
        if chips % size == 0:
            for rest in _boxes(chips // size, dimensions - 1, size):
                yield (size, *rest)


def _positions(axes: Mesh, order: DeviceOrder, topology: Topology, devices: int, notes: list[str]) -> Ints:
    """Chip of each device; devices of one chip have neighbouring numbers."""
    share = -(-devices // topology.size)
    natural = np.arange(devices) // share
    if isinstance(topology, Slices):
        return _in_slices(axes, order, topology, devices, notes)
    if not isinstance(topology, Torus) or order == DeviceOrder.NATURAL:
        return natural
    on_chips = _without_chip(axes, share)
    if on_chips is None:
        notes.append(f"The mesh's fastest axis does not divide over the {share} devices of a chip: chips go in order.")
        return natural
    return np.repeat(place(on_chips, topology.shape, topology.wrap, order), share)


def _in_slices(axes: Mesh, order: DeviceOrder, topology: Slices, devices: int, notes: list[str]) -> Ints:
    """Slices along the slowest axes, as JAX's `create_hybrid_device_mesh` lays them; within each as without others."""
    left, inner = topology.count, []
    for name, size in axes:
        across = gcd(left, size)
        left //= across
        inner.append((name, size // across))
        if left > 1 and inner[-1][1] > 1:
            shown = ",".join(f"{name}={size}" for name, size in axes)
            raise UsageError(f"mesh {shown} does not divide over {topology.count} slices along its slowest axes")
    share = devices // topology.count
    one = _positions(tuple(inner), order, topology.torus, share, notes)
    return np.concatenate([one + number * topology.torus.size for number in range(topology.count)])


def _without_chip(axes: Mesh, share: int) -> Mesh | None:
    """The mesh of chips whose `share` devices are along the fastest axis; None where that axis does not divide."""
    if share == 1:
        return axes
    *slower, (name, size) = axes
    return (*slower, (name, size // share)) if size % share == 0 else None
