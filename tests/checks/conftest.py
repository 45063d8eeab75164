"""Collects check files: small inputs whose comments say which command to run and what it must print."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

import pytest

from app.cli.main import main
from tests.checks.run_lines import CheckFileError, RunLine, call, compare, parse
from tests.places import ROOT


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Every .hlo and .txt file below this folder is a check file, except in folders named `inputs`."""
    if file_path.suffix not in (".hlo", ".txt") or file_path.parent.name == "inputs":
        return None
    return CheckFile.from_parent(parent, path=file_path)


class CheckFile(pytest.File):
    """One check file; its RUN lines are the tests."""

    def collect(self) -> Iterable[pytest.Item]:
        """One item for each RUN line."""
        try:
            runs = parse(self.path.read_text("utf-8"))
        except CheckFileError as error:
            raise self.CollectError(f"{self.path}: {error}") from None
        for run in runs:
            yield CheckItem.from_parent(self, name=f"line {run.line}", run=run)


class CheckItem(pytest.Item):
    """One RUN line."""

    def __init__(self, *, run: RunLine, **arguments: object) -> None:
        super().__init__(**arguments)  # type: ignore[arg-type] # pytest passes its own arguments through from_parent
        self.run = run

    def runtest(self) -> None:
        """Call the command line in this process and match what it wrote."""
        with TemporaryDirectory(prefix="lapstrake-check-") as folder:
            names = {
                "%samples": "samples",
                "%s": self.path.relative_to(ROOT).as_posix(),
                "%t": Path(folder).as_posix(),
            }
            compare(self.run, call(self.run, main, names, ROOT), self.path)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        """The check file's complaint without a traceback; anything else with it, but without pytest's own frames."""
        if isinstance(excinfo.value, CheckFileError):
            return f"{self.path}: {excinfo.value}"
        return "".join(traceback.format_exception(excinfo.value.with_traceback(own_frames(excinfo.tb))))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where pytest says the failure is."""
        return self.path, self.run.line - 1, f"{self.path.name}:{self.run.line}"


def own_frames(trace: TracebackType | None) -> TracebackType | None:
    """The part of `trace` from this file on."""
    while trace is not None and trace.tb_frame.f_code.co_filename != __file__:
        trace = trace.tb_next
    return trace
