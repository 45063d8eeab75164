"""Freezes the program with PyInstaller into dist/lapstrake, then tries it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
PROGRAM = ROOT / "dist" / "lapstrake" / ("lapstrake.exe" if sys.platform == "win32" else "lapstrake")


def main() -> int:
    """Exit status 0 when the program was frozen and passed its trial."""
    places = ["--distpath", str(ROOT / "dist"), "--workpath", str(ROOT / "build")]
    options = ["--noconfirm", "--clean", "--log-level", "WARN"]
    command = [sys.executable, "-m", "PyInstaller", *options, *places, str(FOLDER / "lapstrake.spec")]
    subprocess.run(command, cwd=ROOT, check=True)
    size = sum(file.stat().st_size for file in PROGRAM.parent.rglob("*") if file.is_file() and not file.is_symlink())
    print(f"{PROGRAM.parent}: {size / 1e6:.0f} MB", flush=True)
    return subprocess.run([sys.executable, str(FOLDER / "smoke.py"), str(PROGRAM)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
