"""What silently goes wrong when modules are run with XLA as it is, each provoked and seen to go right."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from engine import worker
from engine.errors import OutOfMemory, UnsupportedError, UsageError, WorkerError
from engine.execute.endings import explain
from engine.execute.environment import environment
from engine.execute.legalize import legalize
from engine.execute.timing import Entrant, Measurement, RunOptions, measure
from engine.execute.verifying import verify
from engine.hlo.reading import read_here
from engine.ir.module import Module
from tests.engine.execute.jobs import run_text
from tests.engine.execute.texts import DEADLOCK, ENDLESS, GATHERED, LEFT, SUMMED, program, sorting


def module(text: str) -> Module:
    return read_here(text.encode())


def timed(text: str, **options: float | bool | str) -> Measurement:
    """Run a module to the failure that is expected of it, or once."""
    return measure([Entrant("m", module(text))], RunOptions(repeats=1, warmup=0, **options))  # type: ignore[arg-type]  # as given


TWO_MESHES = program(
    "  x = f32[4] parameter(0)\n"
    "  a = f32[4] all-reduce(x), channel_id=1, replica_groups=mesh['a'=2,'b'=2] {'a'}, use_global_device_ids=true, "
    "to_apply=add\n"
    "  ROOT b = f32[4] all-reduce(a), channel_id=2, replica_groups=mesh['c'=4] {'c'}, use_global_device_ids=true, "
    "to_apply=add"
)
LISTED = TWO_MESHES.replace("mesh['a'=2,'b'=2] {'a'}", "{{0,2},{1,3}}").replace("mesh['c'=4] {'c'}", "{{0,1,2,3}}")


def test_groups_of_two_meshes() -> None:
    """jaxlib 0.10.2 turns them into others on the way through StableHLO, and says nothing."""
    found = verify(module(LISTED), module(TWO_MESHES), deadline=60.0)
    assert found.equal, str(found)
    groups = {len(i.replica_groups) for c in legalize(module(TWO_MESHES)).computations for i in c.instructions}
    assert groups == {0, 1, 2}  # lists, not meshes


def test_donated_buffers_are_still_there_for_the_next_execution() -> None:
    """Steps say what they donate as `buffer_donor` or as an alias; a run must not give its inputs away."""
    donor = SUMMED.replace("num_partitions=4", "buffer_donor={ (0, {}) }, num_partitions=4", 1)
    alias = SUMMED.replace("num_partitions=4", "input_output_alias={ {}: (0, {}, may-alias) }, num_partitions=4", 1)
    for text in (donor, alias):
        proto = legalize(module(text))
        assert not proto.buffer_donor.entries
        assert not proto.input_output_alias.entries
        found = measure([Entrant("m", module(text))], RunOptions(repeats=4, deadline=60.0))
        assert len(found.timings[0].times) == 4
        assert verify(module(SUMMED), module(text), seeds=2, deadline=60.0).equal


def test_threads_enough_for_every_device() -> None:
    assert int(environment(64, "cpu", 100.0)["NPROC"]) >= 128


def test_an_all_gather_along_a_minor_dimension() -> None:
    """Whole modules put in behind the scheduler compute this one wrong: only orders are."""
    text = program(
        "  x = f32[4,8] parameter(0)\n"
        "  ROOT g = f32[4,32] all-gather(x), channel_id=1, replica_groups=[1,4]<=[4], dimensions={1}, "
        "use_global_device_ids=true"
    )
    inputs, results = run_text(text)
    for found in results[0]:
        for k, piece in enumerate(inputs[0]):
            assert (found[:, 8 * k : 8 * (k + 1)] == piece).all()


# --- runs that end badly --------------------------------------------------------------------------------------------


def test_a_deadlock_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.execute.timing.RENDEZVOUS", 2.0)
    with pytest.raises(WorkerError, match="deadlock: devices wait for each other"):
        timed(DEADLOCK, deadline=60.0)


def test_an_endless_loop_in_a_run() -> None:
    with pytest.raises(WorkerError, match="did not end within 3 s"):
        timed(ENDLESS, deadline=3.0)


def test_a_crash_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_no_such_flag=1")
    with pytest.raises(WorkerError, match=r"the worker process ended with .*: Unknown flag"):
        timed(SUMMED, deadline=60.0)


def test_the_next_run_is_none_the_worse() -> None:
    for text in (SUMMED, GATHERED):
        (timing,) = timed(text, deadline=60.0).timings
        assert len(timing.times) == 1


def test_too_much_memory_between_is_refused_with_the_bytes_before_it_starts() -> None:
    """Only compiling shows it."""
    with pytest.raises(UnsupportedError, match=r"m needs .* TiB on 4 CPU devices together, but this machine has"):
        timed(sorting(1 << 38), deadline=60.0)


@pytest.mark.skipif(sys.platform != "linux", reason="the worker is limited as Linux does it")
@pytest.mark.parametrize(
    "text",
    [sorting(1 << 28), program(f"  p = f32[{1 << 28}] parameter(0)\n  ROOT r = f32[{1 << 28}] negate(p)")],
    ids=["while it computes", "while its inputs are made"],
)
def test_out_of_memory_in_a_run(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that was there when it was asked for may be gone when it is needed."""
    call = worker.call

    def starved(_: str, *args: object, **kwargs: Any) -> object:
        return call("tests.engine.execute.starving:measure_with", 1 << 30, *args, **kwargs)

    monkeypatch.setattr("engine.worker.call", starved)
    with pytest.raises(OutOfMemory, match=r"m ran out of memory on 4 CPU devices: .* This machine has .* available"):
        timed(text, deadline=60.0)


