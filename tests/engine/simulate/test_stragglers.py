"""Slow devices and paths: who waits for whom, on a module whose permutes and gathers are real instructions."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.errors import UsageError
from engine.hlo.reading import read_here
from engine.schedule.problem import Order, Schedule
from engine.simulate.simulator import SimulationOptions, simulate
from engine.simulate.stragglers import Disturbance, Spread, spread
from tests.places import COMPILED

TEXT = """HloModule ring, num_partitions=4, entry_computation_layout={(bf16[1024,1024])->bf16[1024,1024]}

condition {
  state = (s32[], bf16[1024,1024]) parameter(0)
  counter = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(TRIPS)
  ROOT less = pred[] compare(counter, limit), direction=LT
}

body {
  state = (s32[], bf16[1024,1024]) parameter(0)
  counter = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(counter, one)
  shard = bf16[1024,1024] get-tuple-element(state), index=1
  start = (bf16[1024,1024], bf16[1024,1024]) collective-permute-start(shard), channel_id=1,
    source_target_pairs={{0,3},{1,0},{2,1},{3,2}}
  dot = bf16[1024,1024] dot(shard, shard), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  done = bf16[1024,1024] collective-permute-done(start)
  sum = bf16[1024,1024] add(dot, done)
  ROOT out = (s32[], bf16[1024,1024]) tuple(next, sum)
}

ENTRY main {
  x = bf16[1024,1024] parameter(0)
  zero = s32[] constant(0)
  state = (s32[], bf16[1024,1024]) tuple(zero, x)
  loop = (s32[], bf16[1024,1024]) while(state), condition=condition, body=body
  ROOT result = bf16[1024,1024] get-tuple-element(loop), index=1
}
"""


def prepared(trips: int) -> tuple[Program, Schedule]:
    module = read_here(TEXT.replace("TRIPS", str(trips)).encode())
    program = prepare(module, machine_for(module, load_chip("tpu-v4")))
    return program, as_loaded(program)


def spread_of(disturbance: Disturbance, trips: int = 8) -> Spread:
    return spread(*prepared(trips), disturbance)


@pytest.mark.parametrize("trips", [1, 8, 1000])
def test_undisturbed_all_devices_do_what_one_is_simulated_to_do(trips: int) -> None:
    program, schedule = prepared(trips)
    one = simulate(program, schedule).metrics
    all_of_them = spread(program, schedule, Disturbance())
    assert all_of_them.finish.tolist() == pytest.approx([one.makespan] * 4, rel=1e-9)
    assert all_of_them.exposed.tolist() == pytest.approx([one.exposed] * 4, rel=1e-9)
    assert (all_of_them.slowdown, all_of_them.worst) == (1.0, 1.0)


SHARED = """HloModule shared, num_partitions=4, entry_computation_layout={(bf16[1024,1024])->bf16[1024,1024]}

ENTRY main {
  x = bf16[1024,1024] parameter(0)
  one = (bf16[1024,1024], bf16[1024,1024]) collective-permute-start(x), channel_id=1,
    source_target_pairs={{0,3},{1,0},{2,1},{3,2}}
  other = (bf16[1024,1024], bf16[1024,1024]) collective-permute-start(x), channel_id=2,
    source_target_pairs={{0,3},{1,0},{2,1},{3,2}}
  dot = bf16[1024,1024] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  first = bf16[1024,1024] collective-permute-done(one)
  second = bf16[1024,1024] collective-permute-done(other)
  sum = bf16[1024,1024] add(first, second)
  ROOT all = bf16[1024,1024] add(sum, dot)
}
"""


def as_loaded(program: Program) -> Schedule:
    return Schedule("as-loaded", Budget(), {k: Order(np.arange(len(graph))) for k, graph in program.graphs.items()})


def test_undisturbed_transfers_share_links_as_in_the_simulator() -> None:
    module = read_here(SHARED.encode())
    program = prepare(module, machine_for(module, load_chip("tpu-v4")))
    entry = module.proto.entry_computation_id
    names = list(program.graphs[entry].names)
    order = [names.index(name) for name in ("x", "one", "other", "dot", "first", "second", "sum", "all")]
    schedule = Schedule("both in flight", Budget(), {entry: Order(np.array(order))})
    shared, alone = (
        simulate(program, schedule, SimulationOptions(sharing=sharing)).metrics.makespan for sharing in (True, False)
    )
    assert shared > 1.5 * alone
    assert spread(program, schedule, Disturbance()).finish.tolist() == [shared] * 4


@pytest.mark.parametrize(
    "name", ["a_v4-2x2x2_1d_1x8_d4096_L2_scan_default", "we_v4-4x4x4_2d_8x8_d8192_L2_scan_offasync"]
)
def test_undisturbed_compiled_steps_take_what_the_simulator_says(name: str) -> None:
    """Loops that carry transfers, gathers and copies included."""
    module = read_here(gzip.decompress((COMPILED / f"{name}.hlo.gz").read_bytes()))
    program = prepare(module, machine_for(module, load_chip("tpu-v4")))
    schedule = as_loaded(program)
    one = simulate(program, schedule).metrics
    all_of_them = spread(program, schedule, Disturbance())
    assert set(all_of_them.finish.tolist()) == {one.makespan}
    assert set(all_of_them.exposed.tolist()) == {one.exposed}
    assert spread(program, schedule, Disturbance(jitter=0.05)).slowdown > 1.0


def test_a_slow_device_makes_the_ring_wait() -> None:
    found = spread_of(Disturbance(slow_devices=((2, 3.0),)), trips=20)
    assert found.worst == pytest.approx(3.0, rel=1e-3)
    assert found.slowdown > 1.2
    assert found.finish[2] == found.finish.max()
    assert found.exposed[2] == found.exposed.min()
    # Its shard goes to device 1 first, which therefore waits most of all.
    assert found.exposed[1] == found.exposed.max()


def test_a_slow_path_delays_who_receives_over_it() -> None:
    found = spread_of(Disturbance(slow_paths=((3, 2, 4.0),)), trips=1)
    assert found.worst == 1.0
    assert found.slowdown > 1.0
    calm = spread_of(Disturbance(), trips=1)
    late = found.finish > calm.finish
    assert late.tolist() == [False, False, True, True]


def test_jitter_is_the_same_for_the_same_seed() -> None:
    one, two = (spread_of(Disturbance(jitter=0.1, seed=7)) for _ in range(2))
    assert one.finish.tolist() == two.finish.tolist()
    other = spread_of(Disturbance(jitter=0.1, seed=8))
    assert one.finish.tolist() != other.finish.tolist()


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="device 4 cannot be slow: the module runs on devices 0 to 3"):
        spread_of(Disturbance(slow_devices=((4, 2.0),)))


def test_a_path_to_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no path leads to or from device 99: the module runs on devices 0 to 3"):
        spread_of(Disturbance(slow_paths=((0, 99, 2.0),)))
