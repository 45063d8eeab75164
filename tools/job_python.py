"""Makes `build/job-python`: the newest Python and jax that `lapstrake_job` is kept working with.

It holds jax alone, as a job's environment does. `python -m tools.job_python` prints its interpreter; exit status 2 with
a sentence where none can be made. The tests of `make test-all` call it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools.side_python import BUILD, make, python_in, say

FOLDER = BUILD / "job-python"
PYTHON, JAX = "3.12", "jax>=0.12,<0.13"
_PROBE = "import sys, jax; print(jax.__version__); sys.exit(sys.version_info[:2] != (3, 12))"


def interpreter() -> Path:
    """The environment's Python, made when it is not there. Raises LookupError, with what is missing in words."""
    python = python_in(FOLDER)
    if python.exists() and _starts(str(python), _PROBE):
        return python
    found = next((p for p in _candidates() if _starts(p, "import sys, ensurepip; print(sys.version_info[:2])")), None)
    if found is None:
        raise LookupError(f"no Python {PYTHON} with ensurepip is on PATH: install one to try jobs with {JAX}")
    make(FOLDER, JAX, by=found)
    return python


def _candidates() -> list[str]:
    """Interpreters that may be 3.12: by name, and those of pyenv, whose shims do not start unless they are chosen."""
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{PYTHON}.*/bin/python"))
    named = shutil.which(f"python{PYTHON}")
    return [*([named] if named else []), *map(str, pyenv)]


def _starts(python: str, program: str) -> bool:
    """Whether an interpreter of the wanted version runs a program."""
    try:
        done = subprocess.run([python, "-c", program], capture_output=True, text=True, timeout=120, check=False)
        version = subprocess.run([python, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and version.stdout.startswith(f"Python {PYTHON}.")


if __name__ == "__main__":
    sys.exit(say(interpreter))
