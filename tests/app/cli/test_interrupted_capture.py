"""`lapstrake capture` that is interrupted: both interpreters end without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(os.name == "nt", reason="the keys reach a group of processes by a signal")
def test_an_interrupted_capture_ends_cleanly(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    program = "import sys; from app.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "capture", str(script), "-o", str(tmp_path / "out"), "--target", "cpu:2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == "lapstrake: interrupted\n"
