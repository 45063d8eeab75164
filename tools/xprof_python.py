"""Makes `build/xprof-python`: XProf's converters, which exported profiles are read with.

The wheel alone will do: what it asks for besides serves its web pages. `python -m tools.xprof_python` prints its
interpreter; exit status 2 with a sentence where it cannot be made. The tests of `make test-all` call it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.side_python import BUILD, make, python_in, say

FOLDER = BUILD / "xprof-python"
XPROF = "xprof>=2.22,<3"


def interpreter() -> Path:
    """The environment's Python, made when it is not there. Raises LookupError, with what is missing in words."""
    python = python_in(FOLDER)
    if python.exists() and _imports(python):
        return python
    make(FOLDER, XPROF, alone=True)
    if not _imports(python):
        raise LookupError(f"{XPROF} is installed, but its converters do not start here")
    return python


def _imports(python: Path) -> bool:
    probe = [str(python), "-c", "import xprof.convert._pywrap_profiler_plugin"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(say(interpreter))
