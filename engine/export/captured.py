"""What `lapstrake_capture` wrote of a job: which file is its module, and what the job is known by."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine import worker
from engine.control import Control
from engine.errors import InputError, UnsupportedError, UsageError
from engine.export.tagging import is_tagged
from engine.hlo import xla
from engine.hlo.partitions import awaits_partitioning
from engine.hlo.zipped import archive_of, has, read_member
from engine.ir.module import JobMesh, Module

_DEADLINE = 300.0


@dataclass(frozen=True, slots=True)
class Capture:
    """What is known of the program that a module was captured from."""

    fingerprint: Mapping[str, str]
    signature: Mapping[str, Any] | None
    """None for a bare dump: the job finds out at its start what its arguments and results are."""
    versions: Mapping[str, str]
    scheduled: Mapping[str, str] | None = None
    """What the module as its compiler scheduled it is known by, where that is the module that was read: a plan of it
    can only be an order."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Those of jax that the program may depend on."""


def dumped(module: Module) -> Capture:
    """What a module that was dumped, not captured, is known by: itself, printed with constants in full."""
    known = worker.call("engine.export.captured:known_in_worker", module, deadline=_DEADLINE)
    return Capture({"kind": "scheduled" if module.is_scheduled else "partitioned", **known}, None, {})


def with_mesh(module: Module) -> Module:
    """`module` with the mesh of its job, where a ``capture.json`` or a bundle's ``manifest.json`` beside it has one."""
    if module.source is None or module.source.path == "-":
        return module
    for name in ("capture.json", "manifest.json"):
        file = Path(module.source.path).parent / name
        try:
            content = json.loads(read_member(file) if archive_of(file) is not None else file.read_bytes())
            mesh = content["signature"]["mesh"]
            axes = tuple((str(n), int(s)) for n, s in zip(mesh["names"], mesh["sizes"], strict=True))
        except (InputError, OSError, ValueError, KeyError, TypeError):
            continue  # read_capture says what is wrong with it, where it is needed
        along = tuple(axis for axis in axes if axis[1] > 1)
        return replace(module, job_mesh=JobMesh(along or axes, str(file)))
    return module


BUNDLED = ("tuned.hlo", "tuned.hlo.pb", "tuned.mlirbc", "grouped.mlirbc", "original.hlo.pb")
"""Modules of a bundle."""


def check_source(path: str) -> None:
    """Raises UsageError for a bundle, or a module of one: a job is not recognised by what a bundle holds."""
    file = Path(path)
    if path != "-" and (_is_bundle(file) or (file.name in BUNDLED and _is_bundle(file.parent))):
        raise UsageError(
            f"{path}: a captured folder or a dump was expected, but this is of a bundle, by which no job is "
            "recognised: tune what it was made from again (its manifest.json names the module and the plan). All "
            "commands but tune read bundles"
        )


def _is_bundle(path: str | Path) -> bool:
    """Whether a path is a bundle's, a folder or a .zip."""
    return os.path.isfile(Path(path) / "manifest.json") or has(path, "manifest.json")


def check_bundled(module: Module) -> None:
    """Raises UnsupportedError for a module that no bundle can be made of."""
    if module.elided:
        raise UnsupportedError(
            f"{module.name}: some constants were elided when it was printed, as constant({{...}}), so a job "
            "would compute with other numbers: print it with print_large_constants (XLA's --xla_dump_large_constants)"
        )
    if is_tagged(module):
        raise UnsupportedError(
            f"{module.name}: its instructions carry a plan's tags (lapstrake=…), as those of a bundle's tuned module "
            "do, and no job compiles it: tune what the bundle was made from"
        )


def check_dumped(module: Module) -> None:
    """Raises UnsupportedError for a module without a capture that a job cannot be compared with yet."""
    if awaits_partitioning(module):
        raise UnsupportedError(
            f"{module.name} is not partitioned yet: it is the program of all devices together, with its shardings, "
            "and a plan is for what one device runs. Dump it after partitioning "
            "(XLA_FLAGS=--xla_dump_hlo_pass_re=spmd-partitioning --xla_dump_large_constants with --xla_dump_to), or "
            "capture the script (lapstrake capture)"
        )


def known_in_worker(module: Module, *, control: Control) -> dict[str, str]:
    from engine.export.payload.lapstrake_runtime.lapstrake_capture import known_by  # with jax

    control.step(0.0, f"printing {module.name}")
    return known_by(xla.print_proto(module.proto.SerializeToString(), metadata=False))


def captured_file(path: str, *, scheduled: bool = False) -> str:
    """The module's file in a folder that lapstrake_capture wrote of a function (or of a script, where that is one
    function), or the tuned one in a bundle, be it a folder or a .zip; any other path as it is."""
    if _is_bundle(path) and not scheduled:
        return str(Path(path) / "tuned.hlo")
    file = Path(path) / ("scheduled.hlo" if scheduled else "partitioned.hlo")
    if not os.path.isfile(Path(path) / "capture.json"):  # a name that is too long is no capture, not an error here
        functions = captured_functions(path)
        return captured_file(functions[0], scheduled=scheduled) if len(functions) == 1 else path
    if scheduled and not file.is_file():
        raise InputError(f"{path}: scheduled.hlo was expected, but the capture's compiler had no hook to see it with")
    return str(file)


def captured_functions(path: str) -> Sequence[str]:
    """Folders of the functions of a script that lapstrake_capture wrote to this folder."""
    try:
        return sorted(str(file.parent) for file in Path(path).glob("*/capture.json"))
    except OSError:
        return ()


def check_one_function(path: str) -> None:
    """Raises InputError for the folder of a script with several captured functions."""
    functions = captured_functions(path)
    if len(functions) > 1 and not os.path.isfile(Path(path) / "capture.json"):
        raise InputError(f"{path}: a captured function was expected, found a folder of several: {', '.join(functions)}")


def _missing(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it has no '{error.args[0]}'"
    return "it is no JSON" if isinstance(error, ValueError) else "it is no JSON object"


def read_capture(path: str) -> Capture | None:
    """The ``capture.json`` beside a captured module; None where there is none. Raises InputError for a damaged one,
    UnsupportedError for a program that no plan can run, and what `check_source` does."""
    check_source(path)
    file = Path(path).parent / "capture.json"
    if path == "-" or not file.is_file():
        return None
    try:
        content = json.loads(file.read_text("utf-8"))
        as_scheduled = content["scheduled"] if Path(path).name == "scheduled.hlo" else None
        known = (content["fingerprint"], content["signature"], content["versions"])
        capture = Capture(*known, as_scheduled, content.get("settings", {}))  # older captures do not say
        obstacle = content["obstacle"]
    except OSError as error:
        raise InputError(f"{file}: what lapstrake capture wrote was expected, but {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file}: what lapstrake capture wrote was expected, but {_missing(error)}: capture the script again"
        ) from None
    if obstacle:
        raise UnsupportedError(f"{path}: no plan of {content['name']} can run in its job: {obstacle}")
    return capture
