"""The program that a job compiles in place of its own: StableHLO, with nothing that the job's own jit says again."""

from __future__ import annotations

from engine import worker
from engine.control import Control
from engine.execute.rewriting import list_groups
from engine.hlo import xla
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.module import Module
from engine.ir.shapes import TUPLE

_DEADLINE = 300.0
"""Seconds."""


def job_program(module: Module) -> bytes:
    """StableHLO with blocking collectives, without what the job's own jit says again: aliases, donors, shardings."""
    code = worker.call("engine.export.job_program:convert_in_worker", module, deadline=_DEADLINE)
    assert isinstance(code, bytes)
    return code


def convert_in_worker(module: Module, *, control: Control) -> bytes:
    """What `job_program` gives; in a worker, since XLA's converters may abort the process."""
    control.step(0.0, "converting to StableHLO")
    proto = HloModuleProto()
    proto.CopyFrom(module.proto)
    for field in ("input_output_alias", "buffer_donor", "spmd_output_sharding", "spmd_parameters_shardings"):
        proto.ClearField(field)
    for computation in proto.computations:
        for instruction in computation.instructions:
            instruction.ClearField("sharding")
            list_groups(instruction)
            if instruction.opcode == "copy" and instruction.shape.element_type != TUPLE:
                # StableHLO has no copies: jaxlib makes them `mhlo.copy`, which compilers behind PJRT's C API refuse.
                instruction.opcode = "reshape"
    return xla.to_stablehlo(proto.SerializeToString())
