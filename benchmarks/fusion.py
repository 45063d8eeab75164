"""How long a changed fusion decision takes to show: passes, pricing, scheduling, simulation, and the way to the window.

python -m benchmarks.fusion [MODULE.hlo] [--passes PASSES] [--toggles N]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from engine import worker
from engine.control import QUIET
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.session.evaluation import Evaluator
from engine.session.plan import MachineSpec, Plan
from engine.session.variant import Variant
from views.fusion.harm import fusion_rows, taken

MODULE = Path(__file__).parent.parent / "samples" / "decoder_fig2_scan_16_large.hlo"
PASSES = "decompose{form=unrolled},async-permute,fuse{policy=default}"
BOUND = 0.5
"""Seconds from the toggle to its result, for a module of 2,000 instructions."""


@dataclass(frozen=True)
class Taken:
    """Seconds that one toggle took."""

    wall: float
    cpu: float


def main() -> None:
    """Print the times of toggles in this process, then through a worker as the window has them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", nargs="?", type=Path, default=MODULE)
    parser.add_argument("--passes", default=PASSES, help="a plan whose last pass is fuse")
    parser.add_argument("--toggles", type=int, default=8, help="decisions that are changed, the most harmful first")
    asked = parser.parse_args()
    module = read_here(asked.module.read_bytes(), str(asked.module), QUIET)
    plan = Plan(asked.passes, "bottom-up")
    evaluator = Evaluator(module, MachineSpec())
    variant = evaluator.evaluate(plan)
    unfused = asked.passes.rpartition("fuse")[0].removesuffix(",")
    count = _count(evaluator.transform(Plan(unfused, "bottom-up")).module)
    print(f"{asked.module.name}: {_count(module):,} instructions as loaded, {count:,} before fuse, ", end="")
    print(f"{_count(variant.program.module):,} after, {len(variant.fusions):,} decisions, {plan.passes}")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    plans = toggles(variant, asked.toggles)
    report("in one process", [measure(partial(evaluator.evaluate, one)) for one in plans])
    report("back to one that was seen", [measure(partial(evaluator.evaluate, one)) for one in plans])
    ask = partial(worker.call, "app.work:evaluate", module, MachineSpec())
    ask(plan, "")
    report("through a worker, as shown", [measure(partial(ask, one, "")) for one in plans])


def toggles(variant: Variant, count: int) -> list[Plan]:
    """Plans with one other decision each, the most harmful fusions first."""
    rows = [row for row in fusion_rows(variant) if row.fusion.alternatives]
    return [taken(variant.plan, row.fusion.alternatives[0]) for row in rows[:count]]


def measure(change: Callable[[], object]) -> Taken:
    wall, cpu = time.perf_counter(), time.process_time()
    change()
    return Taken(time.perf_counter() - wall, time.process_time() - cpu)


def report(label: str, times: list[Taken]) -> None:
    wall = np.array([t.wall for t in times])
    cpu = np.array([t.cpu for t in times])
    verdict = "within" if np.median(wall) <= BOUND else "over"
    print(
        f"{label:<28} median {np.median(wall):6.3f} s, worst {wall.max():6.3f} s, "
        f"of this process's time {np.median(cpu):6.3f} s: {verdict} the bound of {BOUND} s"
    )


def _count(module: Module) -> int:
    return sum(len(c.instructions) for c in module.proto.computations)


if __name__ == "__main__":
    main()
