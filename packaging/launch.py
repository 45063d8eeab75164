"""Where the frozen program starts; the same as the `lapstrake` command, with spawned workers served first."""

import importlib
import multiprocessing
import os
import sys

if __name__ == "__main__":
    multiprocessing.freeze_support()  # in a worker this call serves its job and never returns
    if "LAPSTRAKE_TRIAL" in os.environ:  # set by smoke.py alone
        sys.exit(importlib.import_module("window_trial").main(*sys.argv[1:]))
    from app.cli.main import main

    sys.exit(main())
