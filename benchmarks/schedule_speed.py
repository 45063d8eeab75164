"""How long schedulers take: an instruction's share on random computations of growing size, and on a module.

python -m benchmarks.schedule_speed [MODULE.hlo]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.schedulers import load
from engine.chips.budget import Budget
from engine.control import QUIET
from engine.schedule.measure import peak_memory
from engine.schedule.memory import Memory
from engine.schedule.problem import Problem
from engine.schedule.programs import problem_of
from engine.schedule.registry import parse_scheduler
from engine.simulate.run import ComputationRun
from engine.simulate.simulator import simulate_computation
from tests.engine.schedule.synthetic import random_module

SIZES = (1_000, 2_000, 10_000, 30_000, 100_000)
SCHEDULERS = ("memory", "bottom-up", "top-down")


def print_times(label: str, problem: Problem, repeats: int) -> None:
    """Microseconds an instruction, the best of `repeats`; without a cap, and with the memory rules in force."""
    n = len(problem.graph)
    peak = peak_memory(problem, Memory().schedule(problem, QUIET).nodes)
    shown = []
    for capped in (False, True):
        asked = replace(problem, memory_cap=int(peak * 1.5) if capped else None)
        for name in SCHEDULERS:
            best = min(_seconds(asked, name) for _ in range(repeats))
            shown.append(f"{name}{' (memory rules)' if capped else ''} {best / n * 1e6:5.1f}")
    print(f"{label:28s} {n:8,} instructions, µs each: {'  '.join(shown)}")


def _seconds(problem: Problem, name: str) -> float:
    """Process time: what else runs on the machine does not count."""
    begun = time.process_time()
    parse_scheduler(name).schedule(problem, QUIET)
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", nargs="?", type=Path)
    parser.add_argument("--budget", default="4", type=Budget.parse)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    for size in SIZES:
        print_times("random", random_module(0, size, arguments.budget), arguments.repeats)
    if arguments.module is not None:
        program = load(arguments.module, "decompose,async-permute", "tpu-v4")
        *callees, entry = program.graphs
        runs: dict[int, ComputationRun] = {}
        for computation in callees:
            problem = problem_of(program, computation, runs, arguments.budget)
            order = parse_scheduler("bottom-up").schedule(problem, QUIET)
            runs[computation] = simulate_computation(program, computation, order, runs)
        print_times(arguments.module.name, problem_of(program, entry, runs, arguments.budget), arguments.repeats)


if __name__ == "__main__":
    main()
