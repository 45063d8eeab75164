"""Runs the linters and the tests as one command; its last line is pytest's summary."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


class Linter(NamedTuple):
    """A checker that ends on its own and changes no file."""

    name: str
    command: tuple[str, ...]


LINTERS = (
    Linter("ruff check", ("ruff", "check", ".")),
    Linter("ruff format --check", ("ruff", "format", "--check", ".")),
    Linter("mypy --strict", ("mypy",)),
    Linter("lint-imports", ("lint-imports",)),
)


class Outcome(NamedTuple):
    """How a linter ended."""

    linter: Linter
    passed: bool
    output: str
    seconds: float


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0 when everything passed, 1 when something did not, 2 when the tests cannot run here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also the tests marked `full`")
    parser.add_argument("--lint", action="store_true", help="the linters alone")
    options = parser.parse_args(arguments)
    if not options.lint and not window_tests_can_run():
        return 2
    failed = [outcome.linter.name for outcome in lint() if not outcome.passed]
    if failed:
        print(f"failed: {', '.join(failed)}", flush=True)
    if options.lint:
        return 1 if failed else 0
    tests = subprocess.run(pytest_command(options.full), cwd=ROOT, env=test_environment(), check=False)
    if failed:
        print(f"failed before the tests, see above: {', '.join(failed)}", flush=True)
    return 1 if failed or tests.returncode else 0


def window_tests_can_run() -> bool:
    """Try Qt as the tests use it. They are never skipped: without it the whole run stops, with what to install."""
    return subprocess.run([sys.executable, "-m", "app.display"], cwd=ROOT, check=False).returncode == 0


def lint() -> list[Outcome]:
    """Run all linters, side by side, and print one line each; what a failed one said follows its line."""
    started = time.monotonic()
    running = [(linter, start(linter)) for linter in LINTERS]
    outcomes = []
    for linter, process in running:
        output, _ = process.communicate()
        outcome = Outcome(linter, process.returncode == 0, output, time.monotonic() - started)
        print(f"{'ok    ' if outcome.passed else 'FAILED'} {linter.name} ({outcome.seconds:.1f} s)", flush=True)
        if not outcome.passed:
            print(outcome.output, flush=True)
        outcomes.append(outcome)
    return outcomes


def start(linter: Linter) -> subprocess.Popen[str]:
    """Start a linter that was installed beside this Python."""
    program, *options = linter.command
    path = shutil.which(program, path=str(BIN))
    if path is None:
        raise SystemExit(f"{program} is not installed in {BIN}: run `make test`, which installs it.")
    return subprocess.Popen(
        [path, *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
    )


def pytest_command(full: bool) -> list[str]:
    """The whole test suite over all cores; `full` adds the matrices that take minutes, and draws more."""
    workers = max(2, min(os.cpu_count() or 2, 8))
    command = [sys.executable, "-m", "pytest", "-n", str(workers), "--dist", "worksteal"]
    return [*command, "-m", "full or not full", "--hypothesis-profile", "many"] if full else command


def test_environment() -> dict[str, str]:
    """The tests draw windows on Qt's offscreen platform, whatever display there is."""
    return {**os.environ, "QT_QPA_PLATFORM": "offscreen"}


if __name__ == "__main__":
    sys.exit(main())
