"""What the window does, as the command that does the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from engine.execute.timing import RunOptions
from engine.quantities import bytes_text, parse_bytes
from engine.session.choices import DIMENSIONS
from engine.session.given import GivenFile, RecordingKind
from engine.session.plan import MachineSpec, Plan
from engine.session.session import Entry
from engine.session.shell import shell_line


def report_command(path: str, entry: Entry, *, html: str = "") -> str:
    """Reports an entry's plan; as a file where `html` names one."""
    words = ["lapstrake", "report", path, *machine_words(entry.machine), *plan_words(entry.plan)]
    words += ["--html", html] if html else []
    recording = entry.recording
    if recording is not None and recording.kind == RecordingKind.PROFILE:
        return shell_line([*words, *_costs(entry.machine.costs), "--measured", recording.file.path])
    return shell_line([*words, *cost_words(entry)])


def export_command(path: str, entry: Entry, to: str, out: str) -> str:
    """Writes an entry's variant in one of `engine.export.contents`' formats."""
    if to == "report":
        return report_command(path, entry, html=out)
    words = ["lapstrake", "export", path, *machine_words(entry.machine), *plan_words(entry.plan)]
    return shell_line([*words, "--to", to, "-o", out, *cost_words(entry)])


def tune_command(
    path: str,
    entry: Entry,
    out: str,
    *,
    dimensions: Collection[str] = (),
    memory_cap: int | None = None,
    time_limit: float | None = None,
    target: str = "",
    check: bool = True,
    order_only: bool = False,
) -> str:
    """Searches from an entry's plan and bundles; without `dimensions`, bundles that plan."""
    words = ["lapstrake", "tune", path, *machine_words(entry.machine)]
    if order_only:
        words += ["--order-only"]
    else:
        words += plan_words(entry.plan, cap=False)
        words += ["--search", ",".join(name for name in DIMENSIONS if name in dimensions)] if dimensions else []
    words += ["--memory-cap", _bytes(memory_cap)] if memory_cap is not None else []
    words += ["--time-limit", f"{time_limit:g}"] if time_limit is not None else []
    words += ["--target", target] if target else []
    words += [] if check else ["--no-verify"]
    return shell_line([*words, "-o", out, *cost_words(entry)])


def run_command(path: str, entry: Entry, options: RunOptions, *, profile: str = "") -> str:
    """Times the module as loaded and an entry's plan in turn; `profile`: where measured times go besides."""
    words = ["lapstrake", "run", path, *machine_words(entry.machine), *plan_words(entry.plan)]
    words += [*_run_words(options), "--repeats", str(options.repeats)]
    words += ["--alone"] if options.alone else []
    words += ["--as-job"] if options.as_job else []
    words += ["--profile", profile] if profile else []
    return shell_line([*words, *cost_words(entry)])


def verify_command(path: str, entry: Entry, options: RunOptions, seeds: int) -> str:
    """Compares the numbers of an entry's plan with those of the module as loaded, on so many sets of inputs."""
    words = ["lapstrake", "verify", path, *machine_words(entry.machine), *plan_words(entry.plan)]
    words += [*_run_words(options), "--seeds", str(seeds)]
    return shell_line([*words, *cost_words(entry)])


def compile_command(path: str, entry: Entry, target: str) -> str:
    """Has a production compiler compile the module and an entry's plan."""
    mesh = ["--mesh", entry.machine.mesh] if entry.machine.mesh else []
    return shell_line(["lapstrake", "compile", path, "--target", target, *mesh, *plan_words(entry.plan)])


def _run_words(options: RunOptions) -> list[str]:
    given = ["--inputs", options.inputs] if options.inputs else ["--seed", str(options.seed)]
    return ["--platform", options.platform, *given]


def machine_words(machine: MachineSpec) -> list[str]:
    words = ["--chip", machine.chip]
    words += ["--topology", machine.topology] if machine.topology else []
    words += ["--mesh", machine.mesh] if machine.mesh else []
    return words


def cost_words(entry: Entry) -> list[str]:
    """Files that the entry's times come from, later ones win."""
    return _costs((*entry.machine.costs, *((entry.recording.file,) if entry.recording is not None else ())))


def _costs(files: Iterable[GivenFile]) -> list[str]:
    return [word for file in files for word in ("--costs", file.path)]


def plan_words(plan: Plan, *, cap: bool = True) -> list[str]:
    words = ["--passes", plan.passes, "--scheduler", plan.scheduler]
    words += ["--budget", str(plan.budget)] if plan.budget is not None else []
    return words + (["--memory-cap", _bytes(plan.memory_cap)] if cap and plan.memory_cap is not None else [])


def _bytes(size: int) -> str:
    """As people write it where that is exact."""
    text = bytes_text(size).replace(" ", "")
    return text if parse_bytes(text) == size else str(size)
