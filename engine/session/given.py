"""Files that a session rests on besides its module: known by their content, so that a changed one is noticed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from engine.errors import InputError


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file as it was when the user gave it. The same content elsewhere is the same file."""

    path: str = field(compare=False)
    sha256: str

    @property
    def name(self) -> str:
        return Path(self.path).name


class RecordingKind(StrEnum):
    """What a recording holds."""

    SCHEDULE = "schedule"
    """A compiler's predicted schedule, ScheduleProto text with the compiler's module in it."""
    PROFILE = "profile"
    """A measured run: xplane.pb, or a Chrome or Perfetto trace (JSON)."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Where a variant's times come from that no plan made."""

    kind: RecordingKind
    file: GivenFile
    target: str = ""
    """What a schedule was compiled for (``tpu:v4:2x2x2``), or what a profile was measured on (``8 CPU devices``); empty
    where that is not known."""


def take(path: str) -> tuple[GivenFile, bytes]:
    """A file as it is now, and what it holds. Raises InputError where it cannot be read."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: it cannot be read: {error.strerror or error}") from None
    return GivenFile(str(Path(path).absolute()), hashlib.sha256(data).hexdigest()), data


def content_of(file: GivenFile) -> bytes:
    """What a file holds. Raises InputError where it is gone, or no longer what was given."""
    now, data = take(file.path)
    if now != file:
        raise InputError(
            f"{file.path}: it is not what it was when it was given to this session. Put the old file back, or remove "
            "it from the session and give the new one"
        )
    return data
