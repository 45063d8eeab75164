"""Profiles of TPUs, GPUs and CPUs, and traces, become the same columns."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from engine.errors import InputError, UsageError
from engine.hlo.reading import read_here
from engine.profile.reading import profile_from_bytes, read_profile
from engine.profile.xplane import profile_of
from engine.profile.xspace_pb2 import XSpace
from engine.session.evaluation import Evaluator
from engine.session.measured import measured_variant
from engine.session.plan import AS_LOADED
from engine.session.variant import Variant
from engine.timeline.timeline import Category, LaneKind
from tests.engine.profile.test_measured import name_event, name_stats, plane

US = 10**6

COMPILED = (
    "HloModule jit_step, is_scheduled=true, num_partitions=2\n"
    "ENTRY main {\n  x = f32[64,64] parameter(0)\n"
    "  start = (f32[64,64], f32[64,64]) collective-permute-start(x), channel_id=1, source_target_pairs={{0,1},{1,0}}\n"
    "  d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "  done = f32[64,64] collective-permute-done(start)\n"
    "  ROOT y = f32[64,64] add(d, done)\n}\n"
)


@pytest.fixture(scope="module")
def variant() -> Variant:
    return Evaluator(read_here(COMPILED.encode(), "step")).evaluate(AS_LOADED)


def tpu_space(steps: int = 3) -> XSpace:
    """Two devices; each step takes 100 µs, the last is twice as long."""
    space = XSpace()
    for device in range(2):
        tpu = plane(space, f"/device:TPU:{device}")
        for number, name in enumerate(
            ("jit_step(7)", "%start = (f32[]) …", "%d = f32[]", "%done = f32[]", "%y", "%z"), 1
        ):
            name_event(tpu, number, name)
        modules, ops = tpu.lines.add(name="XLA Modules"), tpu.lines.add(name="XLA Ops")
        transfers = tpu.lines.add(name="Async XLA Ops")
        for step in range(steps):
            at = 1000 * US * step
            scale = 2 if step == steps - 1 else 1
            modules.events.add(metadata_id=1, offset_ps=at, duration_ps=100 * US * scale)
            for id_, offset, duration in ((2, 0, 1), (3, 1, 50), (4, 51, 20), (5, 71, 9), (6, 81, 2)):
                ops.events.add(metadata_id=id_, offset_ps=at + offset * US * scale, duration_ps=duration * US * scale)
            transfers.events.add(metadata_id=2, offset_ps=at, duration_ps=70 * US * scale)
    return space


def test_a_tpu_profile_beside_the_prediction(variant: Variant) -> None:
    measured = measured_variant(variant, profile_of(tpu_space(), "p"))
    assert (measured.platform, measured.executions, measured.overlaps) == ("tpu", 3, True)
    assert [(u.name, u.count, u.time) for u in measured.unmatched] == [("z", 6, 2 * 8 * US)]
    assert measured.matched == measured.events - 6
    found = {o.name: (o.transfer, o.executions, o.measured) for o in measured.observations}
    assert found["start"] == (True, 1, round(70 * US * 4 / 3))
    assert found["d"] == (False, 1, round(50 * US * 4 / 3))
    assert "done" not in found  # a wait
    timeline, metrics = measured.variant.timeline, measured.variant.metrics
    assert timeline.makespan == 80 * US
    assert (metrics.exposed, metrics.comm, metrics.compute) == (20 * US, 70 * US, 59 * US)
    exposed = timeline.category == Category.EXPOSED
    start = variant.program.module.by_name["start"].id
    assert timeline.waits_for[exposed].tolist() == [start]
    assert [lane.kind for lane in timeline.lanes] == [LaneKind.COMPUTE, LaneKind.TRANSFER]
    last = measured_variant(variant, profile_of(tpu_space(), "p"), device=1, execution=2)
    assert last.variant.timeline.makespan == 160 * US


def test_a_gpu_profile_counts_its_executions(variant: Variant) -> None:
    """Streams do not say where a step begins: the entry's first kernel does."""
    space = XSpace()
    gpu = plane(space, "/device:GPU:0")
    name_stats(gpu, "hlo_op", "hlo_module", "d", "y", "start", "jit_step")
    for number, name in enumerate(("gemm", "split_k_sum", "add", "nccl"), 1):
        name_event(gpu, number, name)
    compute, network = gpu.lines.add(name="Stream #1(Compute)"), gpu.lines.add(name="Stream #2(nccl)")
    for step in range(4):
        for line, kernel, op, offset, duration in (
            (network, 4, 5, 0, 60), (compute, 1, 3, 0, 50), (compute, 2, 3, 50, 5), (compute, 3, 4, 60, 8),
        ):  # fmt: skip
            event = line.events.add(metadata_id=kernel, offset_ps=(100 * step + offset) * US, duration_ps=duration * US)
            event.stats.add(metadata_id=1, ref_value=op)
            event.stats.add(metadata_id=2, ref_value=6)
    measured = measured_variant(variant, profile_of(space, "p"))
    assert (measured.platform, measured.executions) == ("gpu", 4)
    assert measured.unmatched == ()
    found = {o.name: (o.transfer, o.executions, o.measured) for o in measured.observations if o.measured}
    assert found == {"d": (False, 1, 55 * US), "start": (True, 1, 60 * US), "y": (False, 1, 8 * US)}
    assert measured.variant.timeline.makespan == 68 * US


