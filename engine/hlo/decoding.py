"""What the bytes of a file are: gzip seen through, then HLO text, an HLO proto, or StableHLO."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from engine.errors import InputError, Place
from engine.hlo.complaints import lines_of
from engine.hlo.hlo_pb2 import HloModuleProto, HloProto

EXPECTED = (
    "expected HLO text (it begins with `HloModule NAME`), a serialised HloModuleProto or HloProto, "
    "or StableHLO (text or bytecode)"
)
MOST_BYTES = 1 << 32
"""Largest text or proto that is unpacked from gzip: a few hundred million instructions."""

MOST_CONSTANT_ELEMENTS = 1 << 30
"""Largest constant that is read: XLA allocates what the shape says, however short the text is."""

_COUNTLESS = 1 << 62
"""Elements beyond which nobody counts: so many digits may be given that Python would not read them."""

_CONSTANT = re.compile(r"\[([\d,]+)\](?:\{[^}]*\})? constant\(")
_BYTECODE = b"ML\xefR"
_GZIP = b"\x1f\x8b"
_ZIP = b"PK\x03\x04"
_TEXT_CONTROLS = frozenset("\t\n\r\f\v")
_MLIR_STARTS = ("module", "#", "!", "builtin.module", '"builtin.module"', "func.func", "sdy.")


@dataclass(frozen=True, slots=True)
class HloText:
    text: str


@dataclass(frozen=True, slots=True)
class HloBytes:
    """A serialised HloModuleProto."""

    proto: bytes


@dataclass(frozen=True, slots=True)
class StableHlo:
    code: str | bytes
    """MLIR text, bytecode or portable artifact."""


def decode(data: bytes, path: str) -> HloText | HloBytes | StableHlo:
    """Tell the format from the content; `path` is for messages. Raises InputError where it is none of the known."""
    data = unzipped(data, path)
    if not data.strip():
        raise InputError(f"{path}: {EXPECTED}; found {'nothing but white space' if data else 'an empty file'}")
    if data.startswith(_BYTECODE):
        return StableHlo(data)
    text = _text(data)
    if text is not None:
        return StableHlo(text) if _first_word(text).startswith(_MLIR_STARTS) else HloText(text)
    module = _module(data)
    if module is not None:
        return HloBytes(module)
    raise InputError(f"{path}: {EXPECTED}; found {_described(data)}")


def unzipped(data: bytes, path: str) -> bytes:
    """`data`, or what it holds if it is gzip data. Raises InputError where these are damaged or too large."""
    if not data.startswith(_GZIP):
        return data
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise InputError(f"{path}: the gzip data are damaged ({error})") from None
    if unpacker.unconsumed_tail:
        raise InputError(f"{path}: unpacks to more than {MOST_BYTES >> 30} GiB")
    if not unpacker.eof:
        raise InputError(f"{path}: the gzip data end too early; the file was not written or copied completely")
    return unpacked


def _text(data: bytes) -> str | None:
    """The bytes as text with Unix line ends; None when they are binary. PowerShell writes UTF-16, editors add marks."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    if any(c < " " and c not in _TEXT_CONTROLS for c in set(text)):
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _first_word(text: str) -> str:
    for line in lines_of(text):
        stripped = line.strip()
        if stripped and not stripped.startswith("//"):
            return stripped.split(maxsplit=1)[0]
    return ""


def _module(data: bytes) -> bytes | None:
    """The serialised HloModuleProto in HloProto or HloModuleProto bytes; None when they are neither."""
    try:
        inner = HloProto.FromString(data).hlo_module
    except DecodeError:
        inner = HloModuleProto()
    if inner.computations:
        return inner.SerializeToString()
    try:
        return data if HloModuleProto.FromString(data).name else None
    except DecodeError:
        return None


def _described(data: bytes) -> str:
    """Binary data in words; where they are nearly text, the byte that is not."""
    if data.startswith(_ZIP):
        return "a .zip that is no bundle: name a file in it (archive.zip/FILE), or unpack it"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if _is_mostly_text(data):
            line = data.count(b"\n", 0, error.start) + 1
            return f"text whose line {line} holds a byte that is not UTF-8 (0x{data[error.start]:02x})"
    start = " ".join(f"{byte:02x}" for byte in data[:8])
    return f"{len(data):,} bytes of something else (they begin {start})"


def _is_mostly_text(data: bytes) -> bool:
    start = data[:1000]
    printable = sum(byte in b"\t\n\r" or 32 <= byte < 127 for byte in start)
    return printable > 0.9 * len(start)


def refuse_huge_constants(text: str, path: str) -> None:
    """Raises InputError for a constant whose shape would fill the memory."""
    for count, line in enumerate(lines_of(text), 1):
        found = _CONSTANT.search(line) if "constant(" in line else None
        if found is None:
            continue
        elements = _elements(found[1])
        if elements > MOST_CONSTANT_ELEMENTS:
            given = f"{elements:,}{' or more' if elements == _COUNTLESS else ''}"
            message = f"a constant of {given} elements was given; at most {MOST_CONSTANT_ELEMENTS:,} are read"
            raise InputError(message, Place(path, count, found.start() + 1, line))


def _elements(dimensions: str) -> int:
    """The product of sizes such as ``2,3``, up to `_COUNTLESS`."""
    total = 1
    for size in filter(None, dimensions.split(",")):
        total = min(total * int(size[:20]), _COUNTLESS)
    return total


def refuse_foreign_text(text: str, path: str) -> None:
    """Raises InputError for text that does not look like HLO at all, before XLA says something obscure about it."""
    if "HloModule" in text or "ENTRY" in text or ("=" in text and "(" in text and "[" in text):
        return
    lines = lines_of(text)
    first = next((k for k, line in enumerate(lines, 1) if line.strip()), 1)
    raise InputError(f"{EXPECTED}; found other text", Place(path, first, 1, lines[first - 1]))
