"""Compiles a partitioned module for attached devices as it is, and runs it: inside a worker process only.

XLA insists on its SPMD partitioner when a module has several partitions, and the partitioner refuses `partition-id`;
so the passes that partition are switched off for the compilation. Every device gets data of its own: an array that
claims to be replicated, made of different pieces, which XLA does not check.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import _jax

from engine.errors import OutOfMemory, UnsupportedError, WorkerError
from engine.execute.memory import check_fits
from engine.execute.ordering import SWITCHED_OFF, OrderKept, Reordering, order_kept, reordered
from engine.hlo import xla
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.groups import written_lists
from engine.ir.module import Header
from engine.profile.attribution import own_tag

Arrays = Sequence[Sequence[npt.NDArray[Any]]]
"""Arrays by position (parameter or result leaf), then by device."""

NO_ORDERS: Mapping[str, Sequence[str]] = MappingProxyType({})

_NOT_PARTITIONED = ("spmd-partitioning", "sharding-propagation")


class Executable:
    """A compiled module on the devices it needs."""

    def __init__(
        self,
        proto: HloModuleProto,
        header: Header,
        orders: Mapping[str, Sequence[str]] = NO_ORDERS,
        *,
        quickly: bool = False,
    ) -> None:
        """Compile. `proto` must be one that `legalize` gave. `quickly` leaves out what makes code fast: to run it once.

        With `orders` (computation name → instruction names) on CPU devices, the executable is issued in them: `proto`
        must be tagged (`engine.profile.attribution.tag`); `order` says afterwards whether it is.

        Raises UnsupportedError for too few devices or memory, WorkerError when XLA refuses the module.
        """
        self._devices = attached(header.devices)
        self._quickly = quickly
        self.kind = str(self._devices[0].device_kind)
        """What the runtime calls a device."""
        self.order: OrderKept | None = None
        """Whether the executable is issued in the order asked for; None where none was."""
        self.mesh_devices = np.array(self._devices)
        self._sharding = NamedSharding(Mesh(self.mesh_devices, ("device",)), PartitionSpec())
        try:
            self._loaded = self._load(proto, header, orders)
        except xla.XlaError as error:
            raise WorkerError(f"XLA cannot convert {proto.name}: {first_line(error)}") from None
        except RuntimeError as error:
            raise failure(f"XLA cannot compile {proto.name}", error) from None
        check_groups(proto, self.optimised())
        self._check_memory(proto)

    def _load(self, proto: HloModuleProto, header: Header, orders: Mapping[str, Sequence[str]]) -> Any:
        code = xla.to_stablehlo(proto.SerializeToString())
        if not orders:
            return self._compile(code, _options(self._devices, header, (), quickly=self._quickly))
        with reordered(orders, self._devices[0].platform) as reordering:
            loaded = self._compile(code, _options(self._devices, header, SWITCHED_OFF))
        self._read_order(loaded, proto, orders, reordering)
        return loaded

    def _compile(self, code: bytes, options: Any) -> Any:
        return self._devices[0].client.compile_and_load(code, _jax.DeviceList(tuple(self._devices)), options)

    def _read_order(
        self, loaded: Any, proto: HloModuleProto, orders: Mapping[str, Sequence[str]], reordering: Reordering
    ) -> None:
        asked = {own_tag(i) or i.name: i.opcode for c in proto.computations for i in c.instructions}
        self.order = replace(order_kept(_read_back(loaded), orders, asked), problem=reordering.outcome)

    def optimised(self) -> HloModuleProto:
        """The module that XLA made of it, in the order in which it is issued."""
        return _read_back(self._loaded)

    def place(self, inputs: Iterable[Sequence[npt.NDArray[Any]]]) -> list[Any]:
        """Inputs, by flat parameter and device, as arguments on the devices; `execute` may be given them repeatedly.

        Devices get copies: what makes `inputs` one by one needs no memory for all of them twice.
        """
        placed = []
        try:
            for pieces in inputs:
                held = [jax.device_put(piece, device) for piece, device in zip(pieces, self._devices, strict=True)]
                placed.append(jax.make_array_from_single_device_arrays(held[0].shape, self._sharding, held))
        except RuntimeError as error:
            raise failure("the inputs cannot be placed", error) from None
        return placed

    def execute(self, arguments: list[Any]) -> list[list[Any]]:
        """One execution, waited for: arrays on the devices, by result leaf and device.

        Raises WorkerError when XLA reports a failure (out of memory, …).
        """
        try:
            results = self._loaded.execute_sharded(arguments).disassemble_into_single_device_arrays()
            for pieces in results:
                for piece in pieces:
                    piece.block_until_ready()
        except RuntimeError as error:
            raise failure("running failed", error) from None
        made: list[list[Any]] = results
        return made

    def run(self, inputs: Arrays) -> list[list[npt.NDArray[Any]]]:
        """`place` and `execute`; the results as numpy arrays."""
        return [[np.asarray(piece) for piece in pieces] for pieces in self.execute(self.place(inputs))]

    def profile(self, arguments: list[Any], count: int) -> bytes:
        """An XSpace of `count` executions, one after the other."""
        profiler = import_module("jaxlib._profiler")
        options = profiler.ProfileOptions()
        options.host_tracer_level, options.python_tracer_level = 1, 0
        session = profiler.ProfilerSession(options)
        for _ in range(count):
            self.execute(arguments)
        made: bytes = session.stop()
        return made

    def _check_memory(self, proto: HloModuleProto) -> None:
        statistics = self._loaded.get_compiled_memory_stats()
        each = (
            statistics.argument_size_in_bytes
            + statistics.output_size_in_bytes
            + statistics.temp_size_in_bytes
            - statistics.alias_size_in_bytes
        )
        if self._devices[0].platform == "cpu":
            check_fits(proto.name, each * len(self._devices), len(self._devices))


def attached(needed: int) -> list[Any]:
    """The first `needed` devices of the platform that this process was started for.

    Raises UnsupportedError where there are fewer, with what can be done instead.
    """
    try:
        available = jax.devices()
    except (RuntimeError, AssertionError) as error:  # jax asserts that a plugin for GPUs is installed
        reason = first_line(error) if str(error).strip() else "jax has no plugin for them here"
        raise UnsupportedError(
            f"no devices of that platform are attached: {reason}; lapstrake devices lists what there is"
        ) from None
    if len(available) < needed:
        few = "device is" if len(available) == 1 else "devices are"
        raise UnsupportedError(
            f"the module runs on {needed} devices, but only {len(available)} {available[0].platform} {few} attached: "
            "run it on CPU devices for its numbers (--platform cpu), or one device's compute alone for times of "
            "single operations (--alone)"
        )
    return list(available[:needed])


def _read_back(loaded: Any) -> HloModuleProto:
    return HloModuleProto.FromString(loaded.hlo_modules()[0].as_serialized_hlo_module_proto())


def _options(devices: Sequence[Any], header: Header, switched_off: Sequence[str], *, quickly: bool = False) -> Any:
    options = _jax.CompileOptions()
    options.num_replicas = header.replica_count
    options.num_partitions = header.num_partitions
    build = options.executable_build_options
    build.num_replicas = header.replica_count
    build.num_partitions = header.num_partitions
    build.use_spmd_partitioning = header.num_partitions > 1
    build.use_shardy_partitioner = False
    build.debug_options.xla_disable_hlo_passes = ",".join((*_NOT_PARTITIONED, *switched_off))
    if quickly:  # measured on the samples: two fifths of the time
        build.debug_options.xla_backend_optimization_level = 0
        build.debug_options.xla_llvm_disable_expensive_passes = True
    ids = np.array([device.id for device in devices]).reshape(header.replica_count, header.num_partitions)
    build.device_assignment = _jax.DeviceAssignment.create(ids)
    return options


def check_groups(asked: HloModuleProto, compiled: HloModuleProto) -> None:
    """Raises WorkerError where XLA's converter changed replica groups: results would be wrong without a word."""
    allowed = _groups(asked)
    for kind, groups in _groups(compiled).items():
        strange = groups - allowed.get(kind, set())
        if strange and allowed.get(kind):
            raise WorkerError(
                f"XLA changed the replica groups of a collective ({kind}) while converting it, to {min(strange)}: its "
                "results would be wrong. Please report this with the module"
            )


def _groups(proto: HloModuleProto) -> Mapping[str, set[tuple[tuple[int, ...], ...]]]:
    found: dict[str, set[tuple[tuple[int, ...], ...]]] = {}
    for computation in proto.computations:
        for instruction in computation.instructions:
            lists = written_lists(instruction)
            if lists:
                kind = instruction.opcode.removesuffix("-start")
                found.setdefault(kind, set()).add(tuple(sorted(lists)))
    return found


def failure(doing: str, error: RuntimeError) -> WorkerError:
    """What XLA says of a failure: OutOfMemory where that was the reason."""
    said = f"{doing}: {first_line(error)}"
    return OutOfMemory(said) if "RESOURCE_EXHAUSTED" in said else WorkerError(said)


def first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
