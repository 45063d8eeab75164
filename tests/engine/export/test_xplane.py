"""An exported profile reads back through jax's own reader and through ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.export.xplane import xplane_bytes
from engine.profile.measured import measured_times
from engine.profile.xplane import profile_of
from engine.profile.xspace_pb2 import XSpace
from tests.engine.export.test_texts import simulated
from tools import xprof_python

_READ = """
import sys, jax.profiler
plane, = jax.profiler.ProfileData.from_file(sys.argv[1]).planes
print(plane.name)
for line in plane.lines:
    print(line.name, *sorted({event.name for event in line.events}), sep="|")
    print(*(f"{event.start_ns:.3f}+{event.duration_ns:.3f}" for event in line.events), sep="|")
"""


def test_jax_reads_it(tmp_path: Path) -> None:
    program, simulation = simulated()
    (tmp_path / "a.xplane.pb").write_bytes(xplane_bytes(simulation.timeline, program.module))
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(tmp_path / "a.xplane.pb")], capture_output=True, text=True, check=True
    )
    plane, *rows = done.stdout.splitlines()
    names = {row.split("|")[0]: set(row.split("|")[1:]) for row in rows[::2]}
    assert plane == "/device:TPU:0"
    assert names["XLA Modules"] == {program.module.name}
    assert {"y", "z"} <= names["XLA Ops"]
    assert names["Async XLA Ops"] == {"start"}
    spans = [tuple(map(float, span.split("+"))) for span in rows[1].split("|")]
    assert spans == [(0.0, simulation.metrics.makespan // 1000)]  # its nanoseconds are whole


def test_our_reader_finds_the_costs_again() -> None:
    program, simulation = simulated()
    space = XSpace.FromString(xplane_bytes(simulation.timeline, program.module))
    times = measured_times(profile_of(space, "a")).times
    for computation, graph in program.graphs.items():
        costs = program.costs[computation]
        for node, name in enumerate(graph.names):
            if graph.opcodes[node] in ("dot", "add"):
                assert times[name] == costs.compute[node]
    assert list(space.warnings) == ["Predicted by Lapstrake: nothing in this profile was measured."]


_CONVERT = """
import sys
from xprof.convert import _pywrap_profiler_plugin as plugin
made, ok = plugin.xspace_to_tools_data([sys.argv[1]], "trace_viewer@", {"resolution": 8000})
assert ok
sys.stdout.buffer.write(made)
"""


@pytest.mark.full
def test_xprof_shows_it(tmp_path: Path) -> None:
    try:
        python = str(xprof_python.interpreter())
    except LookupError as reason:
        pytest.skip(str(reason))
    program, simulation = simulated()
    (tmp_path / "a.xplane.pb").write_bytes(xplane_bytes(simulation.timeline, program.module))
    command = [python, "-c", _CONVERT, str(tmp_path / "a.xplane.pb")]
    done = subprocess.run(command, capture_output=True, check=True)
    events = json.loads(done.stdout)["traceEvents"]
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert set(rows.values()) == {"Steps", "XLA Modules", "XLA Ops", "Async XLA Ops"}
    shown = {(rows[e["tid"]], e["name"]) for e in events if e["ph"] == "X"}
    assert {("XLA Ops", "y"), ("XLA Ops", "z"), ("Async XLA Ops", "start")} <= shown
    (whole,) = (e["dur"] for e in events if e["ph"] == "X" and rows[e["tid"]] == "Steps")
    assert whole == pytest.approx(simulation.metrics.makespan / 1e6, abs=1e-3)
