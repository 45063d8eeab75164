"""Reads HLO text, HloModuleProto or HloProto bytes and StableHLO, gzipped or not, into a `Module`.

`read` does so in a worker process, because XLA aborts on some malformed inputs; `read_here` is what the worker runs.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from dataclasses import replace
from pathlib import Path

from engine import worker
from engine.control import QUIET, Control
from engine.errors import InputError
from engine.hlo import complaints, xla
from engine.hlo.decoding import HloBytes, HloText, StableHlo, decode, refuse_foreign_text, refuse_huge_constants
from engine.hlo.dump import describe_folder
from engine.hlo.header import parse_header
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.hlo.partitions import awaits_partitioning, grouped_in, infer_counts, misnamed, uncovered
from engine.hlo.verifying import verify
from engine.hlo.zipped import archive_of, read_member
from engine.ir.module import Header, Module, Source

DEADLINE = 300.0
"""Seconds until reading is given up; a million instructions take about 20."""

STANDARD_INPUT = "standard input"
"""What messages call ``-``."""

MOST_DROPPED = 16
"""How many different unknown attributes are dropped from a text before it counts as unreadable."""

_ELIDED = re.compile(r'^\s*(?:ROOT\s+)?%?([\w.\-]+) = [^"\n]*?\bconstant\([^"\n]*?\{\.\.\.\}', re.MULTILINE)


def read(
    source: str | os.PathLike[str] | bytes, *, name: str = "-", deadline: float = DEADLINE, control: Control = QUIET
) -> Module:
    """Read a module from a file (``-`` is standard input), or from bytes that messages call `name`.

    Raises InputError for everything that is wrong with the input, and when XLA aborts on it or does not answer within
    `deadline` seconds; UnsupportedError for a jaxlib that was never tried; Cancelled.
    """
    data, path = (source, name) if isinstance(source, bytes) else (read_bytes(source), os.fspath(source))
    typed, path = path, STANDARD_INPUT if source == "-" else path
    control.step(0.0, f"reading {path}")
    try:
        module = worker.call("engine.hlo.reading:read_in_worker", data, path, deadline=deadline, control=control)
    except worker.Died as error:
        raise _explain_death(error, data, path) from None
    except worker.TimedOut:
        raise InputError(f"{path}: XLA did not finish reading it within {deadline:g} s") from None
    assert isinstance(module, Module)
    assert module.source is not None
    return replace(module, source=replace(module.source, path=typed))


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Bytes of a file, be it in a .zip (``bundle.zip/tuned.hlo``), or of standard input for ``-``. Raises InputError,
    for a folder with the modules in it."""
    shown = os.fspath(path)
    if shown == "-":
        return sys.stdin.buffer.read()
    if archive_of(path) is not None:
        return read_member(path)
    try:
        _refuse_endless(path)
        return Path(path).read_bytes()
    except IsADirectoryError:
        raise InputError(describe_folder(Path(path))) from None
    except FileNotFoundError:
        raise InputError(f"{shown}: there is no such file") from None
    except OSError as error:
        if os.path.isdir(path):  # Windows refuses a folder as not permitted
            raise InputError(describe_folder(Path(path))) from None
        raise InputError(f"{shown}: {error.strerror or error}") from None


def _refuse_endless(path: str | os.PathLike[str]) -> None:
    """Raises InputError for devices and sockets, of which there may be no end; OSError where there is nothing."""
    mode = os.stat(path).st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise InputError(f"{os.fspath(path)}: a file was expected, but it is a device")


def read_in_worker(data: bytes, path: str, *, control: Control) -> Module:
    return read_here(data, path, control)


def read_here(data: bytes, path: str = "-", control: Control = QUIET) -> Module:
    """Read a module from the bytes of a file, in this process: for workers and tests.

    `path` is only for messages. Raises InputError. XLA may abort the process on some malformed inputs.
    """
    content = decode(data, path)
    control.step(0.1, f"reading {path} with XLA")
    match content:
        case HloText(text):
            module = _from_text(text, path)
        case HloBytes(proto):
            module = _from_proto(proto, path)
        case StableHlo(code):
            module = _from_stablehlo(code, path)
    control.step(0.7, f"checking {path}")
    verify(module.proto, path)
    return replace(module, source=Source(path, hashlib.sha256(data).hexdigest()))


