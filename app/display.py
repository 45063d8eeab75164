"""Whether Qt can open a window here. A child process tries: Qt aborts its process when it cannot, it does not raise."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from importlib import resources
from pathlib import Path

DEADLINE_S = 60.0
"""A cold start of Qt from a slow disk takes seconds; longer than this is a hang."""


def debian_packages() -> tuple[str, ...]:
    """The Debian and Ubuntu packages with the libraries that Qt loads."""
    return tuple(resources.files("app").joinpath("debian-packages.txt").read_text("utf-8").split())


def display_trouble(platform: str | None = None) -> str | None:
    """Why no QApplication can be made here, in Qt's own words, or None where one can.

    `platform` is a Qt platform such as "offscreen"; None takes what the environment says or Qt's choice.
    """
    with tempfile.TemporaryDirectory(prefix="lapstrake-display-") as folder:
        said = Path(folder) / "stderr"
        child = multiprocessing.get_context("spawn").Process(target=_try_application, args=(platform, str(said)))
        child.start()
        child.join(DEADLINE_S)
        if child.is_alive():
            child.kill()
            child.join()
            return f"Qt did not start within {DEADLINE_S:.0f} s"
        if child.exitcode == 0:
            return None
        words = said.read_text("utf-8", "replace").strip() if said.exists() else ""
    return _cause(words) or f"Qt ended its process with exit code {child.exitcode}"


def advice(trouble: str) -> str:
    """What to tell the user about `trouble`: the reason and, on Linux, what to install."""
    lines = [f"Qt cannot open a window here: {trouble}"]
    if sys.platform.startswith("linux"):
        lines += [
            "It needs a display (an X or Wayland session; DISPLAY or WAYLAND_DISPLAY set) and these libraries.",
            "Debian, Ubuntu:",
            f"    sudo apt-get install {' '.join(debian_packages())}",
            "On another Linux, install the packages that hold the same libraries.",
        ]
    return "\n".join(lines)


def main() -> int:
    """Exit status 0 where tests of the window can run (Qt's offscreen platform starts), else 2 and what to install."""
    trouble = display_trouble("offscreen")
    if trouble is None:
        return 0
    print(advice(trouble), file=sys.stderr)
    return 2


def _try_application(platform: str | None, said: str) -> None:
    with open(said, "wb", buffering=0) as file:
        os.dup2(file.fileno(), 2)
    if platform is not None:
        os.environ["QT_QPA_PLATFORM"] = platform
    from PySide6.QtWidgets import QApplication  # late: the parent must not load Qt

    QApplication([])


def _cause(words: str) -> str:
    """The line of output that names the cause: the first complaint, since later ones follow from it."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    telling = [line for line in lines if any(mark in line for mark in ("Error:", "could not", "Could not", "needed"))]
    return (telling or lines or [""])[0]


if __name__ == "__main__":
    sys.exit(main())
