"""Transfers that a loop carries in its state overlap with the next iteration, and only those do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.hlo.reading import read_here
from engine.schedule.problem import Order, Schedule
from engine.simulate.carried import carried_of, loop_key, slot_of
from engine.simulate.simulator import Simulation, SimulationOptions, simulate
from engine.timeline.timeline import Category, LaneKind

US = 1_000_000

PIPELINED = """HloModule pipelined, num_partitions=4

condition {
  state = (s32[], bf16[1024], (bf16[1024], u32[], token[])) parameter(0)
  counter = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(10)
  ROOT less = pred[] compare(counter, limit), direction=LT
}

body {
  state = (s32[], bf16[1024], (bf16[1024], u32[], token[])) parameter(0)
  counter = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(counter, one)
  x = bf16[1024] get-tuple-element(state), index=1
  y = bf16[1024] multiply(x, x)
  context = (bf16[1024], u32[], token[]) get-tuple-element(state), index=2
  done = token[] send-done(context), channel_id=1
  send = (bf16[1024], u32[], token[]) send(y, done), channel_id=1
  ROOT out = (s32[], bf16[1024], (bf16[1024], u32[], token[])) tuple(next, y, send)
}

ENTRY main {
  x = bf16[1024] parameter(0)
  zero = s32[] constant(0)
  first = token[] after-all()
  send = (bf16[1024], u32[], token[]) send(x, first), channel_id=1
  state = (s32[], bf16[1024], (bf16[1024], u32[], token[])) tuple(zero, x, send)
  loop = (s32[], bf16[1024], (bf16[1024], u32[], token[])) while(state), condition=condition, body=body
  context = (bf16[1024], u32[], token[]) get-tuple-element(loop), index=2
  done = token[] send-done(context), channel_id=1
  ROOT result = bf16[1024] get-tuple-element(loop), index=1
}
"""


def program_of(text: str, compute: int, transfer: int) -> Program:
    """The program with every multiplication and every send taking so long, and nothing else anything."""
    module = read_here(text.encode())
    program = prepare(module, machine_for(module, load_chip("tpu-v4")))
    costs = {}
    for id_, graph in program.graphs.items():
        opcodes = np.array(graph.opcodes)
        costs[id_] = replace(
            program.costs[id_],
            compute=np.where(opcodes == "multiply", compute, 0),
            transfer=np.where(opcodes == "send", transfer, 0),
            hbm_bytes=np.zeros(len(graph), dtype=np.int64),
        )
    return replace(program, costs=costs, copies={})


def run(program: Program, cap: int = 200_000) -> Simulation:
    orders = {k: Order(np.arange(len(graph))) for k, graph in program.graphs.items()}
    return simulate(program, Schedule("as-loaded", Budget(), orders), SimulationOptions(slice_cap=cap))


def test_loop_keys_are_told_apart() -> None:
    assert slot_of(loop_key(3, 7), 3) == 7
    assert slot_of(loop_key(3, 7), 4) is None
    assert slot_of(5, 3) is None
    assert slot_of(-2, 3) is None


def test_starts_and_dones_are_matched_through_the_state() -> None:
    program = program_of(PIPELINED, 1, 1)
    condition, body, entry = program.graphs.values()
    number = {name: node for node, name in enumerate(body.names)}
    found = carried_of(program.module, body)
    assert found.takes == {number["done"]: 2}
    assert list(found.leaves.values()) == [2]
    outside = carried_of(program.module, entry)
    assert [list(starts.values()) for starts in outside.enters.values()] == [[2]]
    assert [slot for _, slot in outside.after.values()] == [2]
    assert not carried_of(program.module, condition).leaves


@pytest.mark.parametrize(
    ("compute", "transfer", "makespan"),
    [
        # Compute covers the transfers: only the last one, after the loop, is exposed.
        (10, 4, 10 * 10 + 4),
        # Transfers are longer: each iteration begins when the one before has arrived.
        (4, 10, 11 * 10),
    ],
)
def test_a_carried_transfer_runs_beside_the_next_iteration(compute: int, transfer: int, makespan: int) -> None:
    simulation = run(program_of(PIPELINED, compute * US, transfer * US))
    metrics = simulation.metrics
    assert metrics.makespan == makespan * US
    assert metrics.compute == 10 * compute * US
    assert metrics.compute + metrics.exposed == metrics.makespan
    assert metrics.comm == 11 * transfer * US
    assert metrics.exposed <= metrics.transfer_union <= metrics.comm
    assert metrics.max_in_flight == 1


def test_the_timeline_shows_carried_transfers_whole() -> None:
    program = program_of(PIPELINED, 4 * US, 10 * US)
    simulation = run(program)
    timeline = simulation.timeline
    transfers = np.array([lane.kind == LaneKind.TRANSFER for lane in timeline.lanes])[timeline.lane]
    assert int(timeline.duration[transfers].sum()) == simulation.metrics.comm
    waits = timeline.category == Category.EXPOSED
    sends = {id_ for id_, instruction in program.module.instructions.items() if instruction.opcode == "send"}
    assert set(timeline.waits_for[waits].tolist()) <= sends


def test_long_loops_settle() -> None:
    program = program_of(PIPELINED, 4 * US, 10 * US)
    program = replace(program, trips=dict.fromkeys(program.trips, 1_000_000))
    simulation = run(program, cap=1000)
    assert simulation.metrics.makespan == 1_000_001 * 10 * US


def test_a_transfer_that_is_waited_for_in_its_iteration_does_not_cross() -> None:
    text = PIPELINED.replace("send-done(context), channel_id=1\n  send", "after-all()\n  send").replace(
        "ROOT out = (s32[], bf16[1024], (bf16[1024], u32[], token[])) tuple(next, y, send)",
        "sent = token[] send-done(send), channel_id=1\n  ROOT out = (s32[], bf16[1024], (bf16[1024], u32[], token[])) "
        "tuple(next, y, context)",
    )
    simulation = run(program_of(text, 10 * US, 4 * US))
    assert simulation.metrics.exposed >= 10 * 4 * US
