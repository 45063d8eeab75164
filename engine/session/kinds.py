"""Tells from its first bytes what a file is that the user dropped or opened: told at once, read by a job."""

from __future__ import annotations

import re
import zlib
from enum import StrEnum

_HEAD = 1 << 16
_GZIP = b"\x1f\x8b"
_SCHEDULE = re.compile(r"(?:\s|#[^\n]*\n)*(hlo_module|computation_schedules)\s*[{<:]")
_COSTS = re.compile(r"(?:\s|#[^\n]*\n)*(?:costs|latencies)\s*:?\s*[{<]")
_TABLES = (".csv", ".toml", ".pbtxt")
_PROFILE_NAMES = (".xplane.pb", ".xspace.pb")


class FileKind(StrEnum):
    """What is done with a file that is dropped on the window."""

    MODULE = "module"
    """Opened: a module, a session, or what only reading tells to be none."""
    SCHEDULE = "schedule"
    """A compiler's predicted schedule: a variant."""
    PROFILE = "profile"
    """A measured run: a variant."""
    COSTS = "costs"
    """Times by instruction name."""


def kind_of(path: str) -> FileKind:
    """By name and content; MODULE for what is not one of the others, or cannot be read."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return FileKind.MODULE
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
        except zlib.error:
            return FileKind.MODULE
    name = path.lower().removesuffix(".gz")
    if name.endswith(_PROFILE_NAMES) or _is_xspace(head):
        return FileKind.PROFILE
    text = head.decode("utf-8", "replace")
    if _SCHEDULE.match(text):
        return FileKind.SCHEDULE
    if name.endswith(_TABLES) or _COSTS.match(text):
        return FileKind.COSTS
    if text.lstrip()[:1] in ("{", "[") and ('"traceEvents"' in text or '"ph"' in text):
        return FileKind.PROFILE
    return FileKind.MODULE


def _is_xspace(head: bytes) -> bool:
    """Whether a message begins with a plane: field 1, in which a number (field 1) or a text (field 2) comes first.

    The first field of an HloProto, whose field 1 is a message too, has a text (its name) first.
    """
    if head[:1] != b"\x0a":
        return False
    at = 1
    while at < min(len(head), 11) and head[at] & 0x80:
        at += 1
    inner = head[at + 1 : at + 64]
    if inner[:1] == b"\x08":
        number = 1
        while number < len(inner) and inner[number] & 0x80:
            number += 1
        inner = inner[number + 1 :]
    return inner[:1] == b"\x12" and inner[2:3] in (b"/", b"T")
