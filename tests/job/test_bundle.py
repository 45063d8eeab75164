"""Every file of a bundle, read by what it is for; and that a bundle is there whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from app.cli.main import main
from engine.errors import UsageError
from engine.execute.verifying import verify
from engine.export.bundle_folder import write_bundle
from engine.hlo.reading import read
from engine.ir.module import Module
from tests.job.xla_schemas import message


def sequences(module: Module) -> dict[str, list[str]]:
    """Names in order, by computation's name: ids are given anew by every reader."""
    names = {c.id: c.name for c in module.proto.computations}
    return {
        names[id_]: [module.instructions[i].name for i in sequence.instruction_ids]
        for id_, sequence in module.proto.schedule.sequences.items()
    }


@pytest.fixture(scope="module")
def tuned(bundle: Path) -> Module:
    return read(bundle / "tuned.hlo")


def test_the_modules_reload_and_compute_the_same(bundle: Path, tuned: Module) -> None:
    original = read(bundle / "original.hlo.pb")
    assert tuned.is_scheduled
    assert sequences(read(bundle / "tuned.hlo.pb")) == sequences(tuned)
    assert verify(original, tuned).equal


def test_the_order_lists_what_the_modules_instructions_are_tagged_with(bundle: Path, tuned: Module) -> None:
    tags = set(re.findall(r"lapstrake=([\w.\-]+)", (bundle / "tuned.hlo").read_text()))
    listed = [tag for order in json.loads((bundle / "order.json").read_text()).values() for tag in order]
    assert listed
    assert {tag.removesuffix("/start").removesuffix("/done") for tag in listed} <= tags
    assert any(tag.endswith("/start") for tag in listed)


def test_xla_parses_the_schedule(bundle: Path, tuned: Module) -> None:
    schedule = text_format.Parse(
        (bundle / "schedule.pbtxt").read_text(), message("xla.ScheduleProto", "xla/xla.proto")()
    )
    assert schedule.hlo_module.name == tuned.name
    listed = {c.computation_id: len(c.instructions) for c in schedule.computation_schedules}
    entry = schedule.hlo_module.entry_computation_id
    sizes = {c.id: len(c.instructions) for c in schedule.hlo_module.computations}
    assert listed[entry] == sizes[entry]


