"""Our plans against the TPU compiler's, in the compiler's own predicted cycles and in our simulator. No TPU is needed.

python -m benchmarks.production                    the five programs; about ten minutes on two cores
python -m benchmarks.production mlp_mega           one of them, or a few
python -m benchmarks.production --to-the-end ...   with code generated: another hour, and the costs after that beside
python -m benchmarks.production --first samples/mlp_fig3   a sample; the plan that `compile` shows by itself

Nothing here was measured on a TPU. Cycles are those of the compiler's predicted schedule, a loop counted as its trips
times its whole body for every plan alike (the compiler's own rows leave the waits in loops out). Its costs take any
number of permutes at full speed, so plans count only with one permute each way round a ring at a time, devices lie in
ring order, and the largest load of a link by routing stands beside each figure.

The compiler gets the JAX program, as from a job: once with its decomposition, its default, and once without. What it
makes by default is given as its own order takes, and with each start that breaks that rule held back: ours is compared
with the second. Ours is the plan that `tune_production` finds: every form of decomposition, then single sites turned,
each compiled up to its schedule and put in order under the compiler's costs. The same procedure for every program.
Where it loses, to either, what its cycles go into says why. Needs the extra `tpu`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine import worker
from engine.errors import UnsupportedError
from engine.execute.compiling import NO_OPTIONS, WITHOUT_DECOMPOSITION, Unpartitioned
from engine.execute.targets import Target, check_installed
from engine.hlo.reading import read
from engine.session.finished import finished
from engine.session.plan import Plan
from engine.session.production import PIN_BUDGET, Produced, Production
from engine.session.production_tuning import first_plan, tune_production
from engine.timeline.statistics import executions, times_by_instruction
from engine.timeline.timeline import Category, LaneKind

ROOT = Path(__file__).parent.parent
DATA = "tests/data/partitioned"
LOWERING = 300.0
"""Seconds that jax may take for one program."""


@dataclass(frozen=True)
class Case:
    """A program of benchmarks.programs, the same behind the partitioner, and what to compile for."""

    name: str
    file: str
    """From the repository's root."""
    target: str


CASES = (
    Case("mlp_fig2", f"{DATA}/mlp_fig2.hlo", "tpu:v4:2x2x2"),
    Case("mlp_fig3", f"{DATA}/mlp_fig3.hlo", "tpu:v4:2x2x2"),
    Case("mlp_mega", f"{DATA}/mlp_mega.hlo", "tpu:v4:2x2x2"),
    Case("transformer_1d", f"{DATA}/a_v4-2x2x2_1d_1x8_d4096_L2_scan.hlo.gz", "tpu:v4:2x2x2"),
    Case("transformer_2d", f"{DATA}/we_v4-4x4x4_2d_8x8_d8192_L2_scan.hlo.gz", "tpu:v4:4x4x4"),
)


SAMPLES = tuple(
    Case(f"samples/{name}", f"samples/{name}.hlo", target)
    for name, target in (
        ("mlp_fig2", "tpu:v4:2x2x2"),
        ("mlp_fig3", "tpu:v4:2x2x2"),
        ("mlp_chain", "tpu:v4:2x2x2"),
        ("mlp_fig2_train_16_large", "tpu:v4:2x2x4"),
        ("mlp_fig3_train_8x8_large", "tpu:v4:4x4x4"),
        ("decoder_fig2_scan_16_large", "tpu:v4:2x2x4"),
        ("decoder_fig3_scan_8x8_large", "tpu:v4:4x4x4"),
        ("pipeline_forward_4_f32", "tpu:v4:2x2x1"),
        ("pipeline_train_4x2_f32", "tpu:v4:2x2x2"),
    )
)
"""Those for which the compiler predicts a schedule by default; the collectives of others block, whole."""


@dataclass(frozen=True)
class Judged:
    """One program's figures."""

    case: Case
    whole: Produced
    default: Produced
    held: int
    """Cycles of the default in the compiler's own order, but for starts that wait for the permute before them."""
    loose: Produced
    pinned: Produced
    plans: int
    """How many were tried for ours."""

    @property
    def rows(self) -> tuple[Produced, ...]:
        return self.whole, self.default, self.loose, self.pinned

    @property
    def no_worse(self) -> bool:
        return self.pinned.counts and self.pinned.cycles <= self.held


def judge(case: Case, to_the_end: bool, first: bool) -> Judged:
    """The compiler's two figures of a program, then our best that counts, loose and pinned; with `first` of a few."""
    module = read(str(ROOT / case.file))
    production = Production(module, Target.parse(case.target))
    print(f"\n{case.name} on {case.target}", flush=True)
    program = lowered(case.name, production.target.devices)
    short = not to_the_end
    whole, default = (
        shown(production.compiled(f"compiler, {name}", program, options, scheduled_only=short))
        for name, options in (("without decomposition", WITHOUT_DECOMPOSITION), ("default", NO_OPTIONS))
    )
    held = default.cycles
    if not default.counts:
        held = production.ordered(default, Plan("", "as-loaded", PIN_BUDGET)).cycles
        print(f"  {'… held to one permute each way at a time':76s}{held:12,} cycles", flush=True)
    tuned = first_plan(production) if first else tune_production(production)
    if tuned.best is None:
        raise UnsupportedError(f"no plan of {case.name} could be compiled: {tuned.trials[0].why_not}")
    plan = tuned.best.plan
    made = production.transformed(plan).module
    text = f"{plan.passes} · {plan.scheduler}"
    loose = shown(production.compiled(f"ours: {text}", made, production.options(plan), scheduled_only=short))
    pinned = shown(production.pinned("ours, pinned", made, production.ordered(loose, plan), scheduled_only=short))
    judged = Judged(case, whole, default, held, loose, pinned, len(tuned.trials))
    explain(judged)
    return judged


