from __future__ import annotations

import os
import shlex
import shutil
import subprocess

import pytest

from engine.session.shell import shell_line

NAMES = [b"bad\xff.hlo", b"\xff0a", b"it's \\ \xfe\nhere", "schön \N{CHECK MARK}".encode() + b"\x80", b"$HOME `ls`\xff"]


def test_words_that_are_text_are_quoted_as_ever() -> None:
    words = ["lapstrake", "my step.hlo", "it's", "", "ü"]
    assert shell_line(words) == shlex.join(words)


@pytest.mark.skipif(shutil.which("bash") is None, reason="has a shell read the line")
@pytest.mark.parametrize("name", NAMES)
def test_a_shell_finds_the_bytes_of_a_name_again(name: bytes) -> None:
    line = shell_line(["printf", "%s", os.fsdecode(name)])
    line.encode()  # can be copied
    assert subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout == name
