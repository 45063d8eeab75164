"""Profiles of runs as files: as the profiler wrote them, or as traces for the Perfetto UI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.errors import UsageError
from engine.export.perfetto import trace_bytes, trace_text
from engine.session.running import Ran, Run

SUFFIXES = (".xplane.pb", ".pb", ".json.gz", ".json")


def profile_files(run: Run, out: str) -> Mapping[str, bytes]:
    """Contents of the files that `out` stands for, by path: that of the last variant under its own name, the others
    with a number before the suffix.

    ``.xplane.pb`` is what the profiler wrote, with every execution on every device; ``.json`` and ``.json.gz`` are
    traces of the execution that is shown. Raises UsageError for other suffixes.
    """
    path, suffix = Path(out), suffix_of(out)
    stem = path.name.removesuffix(suffix)
    files = {}
    for number, ran in enumerate(run.ran):
        name = stem if number == len(run.ran) - 1 else f"{stem}.{number}"
        files[str(path.with_name(name + suffix))] = _content(ran, suffix)
    return files


def suffix_of(out: str) -> str:
    """Which of `SUFFIXES` a path has. Raises UsageError for none, and where its folder does not exist."""
    path = Path(out)
    suffix = next((s for s in SUFFIXES if path.name.endswith(s)), None)
    if suffix is None:
        raise UsageError(f"a profile is written as {', '.join(SUFFIXES)}, but '{out}' came")
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {out}: there is no folder {path.parent}")
    return suffix


def _content(ran: Ran, suffix: str) -> bytes:
    assert ran.measured is not None
    if suffix.endswith("pb"):
        return ran.timing.profile
    variant = ran.measured.variant
    write = trace_text if suffix == ".json" else trace_bytes
    return write(variant.timeline, variant.program.module, variant.name)
