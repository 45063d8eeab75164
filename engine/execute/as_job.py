"""Compiles and runs a module the way a job runs a bundle: its StableHLO inlined into a `shard_map`, compiled by jit
with every pass on, in the chosen order where the compiler can be asked for one. What accelerators always run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.sharding import Mesh

from engine.errors import UnsupportedError
from engine.execute.ordering import reordered
from engine.execute.running import Executable, failure
from engine.export.payload.lapstrake_runtime.program import jitted
from engine.hlo import xla
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir import shapes
from engine.ir.module import Header
from engine.profile.profile import RUN_AS_JOB

_NAME = RUN_AS_JOB.removeprefix("jit_")


class JobExecutable(Executable):
    """A module compiled by jit; used as an `Executable` is."""

    def _load(self, proto: HloModuleProto, header: Header, orders: Mapping[str, Sequence[str]]) -> Any:
        if header.replica_count > 1:
            raise UnsupportedError(
                f"{proto.name} has {header.replica_count} replicas: a job runs partitions, each with a part of the data"
            )
        lowered = self._jitted(proto).lower(*self._shapes(proto))
        if orders:
            with reordered(orders, self._devices[0].platform) as reordering:
                self._compiled = lowered.compile()
            loaded = self._compiled.runtime_executable()
            self._read_order(loaded, proto, orders, reordering)
        else:
            self._compiled = lowered.compile()
            loaded = self._compiled.runtime_executable()
        return loaded

    def execute(self, arguments: list[Any]) -> list[list[Any]]:
        try:
            results = jax.block_until_ready(self._compiled(*arguments))
        except RuntimeError as error:
            raise failure("running failed", error) from None
        return [[self._piece(result, device) for device in self._devices] for result in results]

    @staticmethod
    def _piece(result: Any, device: Any) -> Any:
        return next(shard.data for shard in result.addressable_shards if shard.device == device)

    def _jitted(self, proto: HloModuleProto) -> Any:
        program = HloModuleProto()
        program.CopyFrom(proto)
        for computation in program.computations:
            for instruction in computation.instructions:
                if instruction.opcode == "copy":  # which compilers behind PJRT's C interface refuse
                    instruction.opcode = "reshape"
        # Every device has data of its own, in arrays that claim to be replicated: jit does not look.
        each = {"kept": True, "spec": [], "donated": False}
        arguments = [{**each, **leaf} for leaf in _leaves(proto.host_program_shape.parameters)]
        results = [{**each, **leaf} for leaf in _leaves([proto.host_program_shape.result])]
        code = xla.to_stablehlo(program.SerializeToString())
        mesh = Mesh(self.mesh_devices, ("device",))
        signature = {"arguments": arguments, "results": results}
        return jitted(_NAME, signature, code, mesh, [False] * len(results))

    def _shapes(self, proto: HloModuleProto) -> list[Any]:
        return [
            jax.ShapeDtypeStruct(tuple(leaf["local_shape"]), leaf["dtype"], sharding=self._sharding)
            for leaf in _leaves(proto.host_program_shape.parameters)
        ]


def _leaves(of: Any) -> list[dict[str, Any]]:
    return [
        {"local_shape": list(leaf.dimensions), "dtype": str(shapes.numpy_dtype(leaf.element_type))}
        for shape in of
        for _, leaf in shapes.leaves(shape)
    ]