def test_xla_takes_the_costs_as_a_profile(bundle: Path, tuned: Module) -> None:
    text = (bundle / "costs.pbtxt").read_text()
    kind = message("tensorflow.profiler.ProfiledInstructionsProto", "tsl/profiler/protobuf/profiled_instructions.proto")
    profile = text_format.Parse(text, kind())
    assert {cost.name for cost in profile.costs} <= tuned.by_name.keys()
    assert all(cost.cost_us > 0 for cost in profile.costs)
    script = (
        "import sys, jax; options = jax._src.compiler.get_compile_options(1, 1, fdo_profile=sys.stdin.buffer.read())\n"
        "client = jax.devices()[0].client; module = jax.jit(lambda a: a + 1).lower(1.0).compiler_ir()\n"
        "from jax._src.lib import _jax\n"
        "client.compile_and_load(module, _jax.DeviceList(tuple(jax.devices()[:1])), options, [])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=profile.SerializeToString(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-1000:]


def test_the_trace_nests_and_every_arrow_ends(bundle: Path) -> None:
    events = json.loads(gzip.decompress((bundle / "trace.perfetto.json.gz").read_bytes()))["traceEvents"]
    open_: dict[int, list[float]] = {}
    last: dict[int, float] = {}
    for event in (e for e in events if e["ph"] == "X"):
        ends = open_.setdefault(event["tid"], [])
        assert event["ts"] >= last.get(event["tid"], 0.0)
        last[event["tid"]] = event["ts"]
        while ends and ends[-1] <= event["ts"] + 1e-9:
            ends.pop()
        assert not ends or event["ts"] + event["dur"] <= ends[-1] + 1e-9
        ends.append(event["ts"] + event["dur"])
    assert open_
    assert {e["id"] for e in events if e["ph"] == "s"} == {e["id"] for e in events if e["ph"] == "f"}


def test_the_report_is_one_file_that_needs_no_other(bundle: Path) -> None:
    text = (bundle / "report.html").read_text()
    assert "<svg" in text
    assert "<table" in text
    assert not re.findall(r"(?:src|href)=[\"'](?!#|data:)", text)
    assert "@import" not in text


def test_the_readme_says_how_to_use_it_and_what_will_be_undone(bundle: Path, order_bundle: Path) -> None:
    text = (bundle / "README.md").read_text()
    assert "step = plan.wrap(step)" in text
    assert "--num_partitions=8" in text
    for warning in json.loads((bundle / "manifest.json").read_text())["warnings"]:
        assert warning in text
    assert "plan.install()" in (order_bundle / "README.md").read_text()


def test_the_manifest_covers_every_file(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    written = [f for f in bundle.rglob("*.*") if f.is_file() and f.suffix != ".pyc"]  # which jobs leave there
    digests = {f.relative_to(bundle).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest() for f in written}
    del digests["manifest.json"]
    assert manifest["files"] == digests
    assert manifest["verification"]["done"]
    assert manifest["predicted"]["source"] == "model"


def test_an_order_of_a_scheduled_module_takes_no_passes(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scheduled = str(capture / "scheduled.hlo")
    assert main(["tune", scheduled, "--passes", "decompose", "-o", str(tmp_path / "b"), "--no-verify", "--quiet"]) == 2
    assert "tune partitioned.hlo for them" in capsys.readouterr().err


def test_elided_constants_are_refused(capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (capture / "partitioned.hlo").read_text()
    elided = re.sub(r"(pred\[8,8\]\{1,0\} constant\()\{.*?\}\)", r"\1{...})", text, flags=re.DOTALL)
    assert elided != text
    for name, content in (("partitioned.hlo", elided), ("capture.json", (capture / "capture.json").read_text())):
        (tmp_path / name).write_text(content)
    assert main(["tune", str(tmp_path), "--passes", "decompose", "-o", str(tmp_path / "b"), "--no-verify"]) == 2
    assert "xla_dump_large_constants" in capsys.readouterr().err


def test_another_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(UsageError, match="exists and is no bundle"):
        write_bundle(str(tmp_path / "mine"), {"manifest.json": b"{}"})


def test_what_killed_exports_left_is_cleared_in_time(tmp_path: Path) -> None:
    old, new, other = (tmp_path / f".bundle.{name}" for name in ("a.lapstrake-part", "b.lapstrake-part", "settings"))
    for folder in (old, new, other):
        folder.mkdir()
        (folder / "tuned.hlo").write_text("half")
    for folder in (old, other):
        os.utime(folder, (0, 0))
    gone = tmp_path / ".bundle.c.lapstrake-part"
    gone.symlink_to("nowhere")  # looked up like a folder that another export, now ended, had been writing
    write_bundle(str(tmp_path / "bundle"), {"manifest.json": b"{}"})
    assert {path.name for path in tmp_path.iterdir()} == {"bundle", new.name, other.name, gone.name}


_WRITE = """
import sys
from engine.export.bundle_folder import write_bundle
number = 0
while True:
    number += 1
    files = {f"{k}.bin": str(number).encode() * 20000 for k in range(20)}
    write_bundle(sys.argv[1], {"manifest.json": str(number).encode(), **files})
    print(number, flush=True)
"""


@pytest.mark.parametrize("name", ["bundle", "bundle.zip"])
def test_a_kill_leaves_the_old_bundle_whole(tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    for patience in (0.003, 0.011, 0.017):
        writer = subprocess.Popen([sys.executable, "-c", _WRITE, str(target)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(patience)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        numbers = set(contents(target).values())
        assert len(numbers) == 1
        assert len(contents(target)) == 21


def contents(target: Path) -> dict[str, Any]:
    """Each file of a bundle → the number that it repeats."""
    if target.is_dir():
        read_all = {f.name: f.read_bytes() for f in target.iterdir()}
    else:
        with zipfile.ZipFile(target) as archive:
            read_all = {name: archive.read(name) for name in archive.namelist()}
    number = read_all["manifest.json"]
    return {name: number if data in (number, number * 20000) else data for name, data in read_all.items()}
