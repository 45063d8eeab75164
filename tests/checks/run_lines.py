"""What the `RUN` lines of a check file ask for, and whether a command's output answers its `CHECK` lines."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser

RUN = re.compile(r"^[ \t]*//\s*RUN:(?P<words>.*)$", re.MULTILINE)
NOTHING = "none"
"""As a prefix: the exit status alone is checked."""


class CheckFileError(Exception):
    """A check file that asks for something it cannot have, or an output that is not what it says."""


@dataclass(frozen=True)
class RunLine:
    """One call of the command line."""

    line: int
    arguments: tuple[str, ...]
    """What follows `lapstrake`."""
    status: int = 0
    prefix: str = "CHECK"


@dataclass(frozen=True)
class Output:
    """What a call left behind; standard output before standard error."""

    status: int
    text: str


def parse(text: str) -> list[RunLine]:
    """The RUN lines of a check file: `// RUN: [exit=N] [check=PREFIX] lapstrake …`. Raises CheckFileError."""
    runs = [parse_line(text.count("\n", 0, match.start()) + 1, match["words"]) for match in RUN.finditer(text)]
    if not runs:
        raise CheckFileError("expected a line `// RUN: lapstrake … %s`, found none")
    return runs


def parse_line(line: int, words: str) -> RunLine:
    """One RUN line without its comment mark."""
    status, prefix = 0, "CHECK"
    rest = shlex.split(words)
    while rest and "=" in rest[0]:
        name, _, value = rest.pop(0).partition("=")
        if name == "exit" and value.isdigit():
            status = int(value)
        elif name == "check" and value:
            prefix = value
        else:
            raise CheckFileError(f"line {line}: expected exit=NUMBER or check=PREFIX, found {name}={value}")
    if not rest or rest.pop(0) != "lapstrake":
        raise CheckFileError(f"line {line}: expected `lapstrake` and its arguments, found {words.strip()!r}")
    return RunLine(line, tuple(rest), status, prefix)


def call(run: RunLine, main: Callable[[list[str]], int], names: Mapping[str, str], folder: Path) -> Output:
    """Call `main` in `folder` with every name (`%s`) in the arguments replaced by its value."""
    arguments = list(run.arguments)
    for name, value in names.items():
        arguments = [argument.replace(name, value) for argument in arguments]
    out, errors = stream(), stream()
    with chdir(folder), redirect_stdout(out), redirect_stderr(errors):
        status = main(arguments)
    return Output(status, written(out) + written(errors))


def stream() -> TextIOWrapper:
    """A standard stream kept in memory, which like a real one takes bytes through `buffer`."""
    return TextIOWrapper(BytesIO(), encoding="utf-8", newline="\n", write_through=True)


def written(text: TextIOWrapper) -> str:
    """All that was written to a `stream`."""
    text.seek(0)
    return text.read()


def compare(run: RunLine, output: Output, path: Path) -> None:
    """Raises CheckFileError where `output` is not what the check file at `path` says."""
    said = f"line {run.line}: lapstrake {shlex.join(run.arguments)}"
    if output.status != run.status:
        raise CheckFileError(f"{said}\nexpected exit status {run.status}, got {output.status}:\n{output.text}")
    if run.prefix == NOTHING:
        return
    complaints = StringIO()
    options = Options(match_filename=str(path), check_prefixes=[run.prefix])
    with redirect_stderr(complaints):
        failed = Matcher(options, FInput("output", output.text), Parser.from_opts(options)).run()
    if failed:
        raise CheckFileError(f"{said}\n{complaints.getvalue()}\nthe whole output:\n{output.text}")