def test_a_thunk_lasts_until_its_end_is_told(variant: Variant) -> None:
    space = XSpace()
    cpu = plane(space, "/host:CPU")
    name_stats(cpu, "hlo_op", "hlo_module", "run_id", "device_ordinal", "_p", "_c")
    name_event(cpu, 1, "d")
    name_event(cpu, 2, "end: d")
    line = cpu.lines.add(name="tf_XLAPjRtCpuClient/1", timestamp_ns=5)
    for run, at in ((77, 0), (-3, 1000)):
        event = line.events.add(metadata_id=1, offset_ps=at * US, duration_ps=2 * US)
        for stat, value in ((1, "d"), (2, "jit_step")):
            event.stats.add(metadata_id=stat, str_value=value)
        for stat, number in ((3, run), (4, 1), (5, 40 + run)):
            event.stats.add(metadata_id=stat, int64_value=number)
        end = line.events.add(metadata_id=2, offset_ps=(at + 30) * US, duration_ps=1)
        end.stats.add(metadata_id=6, int64_value=40 + run)
    profile = profile_of(space, "p")
    assert profile.duration.tolist() == [30 * US, 30 * US]
    assert profile.execution.tolist() == [0, 1]
    assert profile.devices == ("cpu 1",)
    assert not measured_variant(variant, profile).overlaps


def test_a_trace_of_a_tpu(variant: Variant, tmp_path: Path) -> None:
    meta = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:TPU:0"}},
        {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "XLA Ops"}},
        {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "Steps"}},
    ]
    slices = [
        {"ph": "X", "pid": 1, "tid": 1, "ts": 10.5, "dur": 50, "name": "d"},
        {"ph": "X", "pid": 1, "tid": 1, "ts": 61, "dur": 9.25, "name": "y"},
        {"ph": "X", "pid": 1, "tid": 2, "ts": 10.5, "dur": 60, "name": "d"},
        {"ph": "X", "pid": 2, "tid": 9, "ts": 0, "dur": 60, "name": "python"},
    ]
    file = tmp_path / "trace.json.gz"
    file.write_bytes(gzip.compress(json.dumps({"traceEvents": meta + slices}).encode()))
    measured = measured_variant(variant, read_profile(str(file)))
    assert (measured.platform, measured.events, measured.unmatched) == ("tpu", 2, ())
    assert {o.name: o.measured for o in measured.observations if o.measured} == {"d": 50 * US, "y": 9_250_000}


def test_what_is_not_there_is_said(variant: Variant, tmp_path: Path) -> None:
    profile = profile_of(tpu_space(), "p")
    with pytest.raises(UsageError, match="devices 0 to 1 are in the profile, but 5 came"):
        measured_variant(variant, profile, device=5)
    with pytest.raises(UsageError, match="executions 0 to 2 are on /device:TPU:0, but 9 was asked for"):
        measured_variant(variant, profile, execution=9)
    other = COMPILED.replace(" d ", " q ").replace("(d,", "(q,").replace("start", "go").replace("done", "stop")
    other = other.replace("permute-go", "permute-start").replace("permute-stop", "permute-done").replace(" y ", " w ")
    unknown = Evaluator(read_here(other.encode(), "step")).evaluate(AS_LOADED)
    with pytest.raises(InputError, match="it has none of its instructions, only others such as"):
        measured_variant(unknown, profile)
    with pytest.raises(InputError, match=r"has no \.xplane\.pb below it"):
        read_profile(str(tmp_path))
    with pytest.raises(InputError, match="holds none of them"):
        profile_from_bytes(XSpace(hostnames=["h"]).SerializeToString(), "p")
    with pytest.raises(InputError, match="a number as ts was expected, but None came"):
        profile_from_bytes(b'[{"ph": "X", "name": "d", "args": {"hlo_op": "d"}}]', "p")
    with pytest.raises(InputError, match="a trace in JSON was expected, but it is damaged: maximum recursion depth"):
        profile_from_bytes(b"[" * 100_000, "p")


def test_a_folder_of_a_profiler_is_its_newest_profile(tmp_path: Path) -> None:
    inside = tmp_path / "plugins" / "profile" / "2026"
    inside.mkdir(parents=True)
    (inside / "host.xplane.pb").write_bytes(tpu_space().SerializeToString())
    assert len(read_profile(str(tmp_path))) == len(profile_of(tpu_space(), "p"))
