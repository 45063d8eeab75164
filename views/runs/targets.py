"""Which targets a production compiler can be asked for, for a module of so many devices."""

from __future__ import annotations

from collections.abc import Iterator

from engine.execute.targets import CUDA, TPU, Generation, Target

GPUS_PER_HOST = 8


def targets_for(devices: int) -> tuple[Target, ...]:
    """Targets with exactly that many devices, the newest compact one of each generation."""
    tpus = (Target("tpu", name, shape) for name, known in TPU.items() if (shape := _torus(devices, known)) is not None)
    gpus = (Target("cuda", name, _hosts(devices)) for name in CUDA)
    return (*tpus, *gpus)


def default_target(devices: int, chip: str) -> Target | None:
    """The one for the chip that plans are made for, else the first; None where no target has so many devices."""
    found = targets_for(devices)
    return next((t for t in found if t.known.chip == chip), found[0] if found else None)


def _torus(devices: int, known: Generation) -> tuple[int, ...] | None:
    """The most compact torus: its sizes are powers of two, since slices come in no others, and ascend, but for ones."""
    chips, left = divmod(devices, known.devices_per_chip)
    if left or chips < 1 or chips & (chips - 1):
        return None
    compact = min(_shapes(chips, known.dimensions), key=lambda shape: shape[-1])
    return tuple(sorted(compact, key=lambda size: (size == 1, size))) if known.dimensions > 2 else compact


def _shapes(chips: int, dimensions: int, least: int = 1) -> Iterator[tuple[int, ...]]:
    if dimensions == 1:
        if chips >= least:
            yield (chips,)
        return
    size = least
    while size <= chips:
        if chips % size == 0:
            yield from ((size, *rest) for rest in _shapes(chips // size, dimensions - 1, size))
        size *= 2


def _hosts(devices: int) -> tuple[int, ...]:
    """Whole hosts where there are several."""
    if devices % GPUS_PER_HOST == 0:
        return (1, devices // GPUS_PER_HOST, GPUS_PER_HOST)
    return (1, 1, devices)
