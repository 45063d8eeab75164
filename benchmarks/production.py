"""Our plans against the TPU compiler's, in the compiler's own predicted cycles and in our simulator. No TPU is needed.

python -m benchmarks.production                    the five programs; 10 to 30 minutes on two cores
python -m benchmarks.production mlp_mega           one of them, or a few

Nothing here was measured on a TPU. Cycles are those of the compiler's predicted schedule, a loop counted as its trips
times its whole body for every plan alike (the compiler's own rows leave the waits in loops out). Its costs take any
number of permutes at full speed, so plans count only with one permute each way round a ring at a time, devices lie in
ring order, and the largest load of a link by routing stands beside each figure. What the compiler makes by default is
also given as its own order takes with that rule kept: ours is compared with that. Ours are tried in the forms of PLANS
and the best that counts is shown; where it loses, what its cycles go into says why. Needs the extra `tpu`.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine import worker
from engine.control import Control
from engine.errors import LapstrakeError, UnsupportedError
from engine.execute.compiling import (
    ASYNCHRONOUS_GATHERS,
    DECOMPOSED_LATE,
    NO_OPTIONS,
    WITHOUT_DECOMPOSITION,
    Compiled,
    Unpartitioned,
)
from engine.execute.targets import Target, check_installed
from engine.hlo.reading import read
from engine.ir.module import Module
from engine.session.plan import Plan
from engine.session.production import OURS, PIN_BUDGET, Produced, Production
from engine.timeline.statistics import executions, times_by_instruction
from engine.timeline.timeline import Category, LaneKind

DATA = Path(__file__).parent.parent / "tests" / "data"
PLANS = (
    "decompose{gate=off}",
    "decompose{gate=off,chain=off,form=unrolled,unroll=2}",
    "decompose{gate=off,chain=off}",
)
SCHEDULERS = ("bottom-up", "top-down", "improve")
BATCH, FEATURES, HIDDEN = 8192, 4096, 16384


@dataclass(frozen=True)
class Case:
    """A program, and where what the compiler makes of it by default comes from."""

    name: str
    file: str
    target: str
    default: Callable[[Production], Produced]
    plans: tuple[str, ...] = PLANS
    schedulers: tuple[str, ...] = SCHEDULERS


def lowered(name: str) -> Callable[[Production], Produced]:
    """By compiling the JAX program: the compiler decomposes while it partitions, which `file` is past."""

    def compile_(production: Production) -> Produced:
        environment = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "8"}
        program = worker.call("benchmarks.production:lower_in_worker", name, environment=environment, deadline=120.0)
        # It leaves the collectives of mlp_fig3 whole; with all of them blocking it writes no schedule down.
        options = ASYNCHRONOUS_GATHERS if name == "mlp_fig3" else NO_OPTIONS
        return production.compiled("compiler, default", program, options)

    return compile_


def late(production: Production) -> Produced:
    """By its decomposition of modules that are partitioned: the program before partitioning is not here.

    This and the default differ by less than 1 % on mlp_fig2 and mlp_mega, and by 27 % on mlp_fig3.
    """
    return production.compiled("compiler, decomposing after partitioning", production.module, DECOMPOSED_LATE)


def recorded(file: str) -> Callable[[Production], Produced]:
    """From a schedule that the compiler wrote of the same program before partitioning."""

    def judge(production: Production) -> Produced:
        text = gzip.decompress((DATA / "tpu-compiler" / file).read_bytes()).decode()
        return production.judged(Compiled(production.target, "", text, 0.0, {}), "compiler, default")

    return judge


CASES = (
    Case("mlp_fig2", "mlp_fig2.hlo", "tpu:v4:2x2x2", lowered("mlp_fig2")),
    Case(
        "mlp_fig3",
        "mlp_fig3.hlo",
        "tpu:v4:2x2x2",
        lowered("mlp_fig3"),
        # An einsum overlaps with one collective: its weights' gather here, or what the model prefers.
        ("decompose{gate=off,forbid=all-gather;all-reduce.1}", "decompose{gate=off,forbid=all-gather}", "decompose"),
    ),
    Case("mlp_mega", "mlp_mega.hlo", "tpu:v4:2x2x2", lowered("mlp_mega")),
    Case(
        "transformer_1d",
        "a_v4-2x2x2_1d_1x8_d4096_L2_scan.hlo.gz",
        "tpu:v4:2x2x2",
        late,
        ("decompose",),
        ("bottom-up",),
    ),
    Case(
        "transformer_2d",
        "we_v4-4x4x4_2d_8x8_d8192_L2_scan.hlo.gz",
        "tpu:v4:4x4x4",
        recorded("we_v4-4x4x4_2d_8x8_d8192_L2_scan_default.schedule.txt.gz"),
        ("decompose",),
        ("bottom-up",),
    ),
)


def lower_in_worker(name: str, *, control: Control) -> Unpartitioned:
    """The MLPs of tests/data/partitioned before partitioning: bf16, relu between two einsums."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    control.step(0.0, f"lowering {name}")
    shape, axes = ((2, 4), ("x", "y")) if name == "mlp_fig3" else ((8,), ("x",))
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(shape), axes)

    def sharding(spec: tuple[str | None, str | None]) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec(*spec))

    specs: dict[str, list[tuple[str | None, str | None]]] = {
        "mlp_fig2": [("x", None), ("x", None), (None, "x")],
        "mlp_fig3": [("y", "x"), ("y", "x"), ("x", "y")],
        "mlp_mega": [("x", None), (None, "x"), ("x", None)],
    }
    placed = [sharding(spec) for spec in specs[name]]

    def step(rows: Any, w1: Any, w2: Any) -> Any:
        hidden = jnp.einsum("bf,fh->bh", rows, w1)
        if name == "mlp_fig3":
            hidden = jax.lax.with_sharding_constraint(hidden, sharding(("y", "x")))
        return jnp.einsum("bh,hf->bf", jax.nn.relu(hidden), w2)

    sizes = ((BATCH, FEATURES), (FEATURES, HIDDEN), (HIDDEN, FEATURES))
    arguments = [
        jax.ShapeDtypeStruct(size, jnp.bfloat16, sharding=where) for size, where in zip(sizes, placed, strict=True)
    ]
    program = jax.jit(step, out_shardings=placed[0]).lower(*arguments)
    operation: Any = program.compiler_ir()
    return Unpartitioned(name, operation.operation.get_asm(binary=False, assume_verified=True).encode(), 8)


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

    @property
    def rows(self) -> tuple[Produced, ...]:
        return self.whole, self.default, self.loose, self.pinned

    @property
    def no_worse(self) -> bool:
        return self.pinned.counts and self.pinned.cycles <= self.held


