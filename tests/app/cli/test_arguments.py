"""What words of a command line mean."""

from __future__ import annotations

import pytest

from app.cli.arguments import parse
from app.cli.main import main


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


def test_a_picture_is_an_svg(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "x.hlo", "--plot", "x.png"]) == 2
    assert "ends in .svg was expected, but 'x.png' came" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "said"),
    [("reprot", "no such file or command (did you mean report?)"), ("no.hlo", "no such file or command")],
)
def test_a_word_that_is_no_file_opens_no_window(typed: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([typed, "x.hlo"]) == 2
    assert f"{typed}: {said}" in capsys.readouterr().err
