"""What a production compiler can be asked to compile for without a device: ``tpu:v4:2x2x2``, ``cuda:h100:1x1x8``."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from engine.errors import UnsupportedError, UsageError


@dataclass(frozen=True, slots=True)
class Generation:
    """Devices of one kind that a compiler knows by name."""

    chip: str
    """Our chip of that kind (``lapstrake chips``)."""
    dimensions: int
    """Of the torus; for GPUs of ``HOSTSxPROCESSESxGPUS``."""
    devices_per_chip: int = 1
    cubes: bool = False
    """Whether slices of whole cubes of 4x4x4 chips, and only those, have links from their last chips to their first."""


TPU: Mapping[str, Generation] = MappingProxyType(
    {
        "v2": Generation("tpu-v2", 2, devices_per_chip=2),
        "v3": Generation("tpu-v3", 2, devices_per_chip=2),
        "v4": Generation("tpu-v4", 3, cubes=True),
        "v5e": Generation("tpu-v5e", 2),
        "v5p": Generation("tpu-v5p", 3, cubes=True),
        "v6e": Generation("tpu-v6e", 2),
    }
)
CUDA: Mapping[str, Generation] = MappingProxyType(
    {"a100": Generation("a100", 3), "h100": Generation("h100", 3), "h200": Generation("h200", 3)}
)
_PLATFORMS: Mapping[str, Mapping[str, Generation]] = MappingProxyType({"tpu": TPU, "cuda": CUDA})
_PACKAGES: Mapping[str, str] = MappingProxyType({"tpu": "libtpu", "cuda": "jax_plugins.xla_cuda12"})
_EXPECTED = "a target is written tpu:v4:2x2x2 or cuda:h100:1x1x8"


@dataclass(frozen=True, slots=True)
class Target:
    """Devices to compile for. The text form is ``platform:generation:shape``; `parse` and `str` are inverse."""

    platform: str
    """``tpu`` or ``cuda``."""
    generation: str
    shape: tuple[int, ...]

    @staticmethod
    def parse(text: str) -> Target:
        """Raises UsageError for anything but the text form of devices that are known."""
        pieces = text.strip().lower().split(":")
        if len(pieces) != 3 or pieces[0] not in _PLATFORMS:
            raise UsageError(f"{_EXPECTED}, but '{text}' came")
        platform, generation, written = pieces
        known = _PLATFORMS[platform]
        if generation not in known:
            raise UsageError(f"for {platform} there are {', '.join(known)}, but '{generation}' came in '{text}'")
        sizes = written.split("x")
        dimensions = known[generation].dimensions
        if not all(size.isdecimal() and int(size) > 0 for size in sizes) or len(sizes) != dimensions:
            example = "x".join("2" * dimensions)
            raise UsageError(
                f"{platform}:{generation} has {dimensions} dimensions, such as {example}, but '{written}' came"
            )
        return Target(platform, generation, tuple(map(int, sizes)))

    def __str__(self) -> str:
        return f"{self.platform}:{self.generation}:{self.size}"

    @property
    def size(self) -> str:
        return "x".join(map(str, self.shape))

    @property
    def known(self) -> Generation:
        return _PLATFORMS[self.platform][self.generation]

    @property
    def devices(self) -> int:
        return prod(self.shape) * self.known.devices_per_chip

    @property
    def topology(self) -> str:
        """The same devices as `engine.chips` writes them: a torus, or ``NODESxGPUS``."""
        if self.platform == "tpu":
            return self.size
        return f"{prod(self.shape[:-1])}x{self.shape[-1]}"

    @property
    def wraps(self) -> bool:
        """Whether the torus closes in every dimension."""
        return self.known.cubes and all(size % 4 == 0 for size in self.shape)

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables for a worker that compiles: no device is looked for, no metadata server asked."""
        shared = {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "0", "JAX_ENABLE_X64": "1"}
        if self.platform == "cuda":
            return {**shared, "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}
        return {
            **shared,
            "TPU_SKIP_MDS_QUERY": "1",
            "TPU_ACCELERATOR_TYPE": "v4-8",
            "TPU_WORKER_HOSTNAMES": "localhost",
            "TPU_WORKER_ID": "0",
            "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        }


def installed(platform: str) -> bool:
    """Whether the compiler for a platform, ``tpu`` or ``cuda``, is there."""
    return _found(_PACKAGES[platform])


def check_installed(target: Target) -> None:
    """Raises UnsupportedError, with what to install, where the compiler for `target` is missing."""
    if not _found(_PACKAGES[target.platform]):
        raise UnsupportedError(
            f"compiling for {target} needs the optional {_PACKAGES[target.platform]}, which is not installed; "
            f"install it with: pip install 'lapstrake[{target.platform}]'"
        )


def _found(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False