def _from_text(text: str, path: str) -> Module:
    refuse_foreign_text(text, path)
    refuse_huge_constants(text, path)
    parsed, dropped = _parse(text, path)
    notes = []
    if dropped:
        names = ", ".join(dropped)
        notes.append(f"Left out attributes that the installed jaxlib {xla.version()} does not know: {names}.")
    module = _assemble(parsed, path, parse_header(parsed.header)).with_notes(*notes)
    elided = _ELIDED.findall(text) if "{...}" in text else []
    if not elided:
        return module
    constants = "1 constant is" if len(elided) == 1 else f"{len(elided)} constants are"
    ids = frozenset(module.by_name[name].id for name in elided if name in module.by_name)
    return replace(module, elided=ids).with_notes(
        f"{constants} elided in the text, as constant({{...}}): their values are not those of the program, and what "
        "is computed with them means nothing. Print with print_large_constants to keep them."
    )


def _parse(text: str, path: str) -> tuple[xla.Parsed, tuple[str, ...]]:
    """The parsed module and the names of attributes left out: those of a newer or an older XLA than the installed."""
    first: xla.XlaError | None = None
    shorter, dropped = text, list[str]()
    while True:
        try:
            return xla.parse(shorter), tuple(dropped)
        except xla.XlaError as error:
            first = first or error
            less = complaints.without_unknown_attribute(str(error), shorter)
            if less is None or len(dropped) == MOST_DROPPED:
                raise complaints.explain(str(first), text, path) from None
            shorter = less[0]
            dropped.append(less[1])


def _from_proto(serialised: bytes, path: str) -> Module:
    proto = HloModuleProto.FromString(serialised)
    verify(proto, path)  # before XLA sees it: it aborts on much of what this finds
    try:
        parsed = xla.check_proto(serialised)
    except xla.XlaError as error:
        raise complaints.explain(str(error), "", path) from None
    return _assemble(parsed, path, Header())


def _from_stablehlo(code: str | bytes, path: str) -> Module:
    try:
        parsed = xla.from_stablehlo(code)
    except xla.XlaError as error:
        text = code if isinstance(code, str) else ""
        raise complaints.explain_mlir(str(error), text, path) from None
    partitions, replicas = xla.device_counts(code)
    return _assemble(parsed, path, Header(partitions or 1, replicas or 1))


def _assemble(parsed: xla.Parsed, path: str, header: Header) -> Module:
    proto = HloModuleProto.FromString(parsed.proto)
    if not any(c.instructions for c in proto.computations):
        raise InputError(f"{path}: the module {proto.name} has no instructions")
    header, note = infer_counts(proto, header)
    grouped = grouped_in(proto)
    wrong = misnamed(grouped, header)
    if wrong is not None:
        raise InputError(f"{path}: the module is not valid HLO: {wrong}")
    notes = [said for said in (note, uncovered(grouped, header)) if said is not None]
    module = Module(proto, header, tuple(notes))
    if header.num_partitions == 1 or not awaits_partitioning(module):
        return module
    if grouped:
        which = (
            "and collectives only in what is written for one device (shard_map). The rest has the shapes of all "
            "devices together, and so have its figures"
        )
    else:
        which = "and no collectives"
    return module.with_notes(
        f"The module is not partitioned yet: it has shardings for {header.num_partitions} partitions {which}. Dump it "
        "after SPMD partitioning (--xla_dump_hlo_pass_re=spmd-partitioning) to see what one device runs."
    )


def _explain_death(error: worker.Died, data: bytes, path: str) -> InputError:
    content = decode(data, path)
    said = error.said or str(error)
    return complaints.explain_death(said, content.text if isinstance(content, HloText) else "", path)
