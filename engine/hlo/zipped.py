"""Files in a .zip, by the paths that they would have if it were a folder: ``bundle.zip/tuned.hlo``."""

from __future__ import annotations

import lzma
import os
import zipfile
import zlib
from pathlib import Path

from engine.errors import InputError

MOST_BYTES = 1 << 32
"""Largest file that is unpacked."""


def archive_of(path: str | os.PathLike[str]) -> Path | None:
    """The .zip that a path leads into; None for a path of its own, be there something or not."""
    for above in Path(path).parents:
        try:
            if above.is_file():
                return above if zipfile.is_zipfile(above) else None
            if above.exists():
                return None
        except OSError:  # a name that is too long, say
            return None
    return None


def has(path: str | os.PathLike[str], name: str) -> bool:
    """Whether `path` is a .zip with a file called `name` at its root."""
    return name in names_in(path)


def names_in(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Names of the files in a .zip, sorted; none for what is no .zip."""
    try:
        if not os.path.isfile(path) or not zipfile.is_zipfile(path):
            return ()
        with zipfile.ZipFile(path) as archive:
            return tuple(sorted(name for name in archive.namelist() if not name.endswith("/")))
    except (OSError, zipfile.BadZipFile):
        return ()


def read_member(path: str | os.PathLike[str]) -> bytes:
    """A file in a .zip. Raises InputError where the .zip does not hold it, or holds it damaged or too large."""
    archive = archive_of(path)
    if archive is None:
        raise InputError(f"{path}: there is no such file")
    name = Path(path).relative_to(archive).as_posix()
    try:
        with zipfile.ZipFile(archive) as opened:
            if opened.getinfo(name).file_size > MOST_BYTES:
                raise InputError(f"{path}: unpacks to more than {MOST_BYTES >> 30} GiB")
            return opened.read(name)
    except KeyError:
        there = ", ".join(names_in(archive)) or "nothing"
        raise InputError(f"{archive}: no {name} is in it; found {there}") from None
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError) as error:
        raise InputError(f"{path}: the .zip is damaged, or packed in a way that is not known ({error})") from None
