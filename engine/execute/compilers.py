"""The worker's side of `engine.execute.compiling`: topologies, options and the call into the compiler."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import numpy as np
from jax.experimental import topologies
from jaxlib import _jax
from jaxlib.mlir import ir

from engine.control import Control
from engine.errors import UnsupportedError, WorkerError
from engine.execute.compiling import Compiled, Unpartitioned
from engine.execute.pinning import Pin
from engine.execute.portable import context, portable, refused_alias
from engine.execute.stopping import Stop
from engine.execute.targets import Target
from engine.execute.transforms import Stage, register
from engine.hlo import xla
from engine.ir.module import Module

_PARTITIONERS = {"tpu": "tpu-spmd-partitioning", "cuda": "spmd-partitioning,sharding-propagation"}
_PACKAGES = {"tpu": ("libtpu",), "cuda": ("jax-cuda12-pjrt", "jax-cuda12-plugin")}
_pin = Pin()
_stop = Stop()


def compile_in_worker(
    program: Module | Unpartitioned,
    target: Target,
    options: Mapping[str, bool | int | str],
    placement: Sequence[int] | None,
    orders: Mapping[str, Sequence[str]],
    scheduled_only: bool,
    *,
    control: Control,
) -> Compiled:
    """See `compile_module`."""
    control.step(0.0, f"compiling {program.name} for {target}")
    devices = _devices(target)
    placed = devices if placement is None else [devices[chip] for chip in placement]
    if orders:
        _register_pin(target.platform)
    _stop.wanted = scheduled_only and _can_stop(target.platform)
    apart: set[int] = set()
    while True:
        _pin.ask(orders)
        try:
            made = _attempt(program, target, placed, options, apart)
            break
        except _RefusedAlias as refused:
            if refused.parameter in apart:
                raise WorkerError(str(refused)) from None
            apart.add(refused.parameter)
    if _pin.refused is not None:
        raise _pin.refused
    if orders and not _pin.pinned:
        raise UnsupportedError(f"the compiler for {target} did not ask for the order of {program.name}")
    return replace(made, pinned=tuple(_pin.pinned))


class _RefusedAlias(WorkerError):
    """The compiler cannot write a result over this parameter."""

    def __init__(self, message: str, parameter: int) -> None:
        super().__init__(message)
        self.parameter = parameter


def _attempt(
    program: Module | Unpartitioned,
    target: Target,
    devices: Sequence[Any],
    options: Mapping[str, bool | int | str],
    apart: Collection[int],
) -> Compiled:
    code, notes = portable(program, apart) if isinstance(program, Module) else (program.code, ())
    with TemporaryDirectory(prefix="lapstrake-compiler-") as folder:
        asked = {**options, "xla_dump_to": folder, "xla_dump_latency_hiding_schedule": True}
        begun = time.perf_counter()
        text = ""
        try:
            executable = _compile(program, code, target, devices, asked)
            text = xla.compiled_text(executable.hlo_modules()[0])
        except (RuntimeError, ValueError, ir.MLIRError) as error:
            if Stop.SAID not in str(error):
                said = f"the compiler for {target} refuses {program.name}: {_said(error)}"
                parameter = refused_alias(str(error))
                raise (WorkerError(said) if parameter is None else _RefusedAlias(said, parameter)) from None
        seconds = time.perf_counter() - begun
        schedules = sorted(Path(folder).glob("*schedule.txt"))
        schedule = schedules[0].read_text(errors="replace") if schedules else ""
    replicas = program.header.replica_count if isinstance(program, Module) else 1
    return Compiled(
        target, text, schedule, seconds, _versions(target.platform), dict(options), notes=notes, replicas=replicas
    )


def _compile(
    program: Module | Unpartitioned, code: bytes, target: Target, devices: Sequence[Any], asked: Mapping[str, Any]
) -> Any:
    options = _jax.CompileOptions()
    options.num_replicas, options.num_partitions = 1, len(devices)
    if isinstance(program, Module):
        options.num_replicas, options.num_partitions = program.header.replica_count, program.header.num_partitions
        disabled = [str(asked.get("xla_disable_hlo_passes", "")), _PARTITIONERS[target.platform]]
        asked = {**asked, "xla_disable_hlo_passes": ",".join(filter(None, disabled))}
    options.env_option_overrides = list(asked.items())
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = options.num_replicas, options.num_partitions
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = isinstance(program, Unpartitioned)
    ids = np.array([device.id for device in devices]).reshape(options.num_replicas, options.num_partitions)
    build.device_assignment = _jax.DeviceAssignment.create(ids)
    with context():
        return devices[0].client.compile(ir.Module.parse(code), _jax.DeviceList(tuple(devices)), options)


@cache
def _devices(target: Target) -> list[Any]:
    """Devices by chip number, the target's first dimension fastest."""
    try:
        found = topology_of(target).devices
    except (RuntimeError, ValueError, NotImplementedError) as error:
        raise UnsupportedError(f"the compiler has no devices {target}: {_first_line(error)}") from None
    if len(found) != target.devices:
        raise UnsupportedError(f"{target} should have {target.devices} devices, but the compiler lists {len(found)}")
    if target.platform == "tpu":
        return sorted(found, key=lambda device: (*reversed(device.coords), device.core_on_chip))
    return list(found)


def topology_of(target: Target) -> Any:
    """jax's description of the devices that `target` names, for `jax.jit` to lower for."""
    if target.platform == "cuda":
        config = import_module("engine.execute.gpu_targets").CONFIGURATIONS[target.generation]
        return topologies.get_topology_desc(platform="cuda", target_config=config, topology=target.size)
    more: dict[str, Any] = {}
    if target.generation == "v4":
        more["chip_config_name"] = "megacore"
    if target.wraps:
        more["wrap"] = (True,) * len(target.shape)
    hosts = (2, 2, 1)[: len(target.shape)]
    if any(size % host for size, host in zip(target.shape, hosts, strict=True)):
        more["chips_per_host_bounds"] = (1, 1, 1)
    return topologies.get_topology_desc(platform="tpu", topology_name=f"{target.generation}:{target.size}", **more)


@cache
def _register_pin(platform: str) -> None:
    register(_pin, platform, _library(platform))


@cache
def _can_stop(platform: str) -> bool:
    """Whether the compiler can be stopped behind its scheduler; the GPU compiler ends soon by itself."""
    if platform != "tpu":
        return False
    try:
        register(_stop, platform, _library(platform), Stage.POST_SCHEDULER)
    except UnsupportedError:
        return False
    return True


def _library(platform: str) -> str:
    if platform == "tpu":
        return str(import_module("libtpu").get_library_path())
    package = import_module("jax_plugins.xla_cuda12")
    return str(Path(str(package.__file__)).parent / "xla_cuda_plugin.so")


def _versions(platform: str) -> dict[str, str]:
    found = {"jax": jax.__version__, "jaxlib": xla.version()}
    for package in _PACKAGES[platform]:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def _said(error: Exception) -> str:
    """The first line, and the one that has the details if there is one."""
    details = [line.strip() for line in str(error).splitlines() if " error: " in line]
    return " ".join(dict.fromkeys((_first_line(error), *details[:1])))


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
