"""Files appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from engine.errors import UsageError
from engine.hlo.zipped import archive_of


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file through a temporary neighbour, flushed to disk and renamed. UsageError where that is impossible."""
    target = Path(path)
    if target.exists() and not target.is_file() and not target.is_dir():
        _write_through(target, content)
        return
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise _refusal(target, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise UsageError(f"cannot write {target}: {error.strerror}") from error


def check_writable(path: str | os.PathLike[str], *, makes_folders: bool = False) -> None:
    """Raises UsageError where nothing can be written at `path`, before the work that makes its content is begun.

    With `makes_folders` it is to be a folder, and those over it may be missing.
    """
    target = Path(path)
    if target.exists() and not target.is_file() and not target.is_dir():
        return  # a device or a pipe
    if target.is_dir() and not makes_folders:
        raise UsageError(f"cannot write {target}: it is a folder, and a file was expected")
    folder = target.parent
    while makes_folders and not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        # Asked by doing: what the permissions say is not all there is (disks that are read-only, or full).
        with tempfile.NamedTemporaryFile(prefix=f".{target.name[:32]}.", dir=folder):
            pass
    except OSError as error:
        raise _refusal(target, error) from error


def _refusal(target: Path, error: OSError) -> UsageError:
    """Why nothing can be made in the folder of `target`."""
    if isinstance(error, FileNotFoundError):
        if target.parent.is_dir():  # as /proc refuses
            return UsageError(f"cannot write {target}: nothing can be made in the folder {target.parent}; name another")
        return UsageError(f"cannot write {target}: there is no folder {target.parent}; make it, or name another place")
    return UsageError(f"cannot write {target}: {error.strerror}")


def check_apart(path: str | os.PathLike[str], sources: Iterable[str | os.PathLike[str]]) -> None:
    """Raises UsageError where writing `path` would destroy one of the files that its content is made of."""
    for source in sources:
        if _is_same(Path(path), archive_of(source) or Path(source)):
            raise UsageError(f"{path} is what this is made from: nothing is written over it. Name another file")


def _is_same(target: Path, source: Path) -> bool:
    """Whether two paths lead to one file, by whatever names and links; devices and pipes are nobody's source."""
    try:
        return target.is_file() and source.is_file() and target.samefile(source)
    except OSError:
        return False


def _write_through(device: Path, content: bytes) -> None:
    """Into a device or a pipe: to rename something over it would take it from everybody else."""
    try:
        device.write_bytes(content)
    except OSError as error:
        raise UsageError(f"cannot write {device}: {error.strerror}") from error


def _mode(target: Path) -> int:
    """Of the file that is replaced, else what a new file would get."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask
