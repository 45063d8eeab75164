"""Makes `build/xprof-python`: XProf's converters, which exported profiles are read with.

The wheel alone will do: what it asks for besides serves its web pages. Prints its interpreter; exit status 2 with a
sentence where it cannot be made. The tests of `make test-all` call it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "xprof-python"
XPROF = "xprof>=2.22,<3"


def main() -> int:
    try:
        print(interpreter())
    except LookupError as reason:
        print(reason, file=sys.stderr)
        return 2
    return 0


def interpreter() -> Path:
    """The environment's Python, made when it is not there. Raises LookupError, with what is missing in words."""
    python = FOLDER / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if python.exists() and _imports(python):
        return python
    shutil.rmtree(FOLDER, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(FOLDER)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", XPROF]
    if subprocess.run(install, check=False).returncode:
        raise LookupError(f"pip could not install {XPROF}; its message is above")
    if not _imports(python):
        raise LookupError(f"{XPROF} is installed, but its converters do not start here")
    return python


def _imports(python: Path) -> bool:
    probe = [str(python), "-c", "import xprof.convert._pywrap_profiler_plugin"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
