"""What a target's compiler will do to a plan that it is given, the flags that stop it, and the ways a plan gets there.

Flags are those of XLA's DebugOptions (jaxlib 0.10.2) and libtpu 0.0.51; what they stop was seen in compiled modules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import pairwise
from types import MappingProxyType

from engine.chips import budget
from engine.chips.machine import Machine
from engine.cost.program import Program
from engine.ir.graph import Graph
from engine.schedule.problem import Schedule

_COMBINED = ("all-gather", "all-reduce", "reduce-scatter", "collective-permute")
"""Kinds that GPU compilers combine into larger ones when several are at hand; TPU's and CPU's combine all-reduces."""
_BOOKKEEPING = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast"))


def undoing(program: Program, schedule: Schedule, machine: Machine) -> tuple[str, ...]:
    """What of the plan the target's compiler will undo, one sentence each, with what stops it."""
    family = machine.chip.family
    return (
        *_empty_pairs(program, schedule),
        *_blocking_by_default(program, schedule, machine),
        *_combiners(program, family),
        *_dot_merging(program, family),
    )


def _empty_pairs(program: Program, schedule: Schedule) -> Iterator[str]:
    """Starts whose done follows at once: compilers turn them back into blocking operations."""
    found = [graph.names[node] for graph, node, empty in _starts(program, schedule) if empty]
    if found:
        yield (
            f"{_some(found)}: nothing stands between start and done, so XLA makes the operation synchronous again; "
            "that costs nothing here, and no flag is needed"
        )


def _starts(program: Program, schedule: Schedule) -> Iterator[tuple[Graph, int, bool]]:
    """Every start, and whether its done follows at once."""
    for computation, graph in program.graphs.items():
        order = [
            n for n in schedule.orders[computation].nodes.tolist() if graph.opcodes[n] not in _BOOKKEEPING
        ]  # what takes no time hides nothing
        for one, two in pairwise(order):
            if graph.is_start(one):
                yield graph, one, bool(graph.partner[one] == two)


_OPTIONS: Mapping[budget.Kind, str] = MappingProxyType(
    {
        budget.Kind.ALL_GATHER: "--xla_enable_async_all_gather=ENABLED",
        budget.Kind.ALL_TO_ALL: "--xla_tpu_enable_async_all_to_all=true",
    }
)
"""What makes the TPU compiler turn collectives that stay whole into asynchronous ones."""
_ASYNCHRONOUS_BY_DEFAULT = "tpu-v7x"
"""The chip for which it does so by itself."""


