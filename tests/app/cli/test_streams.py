"""Closed and full streams: no traceback, no word about a good file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT, SAMPLES

SAMPLE = str(SAMPLES / "mlp_fig3.hlo")

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="a system with /dev/full and a POSIX shell")


def lapstrake(arguments: str, redirected: str) -> subprocess.CompletedProcess[str]:
    line = f'"{sys.executable}" -m app.cli.main {arguments} {redirected}'
    return subprocess.run(["sh", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("arguments", ["chips", f"report {SAMPLE}", f"export {SAMPLE} --to hlo -o -"])
def test_a_full_disk_is_a_sentence(arguments: str) -> None:
    done = lapstrake(arguments, ">/dev/full")
    assert done.returncode == 2
    assert "could not be written to standard output (No space left on device)" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_where_nothing_can_be_said_the_status_says_it() -> None:
    done = lapstrake("report nowhere.hlo", "2>/dev/full")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_notes_that_cannot_be_said_keep_nothing_back() -> None:
    done = lapstrake(f"explain {SAMPLE} all-gather", "2>/dev/full")
    assert (done.returncode, done.stderr) == (0, "")
    assert "all-gather became" in done.stdout


@pytest.mark.parametrize("redirected", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_answer(redirected: str) -> None:
    done = lapstrake(f"report {SAMPLE} --require-gain --budget 5", redirected)
    assert done.returncode == 0
    assert "aborted" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_output_to_a_closed_stream_is_lost_alone() -> None:
    done = lapstrake("chips", ">&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
