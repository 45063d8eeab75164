"""Compiles modules with a production compiler, for devices that need not exist, in a process of its own.

The compilers come as wheels (extras `tpu` and `cuda`) and abort on what they do not expect: an abort of the worker
ends as a WorkerError that quotes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from engine import worker
from engine.control import QUIET, Control
from engine.cost.scheduled_module import ScheduledModule, read_scheduled_module
from engine.errors import UnsupportedError, UsageError, WorkerError
from engine.execute.targets import Target, check_installed
from engine.ir.module import Header, Module

DEADLINE = 900.0
"""Seconds that a compilation may take; layers unrolled in large modules take minutes."""

Options = Mapping[str, bool | int | str]
"""Options of the compiler by name, values as its own types."""

Orders = Mapping[str, Sequence[str]]
"""Computation name → names of all its instructions in the order wanted."""

NO_OPTIONS: Options = MappingProxyType({})
NO_ORDERS: Orders = MappingProxyType({})

ASYNCHRONOUS_WHOLE: Options = MappingProxyType(
    {"xla_enable_async_all_gather": "ENABLED", "xla_tpu_enable_async_all_to_all": True}
)
"""Gathers and all-to-alls that stay whole can be hidden, for plans of ours as for the compiler's; both are blocking
by default (libtpu 0.0.51)."""

WITHOUT_DECOMPOSITION: Options = MappingProxyType(
    {
        **ASYNCHRONOUS_WHOLE,
        "xla_tpu_enable_windowed_einsum_for_all_gather": False,
        "xla_tpu_enable_windowed_einsum_for_reduce_scatter": False,
        "xla_tpu_all_gather_collective_matmul_mode": "NONE",
        "xla_tpu_reduce_scatter_collective_matmul_mode": "NONE",
    }
)
"""The TPU compiler with collectives whole, asynchronous where it can: of a module with nothing asynchronous it writes
no schedule."""

DECOMPOSED_LATE: Options = MappingProxyType(
    {
        "xla_tpu_all_gather_collective_matmul_mode": "POST_SPMD",
        "xla_tpu_reduce_scatter_collective_matmul_mode": "POST_SPMD",
    }
)
"""The TPU compiler's own decomposition of modules that are partitioned already: by default it decomposes while it
partitions, which a partitioned module is past."""


class Unpredicted(UnsupportedError):
    """The compiler wrote no schedule: nothing in the module is asynchronous."""


@dataclass(frozen=True, slots=True)
class Unpartitioned:
    """A program before partitioning, as StableHLO bytecode with shardings: compilers partition it themselves."""

    name: str
    code: bytes
    partitions: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a production compiler made of a module."""

    target: Target
    text: str
    """Optimised HLO, scheduled; empty where the compilation ended with the schedule."""
    schedule: str
    """The compiler's predicted schedule, ScheduleProto text; empty where it wrote none: nothing is asynchronous."""
    seconds: float
    versions: Mapping[str, str]
    """Of the packages that took part."""
    options: Options = field(default_factory=dict)
    pinned: tuple[str, ...] = ()
    """Computations whose order was forced."""
    notes: tuple[str, ...] = ()
    """What of the module the compiler was not told, in sentences."""
    replicas: int = 1
    """Of the target's devices; the rest is partitions."""

    def predicted(self) -> ScheduledModule:
        """The schedule, read. Raises Unpredicted where there is none."""
        if not self.schedule:
            raise Unpredicted(
                f"the compiler for {self.target} predicted no schedule: nothing in the module is asynchronous"
            )
        header = Header(self.target.devices // self.replicas, self.replicas)
        return read_scheduled_module(
            self.schedule, f"the schedule that the compiler for {self.target} predicts", header
        )


def compile_module(
    program: Module | Unpartitioned,
    target: Target,
    *,
    options: Options = NO_OPTIONS,
    placement: Sequence[int] | None = None,
    orders: Orders = NO_ORDERS,
    scheduled_only: bool = False,
    deadline: float = DEADLINE,
    control: Control = QUIET,
) -> Compiled:
    """Compile a partitioned module as it is, or an unpartitioned program, for `target`.

    `placement`: the chip of each of the module's devices, numbered along the target's first dimension fastest; by
    default in order. `orders` forces the order of the named computations, where the versions allow. With
    `scheduled_only` the compilation ends once the schedule is there, a fraction of the time, where the versions allow.

    Raises UnsupportedError for a compiler that is not installed or versions that cannot force an order, UsageError
    for a module that is partitioned for another number of devices, WorkerError for what the compiler refuses, where
    it aborts, or for no end within `deadline` seconds, Cancelled.
    """
    check_installed(target)
    needed = program.header.devices if isinstance(program, Module) else program.partitions
    if needed != target.devices:
        raise UsageError(f"{program.name} is partitioned for {needed} devices, but {target} has {target.devices}")
    try:
        made = worker.call(
            "engine.execute.compilers:compile_in_worker",
            program,
            target,
            dict(options),
            None if placement is None else [int(chip) for chip in placement],
            {name: list(order) for name, order in orders.items()},
            scheduled_only,
            environment=target.environment,
            deadline=deadline,
            control=control,
        )
    except worker.TimedOut:
        raise WorkerError(f"compiling {program.name} for {target} did not end within {deadline:g} s") from None
    except worker.Died as error:
        raise WorkerError(f"the compiler for {target} aborted on {program.name}: {error}") from None
    assert isinstance(made, Compiled)
    return made
