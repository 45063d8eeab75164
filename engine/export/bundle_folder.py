"""A bundle on disk: a folder, or a .zip, that is whole at every moment at which somebody may read it."""

from __future__ import annotations

import ctypes
import glob
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from engine.errors import UsageError
from engine.export.writing import check_writable, write_atomically

_PART = ".lapstrake-part"
"""What the names of folders that are being written end with."""
_ABANDONED = 3600.0
"""Seconds."""


def write_bundle(path: str, content: Mapping[str, bytes]) -> None:
    """Write a folder, or a .zip, of files by their paths in it, so that no reader ever sees part of it: the old one is
    whole until the new one is."""
    target = Path(path)
    if target.suffix == ".zip":
        write_atomically(target, _zipped(content))
        return
    _refuse_other(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_PART, dir=target.parent))
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}") from error
    try:
        for name, data in content.items():
            (temporary / name).parent.mkdir(exist_ok=True)
            write_atomically(temporary / name, data)
        temporary.chmod(0o755)
        _replace_folder(temporary, target)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _sweep(target: Path) -> None:
    """Remove what exports that were killed have left beside `target`: nobody writes for so long."""
    for part in target.parent.glob(f".{glob.escape(target.name)}.*{_PART}"):
        with suppress(FileNotFoundError):  # of an export that has just ended
            if time.time() - part.stat().st_mtime > _ABANDONED:
                shutil.rmtree(part, ignore_errors=True)


def check_place(path: str) -> None:
    """Raises UsageError where `write_bundle` could not write: asked before a search, which may take minutes."""
    target = Path(path)
    if target.suffix == ".zip":
        check_writable(target)
    else:
        _refuse_other(target)
        check_writable(target, makes_folders=True)


def is_bundle(place: Path) -> bool:
    """Whether a folder is a bundle, which another may take the place of."""
    return (place / "manifest.json").is_file()


def _refuse_other(target: Path) -> None:
    if target.exists() and not is_bundle(target):
        raise UsageError(f"{target} exists and is no bundle: name another folder, or remove it")


def _replace_folder(new: Path, target: Path) -> None:
    if not target.exists():
        os.rename(new, target)
    elif not _exchange(new, target):
        # Between these two renames nobody finds a bundle; nobody ever finds half of one.
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        os.rename(target, old / target.name)
        os.rename(new, target)
        shutil.rmtree(old, ignore_errors=True)
    _sync(target.parent)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two names in one step, where the system can (Linux: renameat2 with RENAME_EXCHANGE)."""
    if not sys.platform.startswith("linux"):
        return False
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    at_fdcwd, exchange = -100, 2
    return call is not None and call(at_fdcwd, os.fsencode(a), at_fdcwd, os.fsencode(b), exchange) == 0


def _sync(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _zipped(content: Mapping[str, bytes]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(content):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content[name], zipfile.ZIP_DEFLATED)
    return out.getvalue()
