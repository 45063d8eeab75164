"""Runs partitioned modules on CPU devices in the test's own process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import _jax, xla_client

from engine.hlo.printing import print_here
from engine.hlo.reading import read_here
from engine.hlo.verifying import verify
from engine.hlo.xla import to_stablehlo
from engine.ir.module import Module

Array = npt.NDArray[Any]


@cache
def _client(devices: int) -> Any:
    return xla_client.make_cpu_client(num_devices=devices)


def reloaded(module: Module) -> Module:
    """The module after a trip through XLA's printer and parser; its structure is checked on the way."""
    verify(module.proto, "the decomposed module")
    return read_here(print_here(module).encode())


def run(module: Module, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Outputs by device, for inputs by device. The module is partitioned, or replicated, already."""
    header = module.header
    client = _client(header.devices)
    devices = client.devices()
    options = _jax.CompileOptions()
    options.num_replicas, options.num_partitions = header.replica_count, header.num_partitions
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = header.replica_count, header.num_partitions
    build.use_spmd_partitioning = header.num_partitions > 1
    ids = np.array([d.id for d in devices]).reshape(header.replica_count, header.num_partitions)
    build.device_assignment = _jax.DeviceAssignment.create(ids)
    build.debug_options.xla_disable_hlo_passes = "spmd-partitioning,sharding-propagation"
    build.debug_options.xla_backend_optimization_level = 0
    build.debug_options.xla_llvm_disable_expensive_passes = True
    code = to_stablehlo(module.proto.SerializeToString())
    executable = client.compile_and_load(code, _jax.DeviceList(tuple(devices)), options)
    sharding = NamedSharding(Mesh(np.array(devices), ("d",)), PartitionSpec())
    arguments = []
    for parts in zip(*inputs, strict=True):
        placed = [jax.device_put(part, device) for part, device in zip(parts, devices, strict=True)]
        arguments.append(jax.make_array_from_single_device_arrays(placed[0].shape, sharding, placed))
    results = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    return [[np.asarray(result[d]) for result in results] for d in range(len(devices))]
