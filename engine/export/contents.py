"""What a variant can be written as: one table of formats for the command line and the window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from engine.control import QUIET, Control
from engine.export.costs_text import costs_text
from engine.export.hlo import export_bytes
from engine.export.perfetto import trace_bytes
from engine.export.report_html import report_html
from engine.export.schedule_text import schedule_text
from engine.export.xplane import xplane_bytes
from engine.ir.module import Module
from engine.session.variant import Variant
from engine.simulate.simulator import simulate_computations


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A kind of file."""

    title: str
    suffix: str
    holds: str
    """What is in it, and who reads it: two sentences."""
    binary: bool = False


FORMATS: Mapping[str, FileFormat] = MappingProxyType(
    {
        "hlo": FileFormat(
            "HLO text",
            ".hlo",
            "The module after the plan's passes, in its order (is_scheduled=true). XLA's tools and Lapstrake read it.",
        ),
        "pb": FileFormat(
            "HloModuleProto",
            ".hlo.pb",
            "The same as a serialised proto. It has no place for the number of partitions: readers infer it.",
            binary=True,
        ),
        "stablehlo": FileFormat(
            "StableHLO",
            ".mlir",
            "The module as MLIR text, for compilers and jax.export. StableHLO has no order of instructions.",
        ),
        "perfetto": FileFormat(
            "Perfetto trace",
            ".perfetto.json.gz",
            "The timeline with transfers in flight, memory, and arrows to what waits. Opens in ui.perfetto.dev.",
            binary=True,
        ),
        "xplane": FileFormat(
            "XProf profile",
            ".xplane.pb",
            "The timeline laid out as a measured profile. XProf and jax.profiler.ProfileData open it.",
            binary=True,
        ),
        "schedule": FileFormat(
            "ScheduleProto",
            ".schedule.pbtxt",
            "When each instruction begins and ends, as XLA's --xla_dump_latency_hiding_schedule writes it. "
            "A cycle is a nanosecond.",
        ),
        "costs": FileFormat(
            "Costs (PGLE)",
            ".costs.pbtxt",
            "What each instruction takes, as a profile for XLA:GPU's scheduler: "
            "--xla_gpu_pgle_profile_file_or_directory_path.",
        ),
        "report": FileFormat(
            "Report",
            ".html",
            "Timelines, tables and reasons, beside the module as loaded, in one file. Any browser shows and prints it.",
        ),
    }
)
"""Name, as ``export --to`` takes it (the report is ``report --html``), to what it is."""


def content_of(variant: Variant, to: str, base: Variant, original: Module, control: Control = QUIET) -> bytes:
    """A file of `variant` in the format `to`; `base`, the `original` as loaded, is what a report compares with.

    Raises WorkerError when XLA does not survive printing a module, XlaError when it refuses it.
    """
    program = variant.program
    control.step(0.0, f"writing {FORMATS[to].title}")
    match to:
        case "hlo" | "pb" | "stablehlo":
            return export_bytes(program.module, to, variant.schedule, control=control)
        case "perfetto":
            return trace_bytes(variant.timeline, program.module, f"{original.name}: {variant.name}")
        case "xplane":
            return xplane_bytes(variant.timeline, program.module)
        case "schedule":
            return schedule_text(program.module, simulate_computations(program, variant.schedule)).encode()
        case "costs":
            return costs_text(program).encode()
        case _:
            shown = [variant] if variant.plan == base.plan else [base, variant]
            return report_html(original, program.machine, shown).encode()
