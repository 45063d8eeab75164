"""What a target's compiler will do to a plan that it is given, the flags that stop it, and the ways a plan gets there.

Flags are those of XLA's DebugOptions (jaxlib 0.10.2) and libtpu 0.0.51; what they stop was seen in compiled modules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from engine.chips.machine import Machine
from engine.cost.program import Program
from engine.schedule.problem import Schedule

_COMBINED = ("all-gather", "all-reduce", "reduce-scatter", "collective-permute")
"""Kinds that GPU compilers combine into larger ones when several are at hand; TPU's and CPU's combine all-reduces."""
_BOOKKEEPING = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast"))


def undoing(program: Program, schedule: Schedule, machine: Machine) -> tuple[str, ...]:
    """What of the plan the target's compiler will undo, one sentence each, with what stops it."""
    family = machine.chip.family
    return (*_empty_pairs(program, schedule), *_combiners(program, family), *_dot_merging(program, family))


def _empty_pairs(program: Program, schedule: Schedule) -> Iterator[str]:
    """Starts whose done follows at once: compilers turn them back into blocking operations."""
    found: list[str] = []
    for computation, graph in program.graphs.items():
        order = [
            n for n in schedule.orders[computation].nodes.tolist() if graph.opcodes[n] not in _BOOKKEEPING
        ]  # what takes no time hides nothing
        found += [graph.names[a] for a, b in pairwise(order) if graph.is_start(a) and graph.partner[a] == b]
    if found:
        yield (
            f"{_some(found)}: nothing stands between start and done, so XLA makes the operation synchronous again; "
            "that costs nothing here, and no flag is needed"
        )


def _combiners(program: Program, family: str) -> Iterator[str]:
    kinds = _COMBINED if family == "gpu" else ("all-reduce",)
    count = Counter(
        opcode.removesuffix("-start")
        for graph in program.graphs.values()
        for opcode in graph.opcodes
        if opcode.removesuffix("-start") in kinds
    )
    several = [kind for kind in kinds if count[kind] > 1]
    if not several:
        return
    if family == "gpu":
        flags = " ".join(f"--xla_gpu_{kind.replace('-', '_')}_combine_threshold_bytes=0" for kind in several)
    else:
        flags = "--xla_disable_hlo_passes=all-reduce-combiner"
    yield f"several {' and '.join(several)} operations may be combined into one, which waits for all: {flags} stops it"


def _dot_merging(program: Program, family: str) -> Iterator[str]:
    """Two einsums that share an operand, as unrolled loops have them."""
    if family != "gpu":
        return
    for graph in program.graphs.values():
        dots = [n for n, opcode in enumerate(graph.opcodes) if opcode == "dot"]
        shared = Counter(o for n in dots for o in dict.fromkeys(graph.operands.of(n).tolist()))
        if any(number > 1 for number in shared.values()):
            yield (
                "einsums that share an operand may be merged into one, and with them the transfers that one of them "
                "hides: --xla_disable_hlo_passes=dot-merger stops it"
            )
            return


_DUMPED = """The plan was made from a bare dump: the job is recognised by its module after partitioning, for
which it compiles the step once more at its start. A captured step (`lapstrake capture`) needs no such compilation.

"""


def _some(names: list[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def readme(module: str, partitions: int, order_only: bool, undone: tuple[str, ...], *, dump: bool = False) -> str:
    """The bundle's README.md: how to run the plan, in a JAX job and elsewhere."""
    call = "lapstrake_job.load(BUNDLE).install()" if order_only else "step = lapstrake_job.load(BUNDLE).wrap(step)"
    when = "before the step is first called" if order_only else "where the job makes its step"
    source = "that it was dumped from" if dump else "that it was captured from"
    cost = _DUMPED if dump else ""
    warnings = "".join(f"- {text}.\n" for text in undone) or "- Nothing that is known.\n"
    return f"""# {module}, tuned by Lapstrake

## In the JAX job {source}

Nothing has to be installed. {when[0].upper() + when[1:]}:

```python
import sys
BUNDLE = "path/of/this/folder"
sys.path.insert(0, BUNDLE)
import lapstrake_job
{call}
```

{cost}If the job is not the one that the plan was made for, it runs as it did, and one warning says what differs.
After the first step, `lapstrake_job`'s `explain()` says what of the plan runs.

## What the compiler may undo

{warnings}
Flags go into the environment variable `XLA_FLAGS` of the job; several passes to disable are separated by commas.

## Elsewhere

- XLA's HLO runner, the module alone with random arguments (it is partitioned already):
  `XLA_FLAGS=--xla_disable_hlo_passes=spmd-partitioning,sharding-propagation hlo_runner_main --device_type=gpu
  --num_replicas=1 --num_partitions={partitions} --use_spmd_partitioning=true --hlo_argument_mode=use_random_inputs
  tuned.hlo`. With `--run_xla_backend_only=true` it runs a module that its own compiler had optimised, as it stands.
- Costs as a profile for XLA:GPU's scheduler (PGLE), which then makes an order of its own from them:
  `XLA_FLAGS="--xla_gpu_enable_latency_hiding_scheduler=true
  --xla_gpu_pgle_profile_file_or_directory_path=costs.pbtxt"`. Names have to be those of the compiled module.
- Scheduling groups: `grouped.mlirbc` is the program with `_scheduling_group_id` on each permute and the einsum that
  hides it. TPU compilers keep them with `--xla_disable_hlo_passes=legalize-scheduling-annotations`; in a JAX job
  `wrap(step, groups=True)` does both, for targets that jax has no scheduler hook for.
- `trace.perfetto.json.gz` opens in ui.perfetto.dev; `report.html` in any browser.
"""
