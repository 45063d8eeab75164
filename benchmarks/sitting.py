"""How long the event loop is blocked in a whole sitting by mouse and keyboard, step by step.

python -m benchmarks.sitting [FILE …]

Runs the end-to-end script under Xvfb where that is installed, else offscreen, on a shipped sample or the files given. A
block by the clock grows with whatever else the machine does; the processor time in it hardly does.
"""

from __future__ import annotations

import argparse
import sys

from tests.app import sitting_process, virtual_display
from tests.app.sitting import SAMPLE

STEP, WHOLE = 300.0, 3600.0
"""Seconds that a step, and the script, may take."""


def main(argv: list[str] | None = None) -> int:
    """Print the script's report for each file; exit status 1 where it did not go through."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sitting", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE", default=[str(SAMPLE)], help="HLO; a shipped sample if none")
    options = parser.parse_args(argv)
    lacking = virtual_display.missing()
    print(f"offscreen: {lacking}" if lacking else "under Xvfb, by its mouse and keyboard")
    status = 0
    for file in options.files:
        print(f"\n{file}", flush=True)
        ended = sitting_process.sit("--limit", f"{STEP:g}", str(file), deadline=WHOLE)
        lines = ended.stdout.splitlines()
        print("\n".join(lines if ended.returncode else lines[:-1]))
        status |= ended.returncode
    return int(status != 0)


if __name__ == "__main__":
    sys.exit(main())
