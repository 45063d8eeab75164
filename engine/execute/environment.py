"""The environment of a process that runs modules: XLA and JAX read it once, before anything else happens."""

from __future__ import annotations

import os
from collections.abc import Mapping

PLATFORMS = ("cpu", "gpu", "tpu")


def environment(devices: int, platform: str, rendezvous: float) -> Mapping[str, str]:
    """Variables for a worker with `devices` CPU devices (or the ones attached, for other platforms).

    A collective that waits longer than `rendezvous` seconds for the other devices is a deadlock: XLA aborts. Its own
    limit of 60 s also hits slow programs. `NPROC` sizes XLA's thread pools: with fewer than two threads for each
    device, devices that run ahead of each other leave none for the rendezvous and it aborts as well.
    """
    warn = max(1, int(rendezvous / 2))
    terminate = max(1, int(rendezvous) - warn)
    flags = [
        os.environ.get("XLA_FLAGS", ""),
        f"--xla_cpu_collective_call_warn_stuck_timeout_seconds={warn}",
        f"--xla_cpu_collective_call_terminate_timeout_seconds={terminate}",
    ]
    cpu = {
        "JAX_NUM_CPU_DEVICES": str(devices),
        "NPROC": str(max(2 * devices, os.cpu_count() or 1)),
        "XLA_FLAGS": " ".join(flags).strip(),
    }
    return {
        **(cpu if platform == "cpu" else {}),
        "JAX_PLATFORMS": {"gpu": "cuda"}.get(platform, platform),
        "JAX_ENABLE_X64": "1",
        "JAX_ENABLE_COMPILATION_CACHE": "0",
    }
