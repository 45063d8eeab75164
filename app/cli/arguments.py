"""Every command's arguments. Light on purpose: `--help` imports nothing but argparse."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TypeAlias

from app.cli.options import conduct, count, file, machine, plan, positive, seconds, svg, whole

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What commands are added to."""

COMMANDS = (
    "open", "demo", "report", "compare", "sweep", "verify", "run", "devices", "compile", "tune", "export", "explain",
    "capture", "chips", "passes", "schedulers",
)  # fmt: skip
_EPILOG = (
    "FILE is HLO text, a HloModuleProto or HloProto, or StableHLO (text or bytecode), gzipped or not; a folder that "
    "lapstrake capture wrote; a bundle, folder or .zip: its tuned module (BUNDLE/original.hlo.pb is what it was made "
    "of); - reads standard input. Of an XLA dump's folder the modules are listed."
)
_SOURCES = (
    "FILE is a folder that lapstrake capture wrote, or a dump after partitioning (HLO text, a HloModuleProto or "
    "HloProto, gzipped or not; - reads standard input)."
)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Arguments with `command` set. ``lapstrake`` and ``lapstrake FILE`` mean ``lapstrake open``."""
    words = list(argv)
    if not words or (words[0] not in COMMANDS and not words[0].startswith("-")) or words[0] == "-":
        words.insert(0, "open")
    if words[0] != "capture" or "--" not in words:
        return _parser().parse_args(words)
    # argparse forgets arguments of the script that come after options of ours.
    end = words.index("--")
    parsed = _parser().parse_args(words[:end])
    parsed.arguments += words[end + 1 :]
    return parsed


def _version() -> str:
    try:
        return version("lapstrake")
    except PackageNotFoundError:
        return "unknown"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lapstrake",
        description="See, change and check how the collectives of an XLA job overlap with its einsums.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"lapstrake {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (
        _open, _demo, _report, _compare, _sweep, _verify, _run, _devices, _compile, _tune, _export, _explain, _capture
    ):  # fmt: skip
        add(commands)
    for name, what in (
        ("chips", "chips that ship, with their figures"),
        ("passes", "passes and their options"),
        ("schedulers", "schedulers and their options"),
    ):
        commands.add_parser(name, help=what)
    return parser


def _open(commands: Commands) -> None:
    add = commands.add_parser("open", help="the explorer (the default)", epilog=_EPILOG)
    add.add_argument("files", nargs="*", metavar="FILE", help="modules, to be compared in one session; or a session")
    machine(add)


def _demo(commands: Commands) -> None:
    add = commands.add_parser("demo", help="the explorer on a shipped sample; without a display, its report")
    add.add_argument("--report", action="store_true", help="print the report even where a window could open")


def _report(commands: Commands) -> None:
    add = commands.add_parser("report", help="candidates, variants, gains", epilog=_EPILOG)
    file(add)
    machine(add)
    plan(add)
    add.add_argument("--json", action="store_true", help="machine-readable, schema 1")
    add.add_argument("--html", metavar="OUT", help="also write it as one HTML file")
    add.add_argument("--plot", type=svg, metavar="OUT.svg", help="also draw the timelines")
    add.add_argument(
        "--require-gain", action="store_true", help="exit 1 unless a variant is faster than the module as loaded"
    )
    add.add_argument(
        "--measured", metavar="PROFILE",
        help="a profile of a run (xplane.pb, or a Chrome or Perfetto trace) beside the prediction",
    )  # fmt: skip
    add.add_argument("--memory", action="store_true", help="also what memory holds when it is fullest")
    add.add_argument(
        "--stragglers", metavar="TEXT",
        help="also how variants stand slow devices: jitter=0.05,slow=3:1.2,path=0-1:2,seed=7",
    )  # fmt: skip


def _compare(commands: Commands) -> None:
    add = commands.add_parser("compare", help="variants of one or more modules side by side", epilog=_EPILOG)
    add.add_argument("files", nargs="+", metavar="FILE")
    machine(add)
    add.add_argument(
        "--variant", action="append", default=[], metavar="PLAN",
        help='a plan: "PASSES | SCHEDULER | BUDGET", the last two may be left out; repeatable',
    )  # fmt: skip
    add.add_argument("--json", action="store_true", help="machine-readable, schema 1")


def _sweep(commands: Commands) -> None:
    add = commands.add_parser(
        "sweep", help="one plan over budgets, bandwidths, unrolls, rings, or numbers of partitions", epilog=_EPILOG
    )
    add.add_argument("files", nargs="+", metavar="FILE", help="one; for partitions one for each number of devices")
    machine(add)
    plan(add)
    add.add_argument(
        "--over",
        required=True,
        metavar="NAME=RANGE",
        help="budget=1..16, link-bandwidth=0.25..4, unroll=1,2, ring=one,both, or partitions (several FILEs)",
    )
    add.add_argument("--json", action="store_true", help="machine-readable")
    add.add_argument("--plot", type=svg, metavar="OUT.svg", help="also draw it")


def _verify(commands: Commands) -> None:
    add = commands.add_parser("verify", help="original against transformed, numerically, on devices", epilog=_EPILOG)
    file(add)
    machine(add)
    plan(add)
    add.add_argument(
        "--devices", type=positive, metavar="N", help="devices to run on (the module says how many it needs)"
    )
    add.add_argument("--platform", choices=("cpu", "gpu", "tpu"), default="cpu")
    add.add_argument("--seed", type=whole, default=0, metavar="S", help="of the random inputs")
    add.add_argument("--inputs", metavar="FILE.npz", help="inputs instead of random ones")
    add.add_argument("--seeds", type=positive, default=1, metavar="K", help="how many sets of inputs")
    add.add_argument("--deadline", type=seconds, default=1800.0, metavar="SECONDS", help="for everything; 1800")
    add.add_argument("--json", action="store_true", help="machine-readable")


def _run(commands: Commands) -> None:
    add = commands.add_parser("run", help="time the module and the plan in turn, on devices", epilog=_EPILOG)
    file(add)
    machine(add)
    plan(add)
    add.add_argument(
        "--devices", type=positive, metavar="N", help="devices to run on (the module says how many it needs)"
    )
    add.add_argument("--platform", choices=("cpu", "gpu", "tpu"), default="cpu", help="lapstrake devices lists them")
    add.add_argument("--repeats", type=positive, default=10, metavar="K", help="executions that are timed; 10")
    add.add_argument("--warmup", type=count, default=2, metavar="K", help="executions before those; 2")
    add.add_argument("--seed", type=whole, default=0, metavar="S", help="of the random inputs")
    add.add_argument("--inputs", metavar="FILE.npz", help="inputs instead of random ones; zeros are refused")
    add.add_argument(
        "--profile", metavar="OUT",
        help="also profile it: .xplane.pb for XProf and report --measured, .json or .json.gz for Perfetto",
    )  # fmt: skip
    add.add_argument(
        "--alone", action="store_true",
        help="one device's compute alone, without the others: for times of single operations",
    )  # fmt: skip
    add.add_argument(
        "--as-job", action="store_true",
        help="compile as jit does in a job, every pass on; always so on a GPU or TPU",
    )  # fmt: skip
    add.add_argument("--deadline", type=seconds, default=1800.0, metavar="SECONDS", help="for everything; 1800")
    add.add_argument("--json", action="store_true", help="machine-readable")


def _devices(commands: Commands) -> None:
    add = commands.add_parser("devices", help="devices that modules can run on, and why not on others")
    add.add_argument("--json", action="store_true", help="machine-readable")
    conduct(add)


def _compile(commands: Commands) -> None:
    add = commands.add_parser(
        "compile",
        help="by a production compiler, without a device: its schedule, and ours judged by it",
        epilog=_EPILOG,
    )
    file(add)
    add.add_argument(
        "--target", required=True, metavar="TARGET", help="tpu:v4:2x2x2 (extra tpu), cuda:h100:1x1x8 (extra cuda)"
    )
    add.add_argument("--mesh", metavar="x=8,y=8", help="inferred if missing; rings lie on neighbours where they can")
    plan(add)
    add.add_argument(
        "--tune", action="store_true", help="search for the plan that takes the fewest of the compiler's cycles"
    )
    add.add_argument("--json", action="store_true", help="machine-readable, schema 1 and what the compiler said")
    add.add_argument("-o", "--output", metavar="DIR", help="also write its optimised HLO and predicted schedules")
    add.add_argument("--deadline", type=seconds, default=900.0, metavar="SECONDS", help="for one compilation; 900")
    conduct(add)


def _tune(commands: Commands) -> None:
    add = commands.add_parser("tune", help="the best plan, verified, as a bundle for the job", epilog=_SOURCES)
    file(add)
    machine(add, limit="end the search after so long, and keep the best so far")
    plan(add)
    add.add_argument("-o", "--output", required=True, metavar="BUNDLE", help="a folder, or a file that ends in .zip")
    add.add_argument(
        "--search", metavar="NAMES",
        help="search only these (default all), from the plan that is named: "
        "scheduler, fusion, async, chain, ring, unroll, form, budget, sites",
    )  # fmt: skip
    add.add_argument(
        "--target", metavar="TARGET",
        help="let the compiler choose among the best plans: tpu:v4:2x2x2 (extra tpu), cuda:h100:1x1x8 (extra cuda)",
    )  # fmt: skip
    add.add_argument("--seed", type=whole, default=0, metavar="S", help="of the inputs that the plan is verified with")
    add.add_argument("--no-verify", action="store_true", help="do not run the plan on CPU devices first")
    add.add_argument(
        "--order-only",
        action="store_true",
        help="keep the instructions that the captured job's compiler made, and only put them in a better order",
    )
    add.add_argument(
        "--bundle-anyway",
        action="store_true",
        help="bundle the best of a search also where it is not faster; a plan that is named always is bundled",
    )
    add.add_argument(
        "--require-gain",
        action="store_true",
        help="exit 1 unless a plan is faster than what its compiler makes of the module by itself",
    )


def _export(commands: Commands) -> None:
    add = commands.add_parser("export", help="write the transformed module or its schedule", epilog=_EPILOG)
    file(add)
    machine(add)
    plan(add)
    add.add_argument(
        "--to", required=True, choices=("hlo", "pb", "stablehlo", "perfetto", "xplane", "schedule", "costs")
    )
    add.add_argument("-o", "--output", required=True, metavar="OUT", help="a file; - writes text to standard output")


def _explain(commands: Commands) -> None:
    add = commands.add_parser(
        "explain", help="why an instruction is where it is, is exposed, or was not decomposed", epilog=_EPILOG
    )
    file(add)
    add.add_argument("instruction", metavar="INSTRUCTION")
    machine(add)
    plan(add)


def _capture(commands: Commands) -> None:
    add = commands.add_parser(
        "capture", help="a JAX script's jitted functions as partitioned HLO, in its own interpreter"
    )
    add.add_argument("script", metavar="SCRIPT")
    add.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="of the script; those with dashes come after --")
    add.add_argument("-o", "--output", required=True, metavar="DIR", help="a folder; each function gets one in it")
    add.add_argument(
        "--python", metavar="PATH", help="the interpreter that runs the script's job; default this one, if it has jax"
    )
    add.add_argument(
        "--target", default="attached", metavar="T",
        help="attached (default), cpu:8 (so many CPU devices), or tpu:v4:2x2x2 (none needed, but libtpu beside jax)",
    )  # fmt: skip
    add.add_argument("--function", metavar="NAME", help="only this one; default all, the largest is named last")
    add.add_argument("--go-on", action="store_true", help="run the script to its end")
    add.add_argument("--time-limit", type=seconds, metavar="SECONDS", help="give up after so long")