def test_a_run_that_the_system_kills_is_out_of_memory() -> None:
    died = worker.Died("the worker process ended with SIGKILL", starved=True)
    said = str(explain(died, "m", 4, "cpu", 60.0))
    assert said.startswith("m ran out of memory on 4 CPU devices: the worker process ended with SIGKILL. This machine")
    assert "This machine" not in str(explain(OutOfMemory("RESOURCE_EXHAUSTED"), "m", 1, "gpu", 60.0))


def test_a_run_that_cannot_end_in_time_is_refused_before_it_starts() -> None:
    state = "(s32[], f32[1024,1024])"
    slow = program(
        "  p = f32[1024,1024] parameter(0)\n  zero = s32[] constant(0)\n"
        f"  start = {state} tuple(zero, p)\n  w = {state} while(start), condition=condition, body=body\n"
        "  ROOT r = f32[1024,1024] get-tuple-element(w), index=1",
        f"condition {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        "  n = s32[] constant(1000000)\n  ROOT c = pred[] compare(i, n), direction=LT\n}\n"
        f"body {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        "  x = f32[1024,1024] get-tuple-element(s), index=1\n  one = s32[] constant(1)\n  n = s32[] add(i, one)\n"
        "  d = f32[1024,1024] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        f"  ROOT t = {state} tuple(n, d)\n}}\n",
    )
    expected = (
        r"one execution of m is 2\.15 P multiplications and additions in einsums alone, .* at the .* a second that "
        r"this machine reaches now; 1 executions take .*, but the deadline is 40 s\. Take fewer repeats"
    )
    with pytest.raises(UsageError, match=expected):
        timed(slow, deadline=40.0, alone=True)
    with pytest.raises(UsageError, match=r"one execution of m is 8\.59 P .* Take fewer seeds"):
        verify(module(slow), module(slow), deadline=40.0)


def test_too_large_is_refused_with_the_bytes() -> None:
    large = program("  p = f32[1099511627776] parameter(0)\n  ROOT r = f32[1099511627776] negate(p)")
    with pytest.raises(UnsupportedError, match=r"m needs 32\.0 TiB on 4 CPU devices together"):
        timed(large)
    with pytest.raises(UnsupportedError, match=r"m needs 8\.00 TiB on 1 CPU devices together"):
        timed(large, alone=True)


def test_what_no_cpu_runs_is_named() -> None:
    foreign = program('  x = f32[8] parameter(0)\n  ROOT r = f32[8] custom-call(x), custom_call_target="mosaic"')
    with pytest.raises(UnsupportedError, match='it uses custom-call "mosaic"'):
        timed(foreign)
    sent = program(
        "  x = f32[8] parameter(0)\n  t = token[] after-all()\n"
        "  s = (f32[8], u32[], token[]) send(x, t), channel_id=1\n"
        "  d = token[] send-done(s), channel_id=1\n  ROOT r = f32[8] negate(x)"
    )
    with pytest.raises(UnsupportedError, match="it uses send, send-done"):
        timed(sent)


def test_one_device_alone_has_a_part_in_every_collective() -> None:
    bodies = {
        "all-gather": "g = f32[16,8] all-gather(x), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, "
        "use_global_device_ids=true",
        "reduce-scatter": "g = f32[1,8] reduce-scatter(x), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, "
        "use_global_device_ids=true, to_apply=add",
        "collective-permute": f"g = f32[4,8] collective-permute(x), channel_id=1, source_target_pairs={LEFT}",
        "all-to-all": "g = f32[4,8] all-to-all(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}",
    }
    for body in bodies.values():
        found = measure(
            [Entrant("m", module(program(f"  x = f32[4,8] parameter(0)\n  ROOT {body}")))],
            RunOptions(repeats=1, alone=True, deadline=60.0),
        )
        assert (found.devices, found.alone) == (1, True)
