"""Files of costs are told apart by their content, read in microseconds, and refused with the place of what is wrong."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.chips.library import load_chip
from engine.cost.costs import Origin
from engine.cost.imports import compiler_estimates, read_costs
from engine.errors import InputError
from engine.hlo.reading import read_here
from engine.profile.profile import PREDICTED
from engine.profile.xspace_pb2 import ProfiledInstructions, XPlane, XSpace

SCHEDULE = """hlo_module {
  name: "jit_step"
  computations {
    name: "body"
    instructions { name: "fusion.1" opcode: "fusion" id: 11 shape { element_type: F32 } }
    instructions { name: "start" opcode: "collective-permute-start" id: 12 }
    instructions { name: "loop" opcode: "while" id: 13 }
    instructions { name: "done" opcode: "collective-permute-done" id: 14 }
    id: 7
  }
}
computation_schedules {
  computation_id: 7
  instructions { id: 12 end_timestamp_cycles: 1 }
  instructions { id: 11 start_timestamp_cycles: 1 end_timestamp_cycles: 2101 }
  instructions { id: 13 start_timestamp_cycles: 2101 end_timestamp_cycles: 3000 }
  instructions { id: 14 start_timestamp_cycles: 3500 end_timestamp_cycles: 3501 }
  scheduler_statistics { total_wasted_cycles: 500 total_cycles: 3501 }
  cycles_per_microsecond: 1050
}
"""


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def test_a_schedule_dump(tmp_path: Path) -> None:
    for content in (SCHEDULE.encode(), gzip.compress(SCHEDULE.encode())):
        found = read_costs(write(tmp_path / "m.schedule.txt", content))
        assert found.origin == Origin.COMPILER
        assert found.on_stream
        assert found.times == {"start": 952, "fusion.1": 2_000_000, "done": 952}
        assert found.schedule is not None
        (body,) = found.schedule.computations
        assert (found.schedule.module, body.name) == ("jit_step", "body")
        assert body.names == ("start", "fusion.1", "loop", "done")
        assert (body.total_cycles, body.wasted_cycles) == (3501, 500)
        assert not body.start.flags.writeable


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("computation_id: 7", "computation_id: 8", "computation 8, which its module does not have"),
        ("{ id: 12 end", "{ id: 99 end", "instruction 99, which its module does not have"),
        ("cycles_per_microsecond: 1050", "", "cycles_per_microsecond above 0"),
        ("end_timestamp_cycles: 2101", "end_timestamp_cycles: many", "a number was expected, but many"),
        ("computation_id: 7", "computation_id: seven", "a number was expected, but seven"),
        ("cycles_per_microsecond: 1050", "cycles_per_microsecond: inf", "a number was expected, but inf"),
        ("total_cycles: 3501 }", "total_cycles: 3501", "expected"),
        ('name: "jit_step"', 'name "jit_step"', r"schedule.txt:2:3: a field, 'name: value'"),
    ],
)
def test_a_wrong_schedule_dump(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SCHEDULE
    with pytest.raises(InputError, match=message):
        read_costs(write(tmp_path / "m.schedule.txt", SCHEDULE.replace(old, new, 1)))


def test_profile_guided_costs(tmp_path: Path) -> None:
    text = """# from a run
