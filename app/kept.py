"""Recordings that the window made itself: kept in a folder of its own until a session is saved, then beside that."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from engine.export.writing import write_atomically
from engine.session.given import GivenFile
from engine.session.session import Entry, Session

FOLDER = "recordings"
"""In the place for what is remembered between runs."""
MOST = 64
"""Recordings that stay when the window closes, newest first."""


def keep(folder: str, data: bytes, suffix: str) -> GivenFile:
    """Write a recording, named by its content. Raises UsageError where that is impossible."""
    digest = hashlib.sha256(data).hexdigest()
    place = Path(folder) / f"{digest[:16]}{suffix}"
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_file():
        write_atomically(place, data)
    return GivenFile(str(place.absolute()), digest)


def moved_beside(session: Session, place: str, folder: Path) -> Session:
    """`session` with copies, beside the session file at `place`, of what lies in `folder`: recordings, and modules from
    profiles.

    Raises OSError, or UsageError, where they cannot be copied.
    """
    modules = (replace(m, path=_copied(GivenFile(m.path, ""), Path(place), folder).path) for m in session.modules)
    entries = (_moved(entry, Path(place), folder) for entry in session.entries)
    return replace(session, modules=tuple(modules), entries=tuple(entries))


def _moved(entry: Entry, place: Path, folder: Path) -> Entry:
    costs = tuple(_copied(file, place, folder) for file in entry.machine.costs)
    moved = replace(entry, machine=replace(entry.machine, costs=costs))
    if entry.recording is None:
        return moved
    return replace(moved, recording=replace(entry.recording, file=_copied(entry.recording.file, place, folder)))


def _copied(file: GivenFile, place: Path, folder: Path) -> GivenFile:
    source = Path(file.path)
    if source.parent != folder.absolute():
        return file
    target = place.absolute().with_name(f"{place.stem}.{source.name}")
    if not target.is_file():
        write_atomically(target, source.read_bytes())
    return GivenFile(str(target), file.sha256)


def prune(folder: Path) -> None:
    """Leave the newest recordings only."""
    with suppress(OSError):
        files = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in files[MOST:]:
            path.unlink()
