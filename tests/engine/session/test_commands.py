"""Commands that stand for what the window does are parsed by the command line as what was meant."""

from __future__ import annotations

import shlex

from app.cli.arguments import parse
from engine.chips.budget import Budget
from engine.session.choices import DIMENSIONS
from engine.session.commands import export_command, report_command, tune_command
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
