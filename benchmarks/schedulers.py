"""Every scheduler on real modules: makespan, lower bound, exposed communication, peak memory, time.

python -m benchmarks.schedulers samples/*.hlo
python -m benchmarks.schedulers --cap 1.05 samples/*.hlo       also under a memory cap
python -m benchmarks.schedulers DIR/*.schedule.txt.gz          against a compiler's order, with its costs
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.program import Program
from engine.cost.programs import prepare
from engine.cost.scheduled_module import read_scheduled_module
from engine.errors import LapstrakeError
from engine.hlo.reading import read_here
from engine.passes.passes import Context
from engine.passes.pipeline import Pipeline
from engine.quantities import bytes_text, time_text
from engine.schedule.programs import schedule_program
from engine.schedule.registry import parse_scheduler
from engine.simulate.bounds import bounds
from engine.simulate.replay import price
from engine.simulate.run import ComputationRun
from engine.simulate.simulator import SimulationOptions, simulate_computations


def load(path: Path, passes: str, chip: str) -> Program:
    """A module after `passes`, priced; the compiler's order and costs for a predicted schedule."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if ".schedule.txt" in path.name:
        predicted = read_scheduled_module(data.decode(), str(path))
        return price(predicted, machine_for(predicted.module, load_chip(chip)))
    module = read_here(data, str(path))
    machine = machine_for(module, load_chip(chip))
    return prepare(Pipeline.parse(passes).run(module, Context(machine)).module, machine)


def runs_of(
    program: Program, scheduler: str, budget: Budget, sharing: bool, cap: int | None = None
) -> tuple[Mapping[int, ComputationRun], float]:
    """Every computation under a scheduler, and the seconds that scheduling took."""
    begun = time.perf_counter()
    schedule = schedule_program(program, parse_scheduler(scheduler), budget, memory_cap=cap, sharing=sharing)
    took = time.perf_counter() - begun
    return simulate_computations(program, schedule, SimulationOptions(sharing=sharing)), took


def entry_of(runs: Mapping[int, ComputationRun]) -> ComputationRun:
    return list(runs.values())[-1]


def print_module(program: Program, schedulers: Sequence[str], budget: Budget, cap: float | None) -> None:
    """A row for each scheduler, and how much of its gain over the memory order a cap leaves."""
    instructions = sum(len(graph) for graph in program.graphs.values())
    bound = bounds(program).best
    base, _ = runs_of(program, "memory", budget, sharing=True)
    for scheduler in schedulers:
        runs, took = runs_of(program, scheduler, budget, sharing=True)
        run = entry_of(runs)
        row = (
            f"  {scheduler:28s} makespan {time_text(run.makespan):>9s}  bound {time_text(bound):>9s}  "
            f"exposed {time_text(run.totals.exposed):>9s}  peak {bytes_text(run.peak):>9s}  in flight {run.in_flight}  "
            f"{took:6.2f} s, {took / instructions * 1e6:5.1f} µs an instruction"
        )
        gain = entry_of(base).makespan - run.makespan
        if cap is not None and gain > 0:
            limit = int(entry_of(base).peak * cap)
            capped = entry_of(runs_of(program, scheduler, budget, sharing=True, cap=limit)[0])
            kept = (entry_of(base).makespan - capped.makespan) / gain
            row += (
                f"  under {cap:g} × memory's peak: {kept:4.0%} of the gain, peak {capped.peak / limit:.3f} of the cap"
            )
        print(row)


def print_against_compiler(program: Program, schedulers: Sequence[str], budget: Budget) -> None:
    """A row for each computation that has transfers, sharing off as in the compiler's own prediction."""
    compiler, _ = runs_of(program, "as-loaded", budget, sharing=False)
    ours = {name: runs_of(program, name, budget, sharing=False)[0] for name in schedulers}
    worse = 0
    for computation, graph in program.graphs.items():
        if not np.any(graph.partner >= 0):
            continue
        theirs = compiler[computation].makespan
        found = {name: runs[computation].makespan for name, runs in ours.items()}
        slower = min(found.values()) > theirs
        worse += slower
        shown = "  ".join(f"{name} {time_text(value):>9s}" for name, value in found.items())
        print(f"  {graph.name[:48]:48s} compiler {time_text(theirs):>9s}  {shown}{'  SLOWER' if slower else ''}")
    print(f"  slower than the compiler's order: {worse} computations")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--passes", default="decompose,async-permute")
    parser.add_argument("--chip", default="tpu-v4")
    parser.add_argument("--budget", default="4", type=Budget.parse)
    parser.add_argument("--scheduler", action="append", help="may be given several times")
    parser.add_argument("--cap", type=float, help="memory cap, as a part of the peak of the memory order")
    arguments = parser.parse_args()
    for path in arguments.files:
        try:
            program = load(path, arguments.passes, arguments.chip)
        except LapstrakeError as error:
            print(f"{path.name}: {error}")
            continue
        print(f"{path.name}: {sum(len(g) for g in program.graphs.values()):,} instructions, budget {arguments.budget}")
        if ".schedule.txt" in path.name:
            print_against_compiler(program, arguments.scheduler or ["bottom-up", "top-down"], arguments.budget)
        else:
            schedulers = arguments.scheduler or ["memory", "bottom-up", "top-down", "improve"]
            print_module(program, schedulers, arguments.budget, arguments.cap)


if __name__ == "__main__":
    main()
