"""The command line: what `lapstrake --help` lists. No Qt is imported unless a window opens."""
