"""Reads the file of a module by a job, and turns the death of a reading process into an error about the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app import ahead
from app.jobs import Jobs
from engine import worker
from engine.errors import InputError, LapstrakeError
from engine.hlo import complaints
from engine.hlo.decoding import HloText, decode
from engine.hlo.reading import read_bytes
from engine.ir.module import Module
from engine.session.session import Facts


def read_file(
    jobs: Jobs,
    path: str,
    done: Callable[[Module, Facts], None],
    failed: Callable[[LapstrakeError], None],
) -> int:
    """Start a job that reads `path`; `failed` gets its error or a Cancelled. Returns the job's number.

    Raises InputError at once for a file that cannot be read at all.
    """
    data = read_bytes(path)
    return jobs.start(
        f"reading {Path(path).name}",
        ahead.LOAD,
        data,
        path,
        done=lambda found: done(*found),
        failed=lambda error: failed(_explained(error, path, data)),
        deadline=ahead.DEADLINE,
        begun=lambda: ahead.take(path, data),
    )


def told(error: LapstrakeError) -> str:
    """An error in full, with the line it is about."""
    if isinstance(error, InputError) and error.place is not None:
        return f"{error.message}\n\n{error.place}"
    return str(error)


def _explained(error: LapstrakeError, path: str, data: bytes) -> LapstrakeError:
    """The death of the reading process as an error about the file."""
    if isinstance(error, worker.TimedOut):
        return InputError(f"{path}: XLA did not finish reading it within {ahead.DEADLINE:g} s")
    if not isinstance(error, worker.Died):
        return error
    content = decode(data, path)
    text = content.text if isinstance(content, HloText) else ""
    return complaints.explain_death(error.said or str(error), text, path)
