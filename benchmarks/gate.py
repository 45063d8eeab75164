"""The gate's predicted gains beside simulated ones: each site decomposed alone, everything else left whole, and
asynchronous where the chip's compiler makes it so.

Run: python -m benchmarks.gate [FILE …] [--chip tpu-v4] [--mesh x=8;order=ring]
Both come from the same cost model; what the table shows is how much of the gate's closed form survives a schedule.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.hlo.reading import read
from engine.passes.candidate import Candidate
from engine.passes.rows import rows_of
from engine.quantities import time_text
from engine.session.evaluation import Evaluator
from engine.session.plan import MachineSpec, Plan, whole_plan

DEFAULT = sorted((Path(__file__).parent.parent / "tests" / "data" / "partitioned").glob("*.hlo*"))


def main(argv: Sequence[str] | None = None) -> None:
    """Print one line for each row of sites that can be decomposed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", default=[str(p) for p in DEFAULT])
    parser.add_argument("--chip", default="tpu-v4")
    parser.add_argument("--mesh")
    options = parser.parse_args(argv)
    for path in options.files:
        evaluator = Evaluator(read(path), MachineSpec(options.chip, None, options.mesh))
        print(f"\n{Path(path).name}, {evaluator.machine.chip.title}")
        print(f"{'collective':32} {'sites':>5} {'predicted':>12} {'simulated':>12} {'difference':>12}")
        for candidate, count, predicted, simulated in compare(evaluator):
            print(
                f"{candidate.id[:32]:32} {count:5} {time_text(predicted):>12} {time_text(simulated):>12} "
                f"{time_text(predicted - simulated):>12}  {candidate.kind}, {candidate.case}: {candidate.variant}"
            )


def compare(evaluator: Evaluator) -> Iterator[tuple[Candidate, int, int, int]]:
    """(first candidate, number of sites, predicted gain, simulated gain) of each row; picoseconds, trips included."""
    base = evaluator.evaluate(whole_plan(evaluator.module)).metrics.makespan
    found = evaluator.evaluate(Plan("decompose{gate=off}", "as-loaded")).candidates
    others = {c.id for c in found if c.kind != "chain"}
    for row in rows_of([c for c in found if c.gate is not None and c.id in others]):
        own = {c.id for c in row.candidates}
        passes = (
            f"decompose{{gate=off,chain=off,force={';'.join(sorted(own))},forbid={';'.join(sorted(others - own))}}},"
            "async-permute{kinds=supported},fuse"
        )
        variant = evaluator.evaluate(Plan(passes, "bottom-up"))
        by_id = {c.id: c for c in variant.candidates}
        terms = [c for name, c in by_id.items() if name in own and c.gate is not None]
        predicted = sum(c.gate.gain * c.trips for c in terms if c.gate is not None)
        yield by_id[row.candidates[0].id], len(terms), predicted, base - variant.metrics.makespan


if __name__ == "__main__":
    main()
