"""How fast programs of 100,000 instructions simulate, and how fast their memory curve comes."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable

import numpy as np

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.chips.machine import Machine
from engine.cost.program import Program
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.module import Header, Module
from engine.schedule.problem import Order, Schedule
from engine.simulate.bounds import bounds
from engine.simulate.memory import live_bytes
from engine.simulate.simulator import SimulationOptions, simulate, simulate_computations
from tests.engine.simulate.synthetic import Sketch, assemble

INSTRUCTIONS = 100_000


def draw(machine: Machine, seed: int = 0) -> Program:
    """A straight line in which every seventh instruction starts a permute, up to four of them in flight."""
    random_ = random.Random(seed)
    sketch = Sketch()
    last = sketch.parameter(1 << 20)
    under_way: list[int] = []
    rate = machine.links[0].rate.usable
    while len(sketch.nodes) < INSTRUCTIONS:
        if under_way and (len(under_way) >= 4 or random_.random() < 0.15):
            last = sketch.done(under_way.pop(0))
        elif random_.random() < 0.15:
            took = random_.randrange(1_000_000, 100_000_000)
            link = random_.randrange(2)
            load = {link: int(rate * took * 1e-12)}
            under_way.append(sketch.start(took, last, loads=load, size=1 << 16))
        else:
            took = random_.choice((0, 1_000, 1_000_000, 20_000_000, 50_000_000))
            last = sketch.compute(took, last, hbm=took * random_.choice((0, 1, 1)), size=1 << 16)
    for start in under_way:
        last = sketch.done(start)
    return assemble([sketch], machine)


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """Seconds of the fastest of `repeats` runs."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    """Print a line for each part of a simulation."""
    argparse.ArgumentParser(prog="benchmarks.simulator", description=__doc__).parse_args()
    machine = machine_for(Module(HloModuleProto(name="none"), Header(num_partitions=8)), load_chip("tpu-v4"))
    program = draw(machine)
    schedule = Schedule("as-loaded", Budget(), {k: Order(np.arange(len(g))) for k, g in program.graphs.items()})
    buffers = program.buffers[0]
    place = np.arange(len(program.graphs[0]))
    for name, work in {
        "events, sharing": lambda: simulate_computations(program, schedule),
        "events, no sharing": lambda: simulate_computations(program, schedule, SimulationOptions(sharing=False)),
        "with timeline, metrics, bounds": lambda: simulate(program, schedule),
        "bounds": lambda: bounds(program),
        "memory": lambda: live_bytes(buffers, place),
    }.items():
        print(f"{name:32s} {best_of(3, work):6.3f} s for {len(place):,} instructions")


if __name__ == "__main__":
    main()
