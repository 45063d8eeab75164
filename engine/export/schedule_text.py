"""A simulated schedule as XLA's ScheduleProto text: the format of its latency-hiding scheduler's dump.

The module, then for every computation when each instruction begins and ends. Our cycles are nanoseconds
(`cycles_per_microsecond: 1000`): the model has no clock of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from google.protobuf import text_format

from engine.cost.compiler_schedule import PREDICTED_TEXT
from engine.ir.module import Module
from engine.simulate.run import ComputationRun

_CYCLES_PER_US = 1000
_PS_PER_CYCLE = 1000


def schedule_text(module: Module, runs: Mapping[int, ComputationRun]) -> str:
    """Text ScheduleProto of `runs`, one for each computation of `module` that was simulated."""
    lines = [PREDICTED_TEXT, "hlo_module {", *_indented(text_format.MessageToString(module.proto)), "}"]
    for computation, run in runs.items():
        lines += _computation(computation, run)
    return "\n".join(lines) + "\n"


def _indented(text: str) -> Iterator[str]:
    return (f"  {line}" for line in text.splitlines())


def _computation(computation: int, run: ComputationRun) -> Iterator[str]:
    live = run.plan.live.tolist()
    yield "computation_schedules {"
    yield f"  computation_id: {computation}"
    for position, node in enumerate(run.plan.order.nodes.tolist()):
        yield "  instructions {"
        yield f"    id: {int(run.graph.ids[node])}"
        yield f"    start_timestamp_cycles: {_cycles(int(run.start[node]))}"
        yield f"    end_timestamp_cycles: {_cycles(int(run.end[node]))}"
        yield f"    memory_usage_after: {live[position]}"
        yield "  }"
    yield "  scheduler_statistics {"
    yield f"    total_wasted_cycles: {_cycles(run.totals.exposed)}"
    yield f"    total_cycles: {_cycles(run.totals.makespan)}"
    yield f"    memory_pressure_peak: {run.extra}"
    yield "  }"
    yield f"  cycles_per_microsecond: {_CYCLES_PER_US}"
    yield "}"


def _cycles(picoseconds: int) -> str:
    """Exact: three decimals are picoseconds."""
    whole, rest = divmod(picoseconds, _PS_PER_CYCLE)
    return f"{whole}.{rest:03d}".rstrip("0").rstrip(".")
