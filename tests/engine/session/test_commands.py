"""Commands that stand for what the window does are parsed by the command line as what was meant."""

from __future__ import annotations

import shlex

from app.cli.arguments import parse
from engine.chips.budget import Budget
from engine.execute.timing import RunOptions
from engine.session.choices import DIMENSIONS
from engine.session.commands import (
    compile_command,
    export_command,
    report_command,
    run_command,
    tune_command,
    verify_command,
)
from engine.session.given import GivenFile, Recording, RecordingKind
from engine.session.plan import MachineSpec, Plan
from engine.session.session import Entry

PLAN = Plan("decompose{ring=both,force=a;b}", "improve{seconds=2}", Budget(4), 3 << 20)
ENTRY = Entry("B", PLAN, MachineSpec("tpu-v5p", "2x2x2", "x=8"))


def test_export_and_report() -> None:
    for to in ("hlo", "costs"):
        found = parse(shlex.split(export_command("my step.hlo", ENTRY, to, "out file"))[1:])
        assert (found.command, found.file, found.to, found.output) == ("export", "my step.hlo", to, "out file")
        assert (found.chip, found.topology, found.mesh) == ("tpu-v5p", "2x2x2", "x=8")
        assert (found.passes, found.scheduler, found.budget) == (PLAN.passes, PLAN.scheduler, "4")
        assert found.memory_cap == "3.00MiB"
    found = parse(shlex.split(export_command("s.hlo", ENTRY, "report", "r.html"))[1:])
    assert (found.command, found.html) == ("report", "r.html")
    assert "--html" not in report_command("s.hlo", ENTRY)


def test_tune() -> None:
    text = tune_command(
        "s.hlo", ENTRY, "b", dimensions={"sites", "ring"}, memory_cap=12345, time_limit=60.0,
        target="tpu:v5p:2x2x2", check=False,
    )  # fmt: skip
    found = parse(shlex.split(text)[1:])
    assert (found.search, found.memory_cap, found.time_limit) == ("ring,sites", "12345", 60.0)
    assert (found.target, found.no_verify, found.order_only) == ("tpu:v5p:2x2x2", True, False)
    assert found.passes == PLAN.passes
    found = parse(shlex.split(tune_command("captured", ENTRY, "b", order_only=True))[1:])
    assert (found.order_only, found.passes, found.search) == (True, None, None)
    found = parse(shlex.split(tune_command("s.hlo", ENTRY, "b", dimensions=DIMENSIONS))[1:])
    assert tuple(found.search.split(",")) == DIMENSIONS


def test_runs() -> None:
    options = RunOptions("gpu", repeats=3, seed=7, alone=True, as_job=True)
    found = parse(shlex.split(run_command("my step.hlo", ENTRY, options, profile="out.xplane.pb"))[1:])
    assert (found.command, found.file, found.platform, found.repeats) == ("run", "my step.hlo", "gpu", 3)
    assert (found.seed, found.inputs, found.alone, found.as_job) == (7, None, True, True)
    assert (found.profile, found.passes, found.chip) == ("out.xplane.pb", PLAN.passes, "tpu-v5p")
    found = parse(shlex.split(verify_command("s.hlo", ENTRY, RunOptions(inputs="a b.npz"), 4))[1:])
    assert (found.command, found.inputs, found.seeds, found.platform) == ("verify", "a b.npz", 4, "cpu")
    found = parse(shlex.split(compile_command("s.hlo", ENTRY, "tpu:v4:2x2x2"))[1:])
    assert (found.command, found.target, found.mesh) == ("compile", "tpu:v4:2x2x2", "x=8")


def test_where_times_come_from() -> None:
    costs, profile = GivenFile("/a/my costs.csv", "1"), GivenFile("/a/run.xplane.pb", "2")
    machine = MachineSpec(costs=(costs,))
    measured = Entry("D", PLAN, machine, recording=Recording(RecordingKind.PROFILE, profile))
    found = parse(shlex.split(report_command("s.hlo", measured))[1:])
    assert (found.costs, found.measured) == (["/a/my costs.csv"], "/a/run.xplane.pb")
    compiled = Entry("E", PLAN, MachineSpec(), recording=Recording(RecordingKind.SCHEDULE, profile))
    found = parse(shlex.split(report_command("s.hlo", compiled))[1:])
    assert (found.costs, found.measured) == (["/a/run.xplane.pb"], None)
