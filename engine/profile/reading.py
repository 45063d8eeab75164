"""Opens a measured profile of any kind that is understood: xplane.pb, or a Chrome/Perfetto trace; gzipped or not."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from google.protobuf.message import DecodeError

from engine.errors import InputError
from engine.profile.profile import PREDICTED, Profile
from engine.profile.trace import is_trace, trace_profile
from engine.profile.xplane import profile_of
from engine.profile.xspace_pb2 import XSpace

EXPECTED = "a profile (.xplane.pb) or a trace (Chrome/Perfetto JSON) was expected"


def read_profile(path: str) -> Profile:
    """The profile in a file, told by its content; a folder that a profiler wrote is the newest profile in it.

    Raises InputError for what is none, or holds no HLO operations.
    """
    file = Path(path)
    if file.is_dir():
        file = _newest(file)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: {EXPECTED}, but it cannot be read: {error.strerror}") from error
    return profile_from_bytes(data, str(file))


def profile_from_bytes(data: bytes, source: str) -> Profile:
    """The same for the bytes of a file. Raises InputError."""
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{source}: it is gzip data, but damaged: {error}") from error
    if not data.strip():
        raise InputError(f"{source}: {EXPECTED}, but the file is empty")
    profile = _read(data, source)
    if PREDICTED in profile.notes:
        raise InputError(f"{source}: a measured profile was expected, but this one was predicted by Lapstrake")
    if not len(profile):
        raise InputError(f"{source}: a profile of HLO operations was expected, but it holds none of them")
    return profile


def _read(data: bytes, source: str) -> Profile:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if is_trace(text):
        return trace_profile(text, source)
    try:
        return profile_of(XSpace.FromString(data), source)
    except DecodeError as error:
        raise InputError(f"{source}: {EXPECTED}, but it is neither") from error


def _newest(folder: Path) -> Path:
    """Profilers write ``plugins/profile/DATE/HOST.xplane.pb`` below the folder that they are given."""
    found = sorted(folder.rglob("*.xplane.pb"), key=lambda file: (file.stat().st_mtime, str(file)))
    if not found:
        raise InputError(f"{folder}: {EXPECTED}, but the folder has no .xplane.pb below it")
    return found[-1]
