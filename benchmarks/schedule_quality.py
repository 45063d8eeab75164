"""How far schedulers are from proven optimal orders: random bodies, and the loop bodies that decomposition makes.

python -m benchmarks.schedule_quality --random 67 samples/*.hlo
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.control import QUIET
from engine.cost.programs import prepare
from engine.errors import LapstrakeError
from engine.hlo.reading import read_here
from engine.passes.passes import Context
from engine.passes.pipeline import Pipeline
from engine.schedule.instance import Instance
from engine.schedule.measure import broken_rule, makespan
from engine.schedule.problem import Problem
from engine.schedule.programs import problem_of
from engine.schedule.registry import parse_scheduler
from tests.engine.schedule.synthetic import DENSITIES, random_body

FORMS = ("", "unroll=1,ring=one", "unroll=2,ring=one", "unroll=1,ring=both", "unroll=2,ring=both")


def loop_bodies(path: Path, budget: Budget, chip: str) -> Iterator[tuple[str, Problem]]:
    """Loop bodies with transfers that decomposition makes of a module, in every rolled form."""
    module = read_here(path.read_bytes(), str(path))
    machine = machine_for(module, load_chip(chip))
    loaded = {c.name for c in module.proto.computations}
    for form in FORMS:
        options = ",".join(filter(None, ("form=rolled,gate=off", form)))
        try:
            result = Pipeline.parse(f"decompose{{{options}}},async-permute").run(module, Context(machine))
        except LapstrakeError as refusal:
            print(f"  {path.name} {form}: {refusal}")
            continue
        program = prepare(result.module, machine)
        for computation, graph in program.graphs.items():
            calls = np.any(np.diff(graph.called.starts)) and "while" in graph.opcodes
            if graph.name not in loaded and np.any(graph.partner >= 0) and not calls:
                problem = problem_of(program, computation, {}, budget)
                yield f"{path.stem} {form} {graph.name}", replace(problem, loads=None)


@dataclass
class Gaps:
    """Distances to the optimum of one scheduler."""

    values: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        gaps = np.array(self.values)
        return (
            f"mean {gaps.mean():7.3%}  worst {gaps.max():6.1%}  optimal {np.mean(gaps < 1e-9):4.0%}  "
            f"{self.seconds / len(gaps) * 1e3:7.1f} ms each"
        )


def compare(problems: dict[str, Problem], schedulers: list[str], seconds: float) -> None:
    """Print each scheduler's distance from the optimum over the problems that are solved in `seconds`."""
    gaps = {name: Gaps() for name in schedulers}
    unsolved = 0
    for problem in problems.values():
        instance = Instance.of(problem)
        exact = parse_scheduler(f"exact{{seconds={seconds:g}}}").schedule(problem, QUIET)
        best = makespan(instance, exact.nodes.tolist())
        if best != exact.bound:
            unsolved += 1
            continue
        for name, found in gaps.items():
            begun = time.perf_counter()
            order = parse_scheduler(name).schedule(problem, QUIET)
            found.seconds += time.perf_counter() - begun
            broken = broken_rule(problem, order.nodes)
            assert broken is None, broken
            found.values.append(makespan(instance, order.nodes.tolist()) / best - 1 if best else 0.0)
    print(f"  {len(problems) - unsolved} of {len(problems)} solved")
    for name, found in gaps.items():
        if found.values:
            print(f"  {name:24s} {found}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="modules whose decomposed loop bodies are solved")
    parser.add_argument("--random", type=int, default=67, help="random bodies of each density")
    parser.add_argument("--chip", default="tpu-v4")
    parser.add_argument("--budget", action="append", type=int)
    parser.add_argument("--scheduler", action="append")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each optimum")
    arguments = parser.parse_args()
    schedulers = arguments.scheduler or ["memory", "bottom-up", "top-down", "improve"]
    for total in arguments.budget or (4, 1):
        budget = Budget(total)
        for density in DENSITIES:
            print(f"budget {total}, random bodies of 20 to 40 instructions, {density}")
            bodies = {str(seed): random_body(seed, density, budget) for seed in range(arguments.random)}
            compare(bodies, schedulers, arguments.seconds)
        loops: dict[str, Problem] = {}
        for path in arguments.files:
            loops.update(loop_bodies(path, budget, arguments.chip))
        if loops:
            sizes = [len(problem.graph) for problem in loops.values()]
            print(f"budget {total}, loop bodies that decomposition makes, {min(sizes)} to {max(sizes)} instructions")
            compare(loops, schedulers, arguments.seconds)


if __name__ == "__main__":
    main()
