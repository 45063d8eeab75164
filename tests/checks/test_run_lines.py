"""The runner of check files, tried with a stand-in for the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.checks.run_lines import CheckFileError, Output, RunLine, call, compare, parse


def test_run_lines_are_read_with_their_options() -> None:
    text = "// RUN: lapstrake report %s --chip 'tpu v4'\nHloModule m\n  // RUN: exit=2 check=ERR lapstrake verify %s\n"
    assert parse(text) == [
        RunLine(1, ("report", "%s", "--chip", "tpu v4")),
        RunLine(3, ("verify", "%s"), status=2, prefix="ERR"),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("HloModule m\n", "found none"),
        ("// RUN: report %s\n", "line 1: expected `lapstrake`"),
        ("// RUN:\n", "line 1: expected `lapstrake`"),
        ("\n// RUN: exit=bad lapstrake report\n", "line 2: expected exit=NUMBER"),
        ("// RUN: colour=red lapstrake report\n", "found colour=red"),
    ],
)
def test_unusable_run_lines_are_refused(text: str, words: str) -> None:
    with pytest.raises(CheckFileError, match=words):
        parse(text)


def test_names_are_replaced_and_both_streams_are_kept(tmp_path: Path) -> None:
    def main(arguments: list[str]) -> int:
        print(" ".join(arguments), Path.cwd() == tmp_path)
        print("a warning", file=sys.stderr)
        return 1

    output = call(RunLine(1, ("report", "%s", "-o", "%t/b")), main, {"%s": "a.hlo", "%t": "out"}, tmp_path)
    assert output == Output(1, "report a.hlo -o out/b True\na warning\n")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.hlo"
    path.write_text("// CHECK: all-gather [[N:[0-9]+]]\n// CHECK-NEXT: again [[N]]\n// ERR: {{no|not}} here\n", "utf-8")
    return path


def test_matching_output_passes(file: Path) -> None:
    compare(RunLine(1, ()), Output(0, "header\nall-gather 7\nagain 7\n"), file)
    compare(RunLine(1, (), status=2, prefix="ERR"), Output(2, "not here\n"), file)
    compare(RunLine(1, (), prefix="none"), Output(0, ""), file)


@pytest.mark.parametrize(
    ("run", "output", "words"),
    [
        (RunLine(4, ("report",)), Output(2, "it broke\n"), "line 4: lapstrake report\nexpected exit status 0, got 2"),
        (RunLine(4, ()), Output(0, "all-gather 7\nagain 8\n"), "again 8"),
        (RunLine(4, ()), Output(0, ""), "empty"),
        (RunLine(4, (), prefix="MISSPELT"), Output(0, "all-gather 7\n"), "No check strings found"),
    ],
)
def test_other_output_fails_and_is_shown(file: Path, run: RunLine, output: Output, words: str) -> None:
    with pytest.raises(CheckFileError, match=words):
        compare(run, output, file)
