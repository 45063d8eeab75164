"""Options that several commands share, and the numbers that they take."""

from __future__ import annotations

import argparse

_LIMIT = "give up after so long"


def whole(text: str, least: int | None = None) -> int:
    """The number that `text` writes, `least` or more. ArgumentTypeError for anything else."""
    wanted = "a whole number" + ("" if least is None else f" from {least}")
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{wanted} was expected, but '{text}' came") from None
    if least is not None and number < least:
        raise argparse.ArgumentTypeError(f"{wanted} was expected, but '{text}' came")
    return number


def positive(text: str) -> int:
    """A number from 1."""
    return whole(text, 1)


def count(text: str) -> int:
    """A number from 0."""
    return whole(text, 0)


def seconds(text: str) -> float:
    """A time above 0. ArgumentTypeError for anything else."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"a number of seconds above 0 was expected, but '{text}' came")
    return number


def svg(text: str) -> str:
    """The name of a picture. ArgumentTypeError for one that says that it is another kind."""
    if not text.lower().endswith(".svg"):
        raise argparse.ArgumentTypeError(f"a picture is SVG: a name that ends in .svg was expected, but '{text}' came")
    return text


def file(parser: argparse.ArgumentParser) -> None:
    """The module that the command is about."""
    parser.add_argument("file", metavar="FILE")


def machine(parser: argparse.ArgumentParser, limit: str = _LIMIT) -> None:
    """What a module runs on and what it is priced with; `limit` says what comes of a time limit."""
    group = parser.add_argument_group("machine", "what is missing is inferred from the module, and said")
    group.add_argument(
        "--chip", default="tpu-v4", help="a shipped chip (lapstrake chips) or a TOML file; default tpu-v4"
    )
    group.add_argument(
        "--topology",
        metavar="4x4x4",
        help="on TPUs 2@4x4x4 for two slices on a data-centre network; on GPUs NODESxGPUS",
    )
    group.add_argument("--mesh", metavar="x=8,y=8")
    group.add_argument(
        "--costs", action="append", default=[], metavar="FILE",
        help="costs from elsewhere: ScheduleProto text, PGLE, xplane.pb or a table; repeatable, later ones win",
    )  # fmt: skip
    conduct(group, limit)


def conduct(group: argparse._ActionsContainer, limit: str = _LIMIT) -> None:
    """How a command goes about its work: how long, and what it says meanwhile."""
    group.add_argument("--time-limit", type=seconds, metavar="SECONDS", help=limit)
    group.add_argument("--quiet", action="store_true", help="no progress, no notes")
    group.add_argument("--no-color", action="store_true")


def plan(parser: argparse.ArgumentParser) -> None:
    """What is to be done with the module."""
    group = parser.add_argument_group("plan")
    group.add_argument(
        "--passes",
        metavar="TEXT",
        help='"decompose{unroll=2,ring=both},async-permute"; default: chosen by predicted gain',
    )
    group.add_argument("--scheduler", metavar="NAME", help="lapstrake schedulers lists them; default bottom-up")
    group.add_argument(
        "--budget", metavar="B", help="operations in flight: 4, or permute=4,gather=1,total=5; default the chip's"
    )
    group.add_argument("--memory-cap", metavar="28GiB", help="no schedule may take more")
