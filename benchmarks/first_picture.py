"""`lapstrake FILE` as it is started, which says how long its first picture took and ends; run by `benchmarks.window`.

python -m benchmarks.first_picture FILE SINCE

SINCE: `time.time()` when this process was started.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import Any

from app.cli.main import main as lapstrake


def main(path: str, since: float) -> int:
    """Print the seconds from `since` to the window, and to the first variant in it."""
    Thread(target=_watch, args=(since,), daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        return lapstrake(["open", path])


def _watch(since: float) -> None:
    """Wait until the window's module is there, and have the window look for its first picture."""
    while not (found := getattr(sys.modules.get("app.explorer"), "Explorer", None)):
        time.sleep(0.002)
    from PySide6.QtCore import QTimer  # late: what is measured decides when Qt is imported

    show = found.show

    def shown(explorer: Any) -> None:
        show(explorer)
        window = time.time() - since
        timer = QTimer(explorer)

        def look() -> None:
            if any(entry.variant is not None for entry in explorer.store.state.entries):
                print(f"{window} {time.time() - since}", flush=True)
                timer.stop()
                explorer.window.close()

        timer.timeout.connect(look)
        timer.start(2)

    found.show = shown


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve()), float(sys.argv[2])))
