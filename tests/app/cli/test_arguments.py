"""What words of a command line mean."""

from __future__ import annotations

import pytest

from app.cli.arguments import parse


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (["capture", "-o", "dir", "train.py", "small"], ["small"]),
        (["capture", "train.py", "small", "-o", "dir"], ["small"]),
        (["capture", "train.py", "-o", "dir", "--", "small", "--steps", "2"], ["small", "--steps", "2"]),
        (["capture", "train.py", "-o", "dir", "--", "--", "-o"], ["--", "-o"]),
        (["capture", "train.py", "-o", "dir"], []),
    ],
)
def test_arguments_of_a_captured_script(words: list[str], script: list[str]) -> None:
    parsed = parse(words)
    assert (parsed.script, parsed.output, parsed.arguments) == ("train.py", "dir", script)