def judge(case: Case) -> Judged:
    """The compiler's two figures of a program, then our best that counts, loose and pinned."""
    module = read(str(DATA / "partitioned" / case.file))
    production = Production(module, Target.parse(case.target))
    print(f"\n{case.name} on {case.target}", flush=True)
    whole = shown(production.compiled("compiler, without decomposition", module, WITHOUT_DECOMPOSITION))
    default = shown(case.default(production))
    held = default.cycles
    if not default.counts:
        held = production.ordered(default, Plan("", "as-loaded", PIN_BUDGET)).cycles
        print(f"  {'… held to one permute each way at a time':76s}{held:12,} cycles", flush=True)
    loose, pinned = tried(production, case)
    if not loose:
        raise UnsupportedError(f"no plan of {case.name} could be compiled")
    # Where no order could be pinned, why was said, and the compiler's own order of our best stands in.
    judged = Judged(case, whole, default, held, best(loose), best(pinned or loose))
    explain(judged)
    return judged


def tried(production: Production, case: Case) -> tuple[list[Produced], list[Produced]]:
    """Every plan of the case, compiled and pinned; plans that make the same module once."""
    loose: list[Produced] = []
    pinned: list[Produced] = []
    seen: set[bytes] = set()
    for passes in case.plans:
        module: Module = production.transformed(Plan(passes, "bottom-up", PIN_BUDGET)).module
        content = module.proto.SerializeToString()
        if content in seen:
            continue
        seen.add(content)
        try:
            loose.append(shown(production.compiled(f"ours, compiled by it: {passes}", module, OURS["tpu"])))
            ordered = [production.ordered(loose[-1], Plan(passes, s, PIN_BUDGET)) for s in case.schedulers]
            order = min(ordered, key=lambda o: o.cycles)
            name = f"ours, pinned: {passes} · {order.plan.scheduler}"
            pinned.append(shown(production.pinned(name, module, order)))
        except LapstrakeError as reason:
            print(f"  {passes}: {reason}", flush=True)
    return loose, pinned


def best(found: Sequence[Produced]) -> Produced:
    """The fastest that counts; the fastest where none does."""
    return min(found, key=lambda p: (not p.counts, p.cycles))


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
    """Where our cycles go, if there are more of them: by category, then the instructions that cost most."""
    theirs, ours = judged.default, judged.pinned
    if judged.no_worse:
        print(f"  ours is {1 - ours.cycles / judged.held:.1%} under the compiler's default")
        return
    print(f"  ours is {ours.cycles / judged.held - 1:.1%} over the compiler's default:")
    a, b = cycles_by_category(theirs), cycles_by_category(ours)
    for category in (Category.EINSUM, Category.ELEMENTWISE, Category.EXPOSED):
        print(f"    {category.name.lower():12s}{b[category] - a[category]:+13,}")
    for title, produced in (("theirs", theirs), ("ours", ours)):
        print(f"    {title}: {', '.join(_dearest(produced))}")


def _dearest(produced: Produced) -> Iterable[str]:
    module = produced.variant.program.module
    times = times_by_instruction(produced.variant.timeline)
    for id_ in sorted(times, key=lambda i: -times[i].stream)[:8]:
        spent = times[id_].stream * produced.clock / 1e6
        name = module.instructions[id_].name if id_ in module.instructions else str(id_)
        yield f"{name} {spent:,.0f} (waiting {times[id_].exposed * produced.clock / 1e6:,.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(case.name for case in CASES))
    arguments = parser.parse_args()
    chosen = [case for case in CASES if not arguments.programs or case.name in arguments.programs]
    check_installed(Target.parse(CASES[0].target))
    table = [judge(case) for case in chosen]
    titles = ("whole", "default", "ours", "ours, pinned")
    print(f"\n{'cycles':16s}" + "".join(f"{title:>16s}" for title in titles) + "    default, held   pinned / held")
    for judged in table:
        cells = "".join(f"{row.cycles:>15,}{' ' if row.counts else '!'}" for row in judged.rows)
        print(f"{judged.case.name:16s}{cells}{judged.held:17,}{judged.pinned.cycles / judged.held:16.3f}")
    print(f"\n{'our model, µs':16s}" + "".join(f"{title:>16s}" for title in titles))
    for judged in table:
        print(f"{judged.case.name:16s}" + "".join(f"{row.model.makespan / 1e6:>16,.1f}" for row in judged.rows))
    better = sum(judged.no_worse for judged in table)
    print(f"\nours is no worse than the compiler's default in its own cycles on {better} of {len(table)}")
    print("! more than one permute one way at a time, which costs nothing by the compiler: too good")


if __name__ == "__main__":
    main()
