"""A machine for a module: what the user named, and the rest inferred from device count and replica groups."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np

from engine.chips.chip import Chip, TorusLinks, Wrap
from engine.chips.machine import Machine
from engine.chips.mesh import Mesh, infer_mesh, parse_mesh, place
from engine.chips.topology import Domains, Topology, Torus
from engine.errors import UnsupportedError, UsageError
from engine.ir.graph import Ints
from engine.ir.groups import device_groups
from engine.ir.module import Module

_GROUPED = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-broadcast")


def machine_for(module: Module, chip: Chip, topology: str | None = None, mesh: str | None = None) -> Machine:
    """The machine that runs `module`, one device of it on each of its chips.

    `topology` is ``4x4x4`` (a torus or mesh; ``4x4x8w`` or ``4tx4mx8t`` forces wrap per axis) or, on GPUs,
    ``NODESxGPUS``; `mesh` is ``x=8,y=8`` with axes slowest first. Raises UsageError where they do not fit the module.
    """
    devices = module.header.devices
    notes: list[str] = []
    wired = _topology(chip, devices, topology, notes)
    axes = parse_mesh(mesh) if mesh else _mesh(module, devices, notes)
    if prod(size for _, size in axes) != devices:
        shown = ",".join(f"{name}={size}" for name, size in axes)
        raise UsageError(f"mesh {shown} has {prod(size for _, size in axes)} devices, but the module runs on {devices}")
    position = _positions(axes, wired, devices, chip, notes)
    position.setflags(write=False)
    return Machine(chip, devices, wired, position, axes, tuple(notes))


def _mesh(module: Module, devices: int, notes: list[str]) -> Mesh:
    axes = infer_mesh(devices, _groups(module))
    if devices > 1:
        shown = ",".join(f"{name}={size}" for name, size in axes)
        notes.append(f"The mesh {shown} was inferred from the replica groups.")
    return axes


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
    if isinstance(chip.network, TorusLinks):
        chips = -(-devices // chip.devices_per_chip)
        shape, forced = (_torus_shape(chip.network, chips), None) if text is None else _read_shape(text)
        if text is None and chips > 1:
            notes.append(f"Topology {'x'.join(map(str, shape))} was assumed for {chips} chips.")
        if prod(shape) != chips:
            raise UsageError(
                f"topology {text} has {prod(shape)} chips, but the module runs on {devices} devices"
                f" ({chip.devices_per_chip} a chip): {chips} chips are needed"
            )
        wrap = forced or _wraps(chip.network, shape)
        return Torus(shape, wrap, chip.network.link, chip.network.hop_latency)
    network = chip.network
    if text is None:
        domains = max(1, -(-devices // network.domain))
        size = devices if domains == 1 else network.domain
        if domains * size != devices:
            raise UsageError(
                f"{devices} devices do not fill domains of {network.domain};"
                " say how they are spread: --topology NODESxGPUS"
            )
        if devices > 1:
            notes.append(f"Topology {domains}x{size} (domains × devices) was assumed for {devices} devices.")
    else:
        shape, _ = _read_shape(text)
        if len(shape) == 1:
            shape = (1, *shape)
        if len(shape) != 2 or prod(shape) != devices:
            raise UsageError(f"a GPU topology is NODESxGPUS with {devices} devices in all, but '{text}' came")
        domains, size = shape
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
    """The most cubic box; axes that are multiples of 4 are preferred, for they wrap."""
    best: tuple[tuple[float, ...], tuple[int, ...]] | None = None
    for shape in _boxes(chips, network.dimensions):
        wraps = sum(_wraps(network, shape))
        over = sum(size > most for size, most in zip(shape, sorted(network.largest), strict=True))
        key = (over, -wraps, shape[-1] / shape[0], *shape)
        if best is None or key < best[0]:
            best = (key, shape)
    assert best is not None  # (1, …, chips) is always a box
    return best[1]


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


def _positions(axes: Mesh, topology: Topology, devices: int, chip: Chip, notes: list[str]) -> Ints:
    share = chip.devices_per_chip
    if not isinstance(topology, Torus) or share > 1:
        return np.arange(devices) // share
    placed = place(axes, topology.shape)
    if placed is None:
        notes.append("The mesh does not factor over the topology: devices are numbered along its first axis first.")
        return np.arange(devices)
    return placed