def lowered(name: str, devices: int) -> Unpartitioned:
    """The JAX program: the compiler decomposes while it partitions, which the module that we take is past."""
    environment = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(devices)}
    if name.startswith("samples/"):
        environment["JAX_NUM_CPU_DEVICES"] = "64"  # as many as samples.generate asks for
    made = worker.call("benchmarks.programs:lower_in_worker", name, environment=environment, deadline=LOWERING)
    assert isinstance(made, Unpartitioned)
    return made


def shown(produced: Produced) -> Produced:
    parts = cycles_by_category(produced)
    print(
        f"  {produced.variant.name:76s}{produced.cycles:12,} cycles ="
        f" einsums {parts[Category.EINSUM]:11,} + other {parts[Category.ELEMENTWISE]:11,}"
        f" + waiting {parts[Category.EXPOSED]:11,}; model {produced.model.makespan / 1e6:10,.1f} µs;"
        f" each way {produced.each_way}{' ' if produced.counts else '!'}, link {produced.link_load:.1f}",
        flush=True,
    )
    return produced


def cycles_by_category(produced: Produced) -> dict[Category, int]:
    """Of the compute stream: einsums, waiting, and all the rest as element-wise."""
    timeline = produced.variant.timeline
    kinds = np.array([lane.kind for lane in timeline.lanes], dtype=np.uint8)[timeline.lane]
    length = timeline.duration * executions(timeline) * produced.clock / 1e6
    own = (kinds == LaneKind.COMPUTE) & (timeline.category != Category.LOOP)
    sums = {category: round(float(length[own & (timeline.category == category)].sum())) for category in Category}
    rest = sum(sums.values()) - sums[Category.EINSUM] - sums[Category.EXPOSED]
    return {**sums, Category.ELEMENTWISE: rest}


def explain(judged: Judged) -> None:
    """How ours compares, and where its cycles go if there are more of them than the compiler's default has as it is:
    by category, then the instructions that cost most."""
    theirs, ours = judged.default, judged.pinned
    print(f"  ours is {_gap(ours.cycles, judged.held)} the compiler's default with one permute each way at a time")
    if ours.counts and ours.cycles <= theirs.cycles:
        return
    over = _gap(ours.cycles, theirs.cycles)
    print(f"  and {over} its default with {theirs.each_way} one way at a time: nothing is gained")
    a, b = cycles_by_category(theirs), cycles_by_category(ours)
    for category in (Category.EINSUM, Category.ELEMENTWISE, Category.EXPOSED):
        print(f"    {category.name.lower():12s}{b[category] - a[category]:+13,}")
    for title, produced in (("theirs", theirs), ("ours", ours)):
        print(f"    {title}: {', '.join(_dearest(produced))}")


def _gap(ours: int, theirs: int) -> str:
    return f"{abs(1 - ours / theirs):.1%} {'under' if ours <= theirs else 'over'}"


def _dearest(produced: Produced) -> Iterable[str]:
    module = produced.variant.program.module
    times = times_by_instruction(produced.variant.timeline)
    for id_ in sorted(times, key=lambda i: -times[i].stream)[:8]:
        spent = times[id_].stream * produced.clock / 1e6
        name = module.instructions[id_].name if id_ in module.instructions else str(id_)
        yield f"{name} {spent:,.0f} (waiting {times[id_].exposed * produced.clock / 1e6:,.0f})"


def _final(produced: Produced) -> str:
    """By the estimates that the compiler ends with."""
    found = finished(produced)
    return f"{'':>16s}" if found is None else f"{found.cycles:>13,} ({found.covered:.0%})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to-the-end", action="store_true", help="generate code too, for the costs after that")
    parser.add_argument("--first", action="store_true", help="the plan that is shown without a search")
    names = ", ".join(case.name for case in (*CASES, *SAMPLES))
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {names}; the first five by default")
    arguments = parser.parse_args()
    chosen = [case for case in (*CASES, *SAMPLES) if case.name in arguments.programs] or list(CASES)
    check_installed(Target.parse(CASES[0].target))
    table = [judge(case, arguments.to_the_end, arguments.first) for case in chosen]
    titles = ("whole", "default", "ours", "ours, pinned")
    more = f"{'default, held':>16s}{'pinned / held':>16s}{'pinned / default':>18s}{'plans tried':>13s}"
    print(f"\n{'cycles':16s}" + "".join(f"{title:>16s}" for title in titles) + more)
    for judged in table:
        cells = "".join(f"{row.cycles:>15,}{' ' if row.counts else '!'}" for row in judged.rows)
        ratios = f"{judged.pinned.cycles / judged.held:16.3f}{judged.pinned.cycles / judged.default.cycles:18.3f}"
        print(f"{judged.case.name:16s}{cells}{judged.held:16,}{ratios}{judged.plans:13}")
    print(f"\n{'our model, µs':16s}" + "".join(f"{title:>16s}" for title in titles))
    for judged in table:
        print(f"{judged.case.name:16s}" + "".join(f"{row.model.makespan / 1e6:>16,.1f}" for row in judged.rows))
    if arguments.to_the_end:
        print(f"\n{'cycles, final':16s}" + "".join(f"{title:>16s}" for title in titles))
        for judged in table:
            print(f"{judged.case.name:16s}" + "".join(_final(row) for row in judged.rows))
        print("in brackets the share of the compute that has final estimates; the rest is taken as predicted")
    better = sum(judged.no_worse for judged in table)
    print(f"\nours is no worse than the compiler's default in its own cycles on {better} of {len(table)}")
    print("! more than one permute one way at a time, which costs nothing by the compiler: too good")


if __name__ == "__main__":
    main()
