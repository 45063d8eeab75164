"""Begins what the window will need while it is still being imported and made: a worker, and reading the file given."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread

from engine import worker
from engine.errors import LapstrakeError, WorkerError
from engine.export.captured import captured_file
from engine.hlo.reading import read_bytes
from engine.session import files
from engine.session.kinds import FileKind, kind_of

LOAD = "app.work:load"
DEADLINE = 300.0
"""Seconds after which reading a file is given up."""


class Ahead:
    """What was begun, until somebody takes it over."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._prepared = False
        self._begun: dict[str, Future[tuple[bytes, worker.Call] | None]] = {}

    def begin(self, paths: Sequence[str]) -> None:
        """Start a worker that imports what reading and planning need and, where one module is given, read that in it.

        Returns at once, and does nothing the second time. What is wrong with the file is said by whoever opens it.
        """
        if self._prepared:
            return
        self._prepared = True
        with suppress(WorkerError):  # whoever needs a worker tries again, and says so
            worker.prepare("app.work:warm")
        if len(paths) == 1 and Path(paths[0]).is_file() and captured_file(paths[0]) == paths[0]:
            begun: Future[tuple[bytes, worker.Call] | None] = Future()
            self._begun[paths[0]] = begun
            # A thread: the worker takes in a large file only once it is done with its imports.
            Thread(target=_begin, args=(paths[0], begun), name="reading ahead", daemon=True).start()

    def take(self, path: str, data: bytes) -> worker.Call | None:
        """The call that reads `data` from `path`, where it was begun; it is whoever takes it that waits for it."""
        with self._lock:
            begun = self._begun.pop(path, None)
        found = begun.result() if begun is not None else None
        if found is None:
            return None
        if found[0] != data:  # the file was written to meanwhile
            found[1].kill()
            return None
        return found[1]


def _begin(path: str, begun: Future[tuple[bytes, worker.Call] | None]) -> None:
    found = None
    try:
        if not files.is_session(path) and kind_of(path) == FileKind.MODULE:
            data = read_bytes(path)
            found = data, worker.start(LOAD, data, path, deadline=DEADLINE)
    except (LapstrakeError, OSError):
        pass  # it is tried again when it is opened, and then complained of
    finally:
        begun.set_result(found)


_AHEAD = Ahead()
begin = _AHEAD.begin
take = _AHEAD.take
