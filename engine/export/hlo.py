"""A module as files that XLA and jobs read: HLO text, a serialised HloModuleProto, StableHLO text."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from engine import worker
from engine.control import QUIET, Control
from engine.execute.rewriting import list_groups
from engine.hlo import xla
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.hlo.printing import print_here
from engine.ir.loop_copies import WITHOUT_COPIES, shows_copies
from engine.ir.module import Module
from engine.schedule.problem import Schedule

Format = Literal["hlo", "pb", "stablehlo"]

_DEADLINE = 300.0
"""Seconds that XLA may take to print a module."""


def export_bytes(
    module: Module,
    to: Format,
    schedule: Schedule | None = None,
    *,
    control: Control = QUIET,
) -> bytes:
    """The contents of a file in the format `to`, made in a worker process.

    With a `schedule` the module is written as scheduled in that order (``is_scheduled=true``); StableHLO has no
    order, and says who its devices are in ``mhlo.num_partitions``. HloModuleProto has no place for partition counts:
    readers infer them from the replica groups. Raises WorkerError when XLA does not survive, XlaError when it refuses.
    """
    ordered = module if schedule is None else with_schedule(module, schedule)
    content = worker.call("engine.export.hlo:export_in_worker", ordered, to, deadline=_DEADLINE, control=control)
    assert isinstance(content, bytes)
    return content


def export_in_worker(module: Module, to: Format, *, control: Control) -> bytes:
    control.step(0.0, f"writing {module.name} as {to}")
    match to:
        case "hlo":
            return print_here(module).encode()
        case "pb":
            return xla.check_proto(module.proto.SerializeToString()).proto
        case "stablehlo":
            return _stablehlo(module).encode()


def with_schedule(module: Module, schedule: Schedule) -> Module:
    """The module with the orders as its own schedule.

    XLA wants an order for every computation that is no fusion's: those without one in `schedule` (reducers, wrapped
    operations) keep their own, or take the proto's.
    """
    proto = HloModuleProto()
    proto.CopyFrom(module.proto)
    if not shows_copies(module):
        proto.frontend_attributes.map[WITHOUT_COPIES] = "true"
    kept = {id_: list(sequence.instruction_ids) for id_, sequence in module.proto.schedule.sequences.items()}
    fused = {
        callee
        for computation in proto.computations
        for instruction in computation.instructions
        if instruction.opcode == "fusion"
        for callee in instruction.called_computation_ids
    }
    proto.ClearField("schedule")
    for computation in proto.computations:
        if computation.id in fused:
            continue
        ids = [i.id for i in computation.instructions]
        order = schedule.orders.get(computation.id)
        own = kept.get(computation.id, ids)
        sequence = [ids[node] for node in order.nodes.tolist()] if order is not None else own
        proto.schedule.sequences[computation.id].instruction_ids.extend(sequence)
    return replace(module, proto=proto)


def _stablehlo(module: Module) -> str:
    """Groups are listed first: jaxlib 0.10.2 reads mesh-form groups back as others when there are two meshes."""
    proto = HloModuleProto()
    proto.CopyFrom(module.proto)
    for computation in proto.computations:
        for instruction in computation.instructions:
            list_groups(instruction)
    header = module.header
    return xla.to_stablehlo_text(proto.SerializeToString(), header.num_partitions, header.replica_count)
