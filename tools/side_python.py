"""Environments under `build/` beside the project's own, for what cannot be installed with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"


def say(interpreter: Callable[[], Path]) -> int:
    """Print the path that `interpreter` gives; its LookupError is a sentence on standard error, and exit status 2."""
    try:
        print(interpreter())
    except LookupError as reason:
        print(reason, file=sys.stderr)
        return 2
    return 0


def python_in(folder: Path) -> Path:
    """The interpreter of the environment in `folder`, which need not be there."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def make(folder: Path, wanted: str, *, by: str = sys.executable, alone: bool = False) -> None:
    """Make `folder` an environment with what pip calls `wanted`, `alone` or with what that needs.

    `by` is the interpreter that makes it. Raises LookupError where pip does not install it.
    """
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([by, "-m", "venv", str(folder)], check=True)
    install = [str(python_in(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*install, *(["--no-deps"] if alone else []), wanted], check=False).returncode:
        raise LookupError(f"pip could not install {wanted}; its message is above")
