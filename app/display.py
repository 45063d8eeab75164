"""Whether Qt can open a window here. A child process tries: Qt aborts its process when it cannot, it does not raise."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Self

DEADLINE_S = 60.0
"""A cold start of Qt from a slow disk takes seconds; longer than this is a hang."""


def debian_packages() -> tuple[str, ...]:
    """The Debian and Ubuntu packages with the libraries that Qt loads."""
    return tuple(resources.files("app").joinpath("debian-packages.txt").read_text("utf-8").split())


class Trial:
    """A child process that makes a QApplication. To be left by ``with``; meanwhile something else can be done."""

    def __init__(self, platform: str | None = None) -> None:
        """`platform` is a Qt platform such as "offscreen"; None takes what the environment says or Qt's choice."""
        self._folder = tempfile.TemporaryDirectory(prefix="lapstrake-display-")
        self._said = Path(self._folder.name) / "stderr"
        spawning = multiprocessing.get_context("spawn")
        self._child = spawning.Process(target=_try_application, args=(platform, str(self._said)))
        self._refused = ""
        try:
            self._child.start()
        except OSError as error:
            self._refused = f"no process could be started to try it: {error.strerror or error}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._refused:
            self._child.kill()
            self._child.join()
        self._folder.cleanup()

    def trouble(self) -> str | None:
        """Why no QApplication can be made here, in Qt's own words, or None where one can. Waits for the child."""
        if self._refused:
            return self._refused
        self._child.join(DEADLINE_S)
        if self._child.is_alive():
            return f"Qt did not start within {DEADLINE_S:.0f} s"
        if self._child.exitcode == 0:
            return None
        words = self._said.read_text("utf-8", "replace").strip() if self._said.exists() else ""
        return _cause(words) or f"Qt ended its process with exit code {self._child.exitcode}"


def display_trouble(platform: str | None = None) -> str | None:
    """As `Trial.trouble`, for those who have nothing else to do meanwhile."""
    with Trial(platform) as trial:
        return trial.trouble()


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
