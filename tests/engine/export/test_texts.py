"""Schedules, costs and traces as other programs read them."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.costs import Origin
from engine.cost.imports import parse_costs
from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.cost.scheduled_module import read_scheduled_module
from engine.errors import InputError
from engine.export.costs_text import costs_text
from engine.export.perfetto import trace, trace_bytes
from engine.export.schedule_text import schedule_text
from engine.hlo.reading import read_here
from engine.schedule.programs import schedule_program
from engine.schedule.registry import parse_scheduler
from engine.simulate.simulator import Simulation, simulate

LOOP = """HloModule looped, num_partitions=2

%body (s: (s32[], bf16[1024,1024])) -> (s32[], bf16[1024,1024]) {
  %s = (s32[], bf16[1024,1024]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = bf16[1024,1024]{1,0} get-tuple-element(%s), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %start = (bf16[1024,1024]{1,0}, bf16[1024,1024]{1,0}) collective-permute-start(%x), channel_id=1, source_target_pairs={{0,1},{1,0}}
  %y = bf16[1024,1024]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %done = bf16[1024,1024]{1,0} collective-permute-done(%start)
  %z = bf16[1024,1024]{1,0} add(%y, %done)
  ROOT %t = (s32[], bf16[1024,1024]{1,0}) tuple(%next, %z)
}

%condition (s: (s32[], bf16[1024,1024])) -> pred[] {
  %s = (s32[], bf16[1024,1024]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %limit = s32[] constant(5)
  ROOT %less = pred[] compare(%i, %limit), direction=LT
}

ENTRY %main (x: bf16[1024,1024]) -> bf16[1024,1024] {
  %x = bf16[1024,1024]{1,0} parameter(0)
  %zero = s32[] constant(0)
  %init = (s32[], bf16[1024,1024]{1,0}) tuple(%zero, %x)
  %loop = (s32[], bf16[1024,1024]{1,0}) while(%init), condition=%condition, body=%body
  ROOT %result = bf16[1024,1024]{1,0} get-tuple-element(%loop), index=1
}
"""  # noqa: E501  # one instruction a line, as HLO is printed


@cache
def simulated() -> tuple[Program, Simulation]:
    module = read_here(LOOP.encode())
    program = prepare(module, machine_for(module, load_chip("tpu-v4")))
    return program, simulate(program, schedule_program(program, parse_scheduler("bottom-up"), Budget(4)))


def test_schedule_lists_every_instruction_once_in_order_of_time() -> None:
    program, simulation = simulated()
    text = schedule_text(program.module, simulation.runs)
    blocks = text.split("computation_schedules {")[1:]
    assert len(blocks) == len(program.graphs)
    for graph, block in zip(program.graphs.values(), blocks, strict=True):
        ids = [int(x) for x in re.findall(r"^    id: (\d+)", block, re.MULTILINE)]
        assert sorted(ids) == sorted(graph.ids.tolist())
        starts = [float(x) for x in re.findall(r"start_timestamp_cycles: ([\d.]+)", block)]
        assert starts == sorted(starts)
    total = re.findall(r" total_cycles: ([\d.]+)", text)[-1]
    assert round(float(total) * 1000) == simulation.metrics.makespan


def test_costs_name_starts_and_leave_out_what_is_free() -> None:
    program, _ = simulated()
    named = dict(re.findall(r'costs { name: "([^"]+)" cost_us: ([\d.]+) }', costs_text(program)))
    assert {"start", "y", "z"} <= named.keys()
    assert not {"done", "t", "init"} & named.keys()
    assert all(float(cost) > 0 for cost in named.values())


@pytest.mark.parametrize("kind", ["costs", "schedule"])
def test_what_was_predicted_is_not_read_back_as_more(kind: str) -> None:
    program, simulation = simulated()
    text = costs_text(program) if kind == "costs" else schedule_text(program.module, simulation.runs)
    found = parse_costs(text.encode(), "ours.pbtxt")
    assert found.origin is Origin.MODEL
    again = prepare(program.module, program.machine, imports=(found,))
    assert any("are predictions of Lapstrake and not measured: ours.pbtxt" in note for note in again.notes)
    assert {o for costs in again.costs.values() for o in costs.origin.tolist()} <= {Origin.NONE, Origin.MODEL}
    if kind == "schedule":
        with pytest.raises(InputError, match="predicted was expected, but this one is Lapstrake's own"):
            read_scheduled_module(text, "ours.pbtxt")
    # The same from elsewhere is what it was.
    other = parse_costs(text.partition("\n")[2].encode(), "theirs.pbtxt")
    assert other.origin is (Origin.MEASURED if kind == "costs" else Origin.COMPILER)


def events(kind: str) -> list[dict[str, Any]]:
    program, simulation = simulated()
    made = trace(simulation.timeline, program.module, "looped")
    return [e for e in made["traceEvents"] if e["ph"] == kind]


def test_complete_events_nest_on_every_track() -> None:
    by_track: dict[int, list[dict[str, Any]]] = {}
    for event in events("X"):
        by_track.setdefault(event["tid"], []).append(event)
    assert by_track
    for slices in by_track.values():
        open_: list[float] = []
        for event in slices:
            while open_ and open_[-1] <= event["ts"] + 1e-9:
                open_.pop()
            end = event["ts"] + event["dur"]
            assert not open_ or end <= open_[-1] + 1e-9
            open_.append(end)


def test_every_flow_has_both_ends_and_counters_go_forward() -> None:
    starts = {e["id"]: e for e in events("s")}
    ends = {e["id"]: e for e in events("f")}
    assert starts.keys() == ends.keys()
    assert all(starts[k]["ts"] <= ends[k]["ts"] for k in starts)
    times = [e["ts"] for e in events("C") if e["name"] == "memory"]
    assert times == sorted(times)
    assert max(e["args"]["operations"] for e in events("C") if e["name"] == "in flight") == 1


def test_the_file_is_ascii_gzip_and_says_that_it_is_a_prediction() -> None:
    program, simulation = simulated()
    content = trace_bytes(simulation.timeline, program.module, "µ")
    text = gzip.decompress(content)
    assert text.isascii()
    assert json.loads(text)["otherData"]["source"] == "predicted by the model"
    assert content == trace_bytes(simulation.timeline, program.module, "µ")


def test_the_trace_processor_takes_the_trace(tmp_path: Path) -> None:
    """Where its binary is at hand (it comes from the network): nothing of the trace is dropped or mended."""
    binary = os.environ.get("TRACE_PROCESSOR") or shutil.which("trace_processor_shell")
    if binary is None:
        pytest.skip("no trace_processor_shell on PATH, and TRACE_PROCESSOR names none")
    program, simulation = simulated()
    (tmp_path / "a.json.gz").write_bytes(trace_bytes(simulation.timeline, program.module, "a"))
    (tmp_path / "q.sql").write_text(
        "select (select count(*) from slice), (select count(*) from flow), "
        "(select ifnull(sum(value), 0) from stats where severity in ('error', 'data_loss'));"
    )
    command = [binary, "-q", str(tmp_path / "q.sql"), str(tmp_path / "a.json.gz")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    slices, flows, lost = map(int, done.stdout.strip().splitlines()[-1].split(","))
    events = trace(simulation.timeline, program.module, "a")["traceEvents"]
    assert slices == sum(e["ph"] == "X" for e in events)
    assert flows == sum(e["ph"] == "s" for e in events)
    assert lost == 0