def _blocking_by_default(program: Program, schedule: Schedule, machine: Machine) -> Iterator[str]:
    """Collectives that stay whole, and that the compiler has to be told to make asynchronous."""
    if machine.chip.family != "tpu" or machine.chip.name == _ASYNCHRONOUS_BY_DEFAULT:
        return
    found: dict[budget.Kind, list[str]] = {}
    for graph, node, empty in _starts(program, schedule):
        kind = budget.Kind(int(program.costs[graph.computation].kind[node]))
        if kind in _OPTIONS and not empty:
            found.setdefault(kind, []).append(graph.names[node])
    for kind, names in sorted(found.items()):
        yield (
            f"{_some(names)}: the compiler leaves this blocking unless it is told otherwise: {_OPTIONS[kind]} in "
            "LIBTPU_INIT_ARGS (not in XLA_FLAGS) tells it"
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


_NAMED = 3
"""How many instructions a warning names."""


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


class Kind(Enum):
    """What a bundle is made from, and so how a job gets its plan."""

    CAPTURED = "captured"
    DUMPED = "dumped"
    SCHEDULED = "dumped after scheduling"
    ORDER = "order alone"


_IN_THE_JOB = """## In the JAX job that it was {source} from

Nothing has to be installed: `lapstrake_job.py` and `lapstrake_runtime` here are all that runs a plan. {when}:

```python
import sys
BUNDLE = "path/of/this/folder"
sys.path.insert(0, BUNDLE)
import lapstrake_job
plan = lapstrake_job.load(BUNDLE)
{call}
```

{cost}If the job is not the one that the plan was made for, it runs as it did, and one warning says what differs.
After the first step, `print(plan.explain())` says {says}.
"""

_NO_JOB = """## In a job

This was dumped after its compiler had scheduled it, and no job can be compared with that: `wrap` runs the job's
own step. For a plan that a job runs, tune a dump right after partitioning, or what `lapstrake capture` writes.
"""

_COST = """The plan was made from a bare dump: the job is recognised by its module after partitioning, for
which it compiles the step once more at its start. A captured step (`lapstrake capture`) needs no such compilation.

"""

_UNDONE = """
## What the compiler may undo

{warnings}
Flags go into the environment variable `XLA_FLAGS` of the job; several passes to disable are separated by commas.
"""

_HLO_RUNNER = """- XLA's HLO runner, the module alone with random arguments (it is partitioned already):
  `XLA_FLAGS=--xla_disable_hlo_passes=spmd-partitioning,sharding-propagation hlo_runner_main --device_type=gpu
  --num_replicas=1 --num_partitions={partitions} --use_spmd_partitioning=true --hlo_argument_mode=use_random_inputs
  tuned.hlo`.{backend}
"""

_COSTS = """- `costs.pbtxt`: a profile for XLA:GPU's scheduler (PGLE), which then makes an order of its own from it:
  `XLA_FLAGS="--xla_gpu_enable_latency_hiding_scheduler=true
  --xla_gpu_pgle_profile_file_or_directory_path=costs.pbtxt"`. Names have to be those of the compiled module.
- `schedule.pbtxt` is the order with its times as XLA writes them (`--xla_dump_latency_hiding_schedule`).
"""

_GROUPS = """- `grouped.mlirbc` is the program with `_scheduling_group_id` on each permute and the einsum that hides it.
  TPU compilers keep them with `--xla_disable_hlo_passes=legalize-scheduling-annotations`{in_job}
"""

_IN_JOB = """; in a JAX job
  `wrap(step, groups=True)` does both, for targets that jax has no scheduler hook for."""

_READ = """- `trace.perfetto.json.gz` opens in ui.perfetto.dev; `report.html` in any browser.
"""

_BACKEND = " With `--run_xla_backend_only=true` it runs a module that its own compiler had optimised, as it stands."


def readme(module: str, partitions: int, kind: Kind, gain: str, undone: tuple[str, ...]) -> str:
    """The bundle's README.md: what the plan gains, and how to run it, in a JAX job and elsewhere."""
    order_only = kind is Kind.ORDER
    parts = [f"# {module}, tuned by Lapstrake\n\n{gain}\n\n"]
    if kind is Kind.SCHEDULED:
        parts.append(_NO_JOB)
    else:
        parts.append(
            _IN_THE_JOB.format(
                source="dumped" if kind is Kind.DUMPED else "captured",
                when="Before the step is first called" if order_only else "Where the job makes its step",
                call="plan.install()" if order_only else "step = plan.wrap(step)",
                cost=_COST if kind is Kind.DUMPED else "",
                says="how much of the order runs"
                if order_only
                else "how much of the structure, the order and the fusions runs",
            )
        )
    if not order_only:
        warnings = "".join(f"- {text}.\n" for text in undone) or "- Nothing that is known.\n"
        parts.append(_UNDONE.format(warnings=warnings))
    compiled = kind in (Kind.ORDER, Kind.SCHEDULED)
    parts.append("\n## Elsewhere\n\n")
    parts.append(_HLO_RUNNER.format(partitions=partitions, backend=_BACKEND if compiled else ""))
    parts.append(_COSTS)
    if not order_only:
        parts.append(_GROUPS.format(in_job="." if kind is Kind.SCHEDULED else _IN_JOB))
    return "".join((*parts, _READ))
