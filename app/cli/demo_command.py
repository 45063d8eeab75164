"""`lapstrake demo`: the explorer on a shipped sample; where no window can open, that sample's report."""

from __future__ import annotations

import sys
from argparse import Namespace
from importlib.resources import files
from pathlib import Path

from app import display
from app.cli import report_command
from app.cli.arguments import parse
from engine.errors import UnsupportedError

_SAMPLE = "mlp_fig3.hlo"


def sample() -> str:
    """Path of the sample that is shown first. UnsupportedError where an installation left it out."""
    for folder in (Path(str(files("app"))).parent / "samples", Path(sys.prefix) / "share" / "lapstrake" / "samples"):
        if (folder / _SAMPLE).is_file():
            return str(folder / _SAMPLE)
    raise UnsupportedError(f"the sample {_SAMPLE} is not part of this installation; open a file of your own instead")


def run(arguments: Namespace) -> int:
    """Open the window on the sample, or print its report and what a window would need."""
    trouble = None if arguments.report else display.display_trouble()
    if trouble is None and not arguments.report:
        from app.gui import run as open_window  # late: a report needs no Qt

        return open_window([sample()])
    if trouble is not None:
        print(f"{display.advice(trouble)}\n\nThe report of {_SAMPLE} instead:\n")
    return report_command.run(parse(["report", sample()]))
