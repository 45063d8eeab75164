"""GPUs as the GPU compiler wants them described when none is attached: GpuTargetConfigProto text.

Figures: NVIDIA's data sheets and CUDA programming guide (limits by compute capability), and the descriptions that
XLA ships with its tests (openxla/xla, xla/backends/gpu/target_config/specs).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_COMMON: Mapping[str, int] = MappingProxyType(
    {
        "threads_per_block_limit": 1024,
        "threads_per_warp": 32,
        "shared_memory_per_block": 49152,
        "threads_per_core_limit": 2048,
        "block_dim_limit_x": 2147483647,
        "block_dim_limit_y": 65535,
        "block_dim_limit_z": 65535,
        "registers_per_core_limit": 65536,
        "registers_per_block_limit": 65536,
    }
)


def _configuration(name: str, major: int, clock: float, **figures: int) -> str:
    lines = "\n".join(f"  {key}: {value}" for key, value in {**_COMMON, **figures}.items())
    return (
        f"gpu_device_info {{\n{lines}\n  clock_rate_ghz: {clock}\n"
        f"  cuda_compute_capability {{ major: {major} }}\n}}\n"
        f'platform_name: "CUDA"\ndnn_version_info {{ major: 9 minor: 10 }}\ndevice_description_str: "{name}"\n'
    )


def _hopper(name: str, memory: int, bandwidth: int) -> str:
    return _configuration(
        name,
        9,
        1.98,
        core_count=132,
        fpus_per_core=128,
        shared_memory_per_core=233472,
        shared_memory_per_block_optin=232448,
        l2_cache_size=52428800,
        device_memory_size=memory,
        memory_bandwidth=bandwidth,
    )


CONFIGURATIONS: Mapping[str, str] = MappingProxyType(
    {
        "a100": _configuration(
            "NVIDIA A100-SXM4-80GB",
            8,
            1.41,
            core_count=108,
            fpus_per_core=64,
            shared_memory_per_core=167936,
            shared_memory_per_block_optin=166912,
            l2_cache_size=41943040,
            device_memory_size=85_899_345_920,
            memory_bandwidth=2_039_000_000_000,
        ),
        "h100": _hopper("NVIDIA H100 80GB HBM3", 84_942_979_072, 3_352_320_000_000),
        "h200": _hopper("NVIDIA H200", 150_754_820_096, 4_800_000_000_000),
    }
)
"""By the generation that targets name."""
