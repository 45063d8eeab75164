"""What a GPU says of our predictions: single-device modules with and without fusion choices, run, checked, profiled.

    python -m benchmarks.gpu --output DIR            on a machine with a GPU (jax with its CUDA plugin)
    python -m benchmarks.gpu --platform cpu --quick  a dry run on CPU devices, whose times say nothing of a GPU

For each module and each fusion policy: numbers held to those of the module as loaded, median times, the predicted and
the measured time of every instruction, and how far apart they are. Profiles are saved as NAME.POLICY.xplane.pb with
the module's HLO beside them, to become test data. No GPU was at hand when this was written: it was run on CPUs only.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from engine.errors import LapstrakeError
from engine.execute.devices import platforms_found
from engine.execute.timing import RunOptions
from engine.execute.verifying import verify
from engine.export.hlo import export_bytes
from engine.export.writing import write_atomically
from engine.hlo.reading import read
from engine.ir.module import Module
from engine.quantities import microseconds, time_text
from engine.session.evaluation import Evaluator
from engine.session.measured import Observation
from engine.session.plan import MachineSpec, Plan
from engine.session.running import Ran, run_variants

POLICIES = ("none", "default", "overlap")
LISTED = 8

HEAD = "HloModule {name}, num_partitions=1\n"
ADD = "add {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}}\n"
PROGRAMS = {
    "mlp": HEAD + "ENTRY main {{\n"
    "  x = bf16[{m},{k}] parameter(0)\n  w = bf16[{k},{n}] parameter(1)\n  v = bf16[{n},{k}] parameter(2)\n"
    "  h = bf16[{m},{n}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
    "  z = bf16[] constant(0)\n  zs = bf16[{m},{n}] broadcast(z), dimensions={{}}\n"
    "  r = bf16[{m},{n}] maximum(h, zs)\n  q = bf16[{m},{n}] multiply(r, r)\n"
    "  ROOT y = bf16[{m},{k}] dot(q, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}\n",
    "accumulate": HEAD + "ENTRY main {{\n"
    "  x = bf16[{m},{k}] parameter(0)\n  w = bf16[{k},{n}] parameter(1)\n  a = bf16[{m},{n}] parameter(2)\n"
    "  p = bf16[{m},{n}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
    "  s = bf16[{m},{n}] add(p, a)\n  t = bf16[{m},{n}] tanh(s)\n"
    "  ROOT o = (bf16[{m},{n}], bf16[{m},{n}]) tuple(s, t)\n}}\n",
    "normalise": HEAD + ADD + "ENTRY main {{\n"
    "  x = f32[{m},{k}] parameter(0)\n  g = f32[{k}] parameter(1)\n  q = f32[{m},{k}] multiply(x, x)\n"
    "  z = f32[] constant(0)\n  s = f32[{m}] reduce(q, z), dimensions={{1}}, to_apply=add\n"
    "  e = f32[] constant(1)\n  es = f32[{m}] broadcast(e), dimensions={{}}\n  d = f32[{m}] add(s, es)\n"
    "  i = f32[{m}] rsqrt(d)\n  b = f32[{m},{k}] broadcast(i), dimensions={{0}}\n"
    "  h = f32[{m},{k}] broadcast(g), dimensions={{1}}\n  n = f32[{m},{k}] multiply(x, b)\n"
    "  ROOT y = f32[{m},{k}] multiply(n, h)\n}}\n",
}
"""Einsums with what is fused into them, and a program that memory bandwidth limits."""


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction of one variant."""

    module: str
    policy: str
    observation: Observation

    def as_json(self) -> dict[str, Any]:
        o = self.observation
        return {
            "module": self.module,
            "policy": self.policy,
            "instruction": o.name,
            "predicted_us": microseconds(o.predicted),
            "measured_us": microseconds(o.measured),
            "error": o.error,
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0; 1 where numbers differ; 2 where nothing could be run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", choices=("gpu", "cpu", "tpu"), default="gpu")
    parser.add_argument("--chip", default="h100", help="that predictions are made for (lapstrake chips); default h100")
    parser.add_argument("--repeats", type=int, default=20, metavar="K")
    parser.add_argument("--quick", action="store_true", help="small shapes: to try the script, not the device")
    parser.add_argument("--output", type=Path, metavar="DIR", help="save profiles, modules and results.json there")
    options = parser.parse_args(arguments)
    found = next(p for p in platforms_found() if p.name == options.platform)
    if not found.count:
        print(f"{options.platform}: {found.problem}", file=sys.stderr)
        return 2
    print(f"{found.kind} ({found.version}), predictions for {options.chip}")
    if options.platform == "cpu":
        print("a dry run: times of a CPU say nothing of a GPU")
    rows: list[Row] = []
    equal = True
    try:
        for name, module in modules(options.quick):
            equal &= _try(name, module, options, rows)
    except LapstrakeError as error:
        print(f"{error}", file=sys.stderr)
        return 2
    _summarise(rows)
    if options.output:
        content = {
            "device": found.kind,
            "version": found.version,
            "platform": options.platform,
            "chip": options.chip,
            "instructions": [row.as_json() for row in rows],
        }
        write_atomically(options.output / "results.json", json.dumps(content, indent=1).encode())
    return 0 if equal else 1


def modules(quick: bool) -> Iterator[tuple[str, Module]]:
    """The programs, read."""
    sizes = {"m": 64, "k": 64, "n": 128} if quick else {"m": 8192, "k": 4096, "n": 16384}
    for name, text in PROGRAMS.items():
        yield name, read(text.format(name=name, **sizes).encode(), name=name)


def _try(name: str, module: Module, options: argparse.Namespace, rows: list[Row]) -> bool:
    """Verify and run `module` under every policy; whether all numbers are right."""
    evaluator = Evaluator(module, MachineSpec(options.chip))
    variants = [evaluator.evaluate(Plan(f"fuse{{policy={policy}}}", "memory"), policy) for policy in POLICIES]
    equal = True
    for variant in variants:
        checked = verify(module, variant.program.module, platform=options.platform)
        equal &= checked.equal
        print(f"\n{name}, fusion {variant.name}: {checked}")
    run = run_variants(variants, RunOptions(options.platform, repeats=options.repeats, profile=True))
    for ran in run.ran:
        _show(name, ran)
        assert ran.measured is not None
        rows += [Row(name, ran.variant.name, o) for o in ran.measured.observations]
        if options.output:
            options.output.mkdir(parents=True, exist_ok=True)
            stem = options.output / f"{name}.{ran.variant.name}"
            hlo = export_bytes(ran.variant.program.module, "hlo", ran.variant.schedule)
            write_atomically(f"{stem}.xplane.pb.gz", gzip.compress(ran.timing.profile, mtime=0))
            write_atomically(f"{stem}.hlo.gz", gzip.compress(hlo, mtime=0))
    return equal


def _show(name: str, ran: Ran) -> None:
    measured, timing = ran.measured, ran.timing
    assert measured is not None
    print(
        f"\n{name}, fusion {ran.variant.name}: {time_text(timing.median)} measured "
        f"(quartiles {time_text(timing.spread)} apart), {time_text(ran.variant.metrics.makespan)} predicted; "
        f"{measured.matched} of {measured.events} events matched; {timing.order}"
    )
    for unknown in measured.unmatched[:LISTED]:
        print(f"  unknown: {unknown.name}, {unknown.count} events, {time_text(unknown.time)}")
    for o in measured.observations[:LISTED]:
        error = "" if o.error is None else f"{o.error:+.0%}"
        print(f"  {o.name:32} {time_text(o.measured):>10} measured {time_text(o.predicted):>10} predicted {error:>8}")


def _summarise(rows: Sequence[Row]) -> None:
    errors = [abs(e) for row in rows if (e := row.observation.error) is not None and row.observation.predicted]
    if errors:
        print(f"\n{len(errors)} instructions: predictions are off by {median(errors):.0%} in the median")


if __name__ == "__main__":
    sys.exit(main())
