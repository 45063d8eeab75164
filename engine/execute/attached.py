"""The worker's part of looking for devices."""

from __future__ import annotations

import jax

from engine.control import Control
from engine.execute.devices import Platform


def describe(name: str, *, control: Control) -> Platform:
    """The devices of the platform that this process was started for."""
    try:
        devices = jax.devices()
    except (RuntimeError, AssertionError) as error:  # jax asserts that a plugin for GPUs is installed
        first = next((line for line in str(error).splitlines() if line.strip()), f"jax has no plugin for {name}s here")
        return Platform(name, 0, problem=f"no {name} devices: {first}")
    statistics = devices[0].memory_stats() or {}
    return Platform(
        name,
        len(devices),
        kind=str(devices[0].device_kind),
        memory=statistics.get("bytes_limit"),
        version=str(devices[0].client.platform_version).splitlines()[0],
    )
