"""Where the frozen program starts; the same as the `lapstrake` command, with spawned workers served first."""

import multiprocessing
import sys

if __name__ == "__main__":
    multiprocessing.freeze_support()  # in a worker this call serves its job and never returns
    from app.cli.main import main

    sys.exit(main())
