"""Tries a frozen program away from its sources: a report, a verification and the window, all with worker processes.

Usage: smoke.py PROGRAM [PICTURE]. Needs no display: Qt draws offscreen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

DEADLINE_S = 300


class Failure(Exception):
    """What the program did instead of what it should."""


def main(arguments: list[str]) -> int:
    """Exit status 0 when everything worked."""
    if not 1 <= len(arguments) <= 2:
        print(__doc__, file=sys.stderr)
        return 2
    program = Path(arguments[0]).resolve()
    samples = next(program.parent.rglob("samples"))
    with TemporaryDirectory(prefix="lapstrake-smoke-") as folder:
        picture = Path(arguments[1]).resolve() if len(arguments) == 2 else Path(folder) / "window.png"
        trials = {
            "--version": lambda: run(program, ["--version"], folder),
            "report": lambda: report(program, samples / "mlp_fig3.hlo", folder),
            "verify": lambda: run(program, ["verify", str(samples / "mlp_fig3_train_2x2_f32.hlo")], folder),
            "window": lambda: window(program, samples / "mlp_fig3.hlo", picture, folder),
        }
        failed = [name for name, trial in trials.items() if not passed(name, trial)]
    print(f"failed: {', '.join(failed)}" if failed else "the frozen program works")
    return 1 if failed else 0


def passed(name: str, trial: Callable[[], str]) -> bool:
    """Run one trial and print how it went."""
    started = time.monotonic()
    try:
        said = trial()
    except Failure as failure:
        print(f"FAILED {name}: {failure}", flush=True)
        return False
    print(f"ok     {name} ({time.monotonic() - started:.1f} s): {said}", flush=True)
    return True


def run(program: Path, arguments: list[str], folder: str, **environment: str) -> str:
    """Standard output of the program, started in `folder`; raises Failure where it fails or takes too long."""
    # Nothing of the sources or of a Python on this machine may lend the frozen program what it lacks.
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "QT_", "VIRTUAL_"))}
    try:
        done = subprocess.run(
            [str(program), *arguments],
            cwd=folder,
            env={**clean, "QT_QPA_PLATFORM": "offscreen", **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Failure(f"not done after {DEADLINE_S} s") from error
    if done.returncode or "Traceback" in done.stderr:
        raise Failure(f"exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout.strip()


def report(program: Path, sample: Path, folder: str) -> str:
    """The report of a sample, which a worker process reads and evaluates."""
    content = json.loads(run(program, ["report", str(sample), "--json"], folder))
    if not content["candidates"] or len(content["variants"]) < 2:
        raise Failure(f"a report without candidates or variants: {content}")
    return f"{len(content['candidates'])} candidates, {len(content['variants'])} variants"


def window(program: Path, sample: Path, picture: Path, folder: str) -> str:
    """The window on a sample, all its variants evaluated by worker processes."""
    said = run(program, [str(sample), str(picture)], folder, LAPSTRAKE_TRIAL="1").splitlines()[-1]
    if not picture.is_file() or picture.stat().st_size < 10_000:
        raise Failure(f"no picture of the window; it said {said}")
    return said


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