costs { name: "fusion.1" cost_us: 12.5 }
costs: < name: "0a1b::all-gather-start" cost_us: 3 >
latencies { source: "a" target: "b" latency_us: 4 }
"""
    expected = {"fusion.1": 12_500_000, "all-gather-start": 3_000_000}
    found = read_costs(write(tmp_path / "p.pbtxt", text))
    assert (found.origin, found.times, found.on_stream) == (Origin.MEASURED, expected, False)
    binary = ProfiledInstructions()
    binary.costs.add(name="fusion.1", cost_us=12.5)
    binary.costs.add(name="0a1b::all-gather-start", cost_us=3)
    assert read_costs(write(tmp_path / "p.pb", binary.SerializeToString())).times == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("costs { name: 'x' }", "name: …, cost_us: …"),
        ("costs { name: 'x' cost_us: soon }", "microseconds were expected, but 'soon'"),
        ("costs { name: 'x' cost_us: -3 }", "not negative was expected, but -3"),
        ("costs { name: 'x' cost_us: nan }", "not negative"),
        ("costs { name: 'x' cost_us: 1 } }", "closes nothing"),
    ],
)
def test_wrong_profile_guided_costs(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_costs(write(tmp_path / "p.pbtxt", text))


def test_tables(tmp_path: Path) -> None:
    expected = {"fusion.1": 2_500_000, "a": 0}
    for name, text in (
        ("t.csv", "name,us\n# measured by hand\n%fusion.1, 2.5\n\na,0\n"),
        ("t.txt", 'fusion.1,2.5\n"a",0'),
        ("t.toml", '"fusion.1" = 2.5\na = 0\n'),
        ("u.toml", '[us]\n"%fusion.1" = 2.5\na = 0\n'),
    ):
        found = read_costs(write(tmp_path / name, text))
        assert (found.origin, found.times, found.source) == (Origin.TABLE, expected, str(tmp_path / name))
    assert read_costs(write(tmp_path / "t.toml.gz", gzip.compress(b"a = 1.5"))).times == {"a": 1_500_000}


def test_branch_weights(tmp_path: Path) -> None:
    found = read_costs(write(tmp_path / "t.toml", 'a = 1\n[branches]\n"%cond.1" = [9, 1]\n'))
    assert (found.times, found.branches) == ({"a": 1_000_000}, {"cond.1": (9, 1)})
    assert read_costs(write(tmp_path / "u.toml", "[branches]\nc = [0, 1]\n[us]\na = 2\n")).times == {"a": 2_000_000}
    for wrong in ("[0, 0]", "[1.5, 2]", "3", "[-1, 2]"):
        with pytest.raises(InputError, match=r"branches\.c: whole numbers, one a branch"):
            read_costs(write(tmp_path / "v.toml", f"[branches]\nc = {wrong}\n"))
    with pytest.raises(InputError, match="branches: a table"):
        read_costs(write(tmp_path / "w.toml", "branches = 3\n"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "a,b,c\n", "t.csv:1:1: a table's lines are name,microseconds, but this one has 3 columns"),
        ("t.csv", "a,1\nb,soon\n", "t.csv:2:1: microseconds were expected, but 'soon'"),
        ("t.csv", "a,-1\n", "not negative"),
        ("t.csv", "# nothing\n", "no line of that kind"),
        ("t.csv", "  \n", "the file is empty"),
        ("t.csv", f"{'a' * 200_000},1\n", "t.csv: a table of name,microseconds was expected, but: field larger"),
        ("t.toml", "a = 'x'", "a: microseconds were expected, but 'x'"),
        ("t.toml", "a = true", "microseconds were expected"),
        ("t.toml", "a = ", "TOML"),
        ("t.toml", "[us]", "empty"),
    ],
)
def test_wrong_tables(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_costs(write(tmp_path / name, text))


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00\x01",
        b"\x1f\x8bbroken",
        gzip.compress(b"a,1", mtime=0)[:12] + b"\xff" * 12,
        b"\x0a\x02",
        XSpace(errors=["no"]).SerializeToString() + b"\xff",
    ],
)
def test_what_is_no_file_of_costs(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError):
        read_costs(write(tmp_path / "x.pb", content))


def test_a_profile_without_operations_names_its_planes(tmp_path: Path) -> None:
    space = XSpace()
    space.planes.add(name="/host:CPU").lines.add(name="python\xff")
    with pytest.raises(InputError, match="/host:CPU"):
        read_costs(write(tmp_path / "x.xplane.pb", space.SerializeToString() + b"\x08\x80\x80"[:0] + b"\x1a\x01\x00"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_costs(str(path))


def test_estimates_in_the_module() -> None:
    module = read_here(
        b"""HloModule m

ENTRY main {
  x = f32[8]{0} parameter(0)
  a = f32[8]{0} negate(x), backend_config={"window_config":{"estimated_cycles":"2100","iteration_bounds":["1"]}}
  b = f32[8]{0} negate(a), backend_config={"window_config":{"estimated_cycles":"0"}}
  ROOT c = f32[8]{0} negate(b), backend_config={"flag_configs":[]}
}
"""
    )
    found = compiler_estimates(module, load_chip("tpu-v4"))
    assert found is not None
    assert found.times == {"a": 2_000_000}
    assert compiler_estimates(module, load_chip("h100")) is None
    made = replace(module, origins={module.by_name["a"].id: (module.by_name["b"].id,)})
    assert compiler_estimates(made, load_chip("tpu-v4")) is None
    assert (
        compiler_estimates(
            read_here(b"HloModule m\n\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n"), load_chip("tpu-v4")
        )
        is None
    )


def test_a_trace_is_a_profile_and_a_prediction_is_none(tmp_path: Path) -> None:
    thread = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "XLA Ops"}}
    event = {"ph": "X", "name": "dot.1", "pid": 1, "tid": 1, "ts": 0, "dur": 2.5}
    found = read_costs(write(tmp_path / "t.json", json.dumps([thread, event])))
    assert (found.origin, found.times) == (Origin.MEASURED, {"dot.1": 2_500_000})
    with pytest.raises(InputError, match="the trace holds none"):
        read_costs(write(tmp_path / "e.json", json.dumps({"traceEvents": []})))
    space = XSpace(planes=[XPlane(id=300, name="/device:TPU:0")], warnings=[PREDICTED])
    with pytest.raises(InputError, match="predicted by Lapstrake"):
        read_costs(write(tmp_path / "p.xplane.pb", space.SerializeToString()))
