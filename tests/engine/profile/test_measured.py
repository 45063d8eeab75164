"""Measured times from the planes that TPUs, GPUs and CPUs write."""

from __future__ import annotations

from engine.profile.measured import measured_times
from engine.profile.xplane import profile_of
from engine.profile.xspace_pb2 import XPlane, XSpace


def plane(space: XSpace, name: str) -> XPlane:
    return space.planes.add(name=name)


def name_event(plane: XPlane, number: int, name: str) -> None:
    plane.event_metadata[number].id = number
    plane.event_metadata[number].name = name


def name_stats(plane: XPlane, *names: str) -> None:
    for number, name in enumerate(names, start=1):
        plane.stat_metadata[number].id = number
        plane.stat_metadata[number].name = name


def test_tpu_operations_and_transfers() -> None:
    """A transfer counts from its start to its done; its issue and its wait on the compute line do not."""
    space = XSpace()
    for device, scale in ((0, 1), (1, 3)):
        tpu = plane(space, f"/device:TPU:{device}")
        name_event(tpu, 1, "%fusion.3 = bf16[8]{0} fusion(%x)")
        name_event(tpu, 2, "%collective-permute-start.1 = (bf16[8]) collective-permute-start(%x)")
        name_event(tpu, 3, "collective-permute-done.1")
        ops, transfers = tpu.lines.add(name="XLA Ops"), tpu.lines.add(name="Async XLA Ops")
        for duration in (100, 300):
            ops.events.add(metadata_id=1, duration_ps=duration * scale)
        ops.events.add(metadata_id=2, duration_ps=1)
        ops.events.add(metadata_id=3, duration_ps=50)
        transfers.events.add(metadata_id=2, duration_ps=1000 * scale)
        tpu.lines.add(name="Steps").events.add(metadata_id=1, duration_ps=10**9)
    assert measured_times(profile_of(space, "p")).times == {"fusion.3": 400, "collective-permute-start.1": 2000}


def test_gpu_kernels_of_one_instruction_add_up() -> None:
    space = XSpace()
    gpu = plane(space, "/device:GPU:0")
    name_stats(gpu, "hlo_op", "fusion.3", "correlation_id")
    name_event(gpu, 1, "gemm_kernel")
    name_event(gpu, 2, "reduce_kernel")
    stream = gpu.lines.add(name="Stream #1(Compute)")
    for kernel, duration in ((1, 100), (2, 10), (1, 300), (2, 30)):
        event = stream.events.add(metadata_id=kernel, duration_ps=duration)
        event.stats.add(metadata_id=1, ref_value=2)
        event.stats.add(metadata_id=3, uint64_value=5)
    stream.events.add(metadata_id=1, duration_ps=7)
    derived = gpu.lines.add(name="XLA Ops").events.add(metadata_id=1, duration_ps=999)
    derived.stats.add(metadata_id=1, str_value="fusion.3")
    assert measured_times(profile_of(space, "p")).times == {"fusion.3": 220}


def test_cpu_events_are_told_apart_by_device() -> None:
    space = XSpace()
    cpu = plane(space, "/host:CPU")
    name_stats(cpu, "hlo_op", "device_ordinal")
    name_event(cpu, 1, "dot.1")
    line = cpu.lines.add(name="tf_XLAPjRtCpuClient/1")
    for device, duration in ((0, 100), (0, 200), (1, 450)):
        event = line.events.add(metadata_id=1, duration_ps=duration)
        event.stats.add(metadata_id=1, str_value="dot.1")
        event.stats.add(metadata_id=2, int64_value=device)
    assert measured_times(profile_of(space, "p")).times == {"dot.1": 300}
    assert measured_times(profile_of(space, "p")).counts == {"dot.1": 2}


def test_a_profile_of_something_else() -> None:
    space = XSpace()
    cpu = plane(space, "/host:CPU")
    name_event(cpu, 1, "python")
    cpu.lines.add(name="python").events.add(metadata_id=1, duration_ps=5)
    assert measured_times(profile_of(space, "p")).times == {}
