"""Sessions as files: versioned JSON with the hashes of the modules they are about. Results are computed anew.

What came of each plan is kept as a few figures, so that a later version that computes something else is noticed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.chips.budget import Budget
from engine.errors import InputError, UsageError
from engine.hlo.zipped import archive_of
from engine.session.given import GivenFile, Recording, RecordingKind
from engine.session.lanes import Lanes
from engine.session.plan import MachineSpec, Plan
from engine.session.session import FIRST, Entry, Mark, ModuleFile, Session

SUFFIX = ".lapstrake"
VERSION = 2
_OLDER = 1
"""Without `modules`: about the one in `module`."""
_KEY = "lapstrake_session"
_LONE = re.compile("[\ud800-\udfff]")
"""Stands for a byte of a file's name that is not UTF-8 (PEP 383), and has no UTF-8 of its own."""
_LARGEST = 1 << 62
"""Of a number in a session: sums of two still fit into 64 bits."""


@dataclass(frozen=True)
class Saved:
    """What a session file holds."""

    session: Session
    """Without results and facts."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """Module key → SHA-256 of its file when the session was saved; empty where it was not known."""
    makespans: Mapping[str, int] = field(default_factory=dict)
    """Entry key → makespan in picoseconds when the session was saved."""
    home: str = ""
    """Of what was autosaved: the file that the user had saved the session to; empty for none."""


def is_session(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a session, by its name or its first bytes."""
    if os.fspath(path).endswith(SUFFIX):
        return True
    try:
        with open(path, "rb") as file:
            return f'"{_KEY}"'.encode() in file.read(64)
    except OSError:
        return False


def save(session: Session, path: str | os.PathLike[str], *, home: str = "") -> None:
    """Write a session in one step: a reader sees the old file or the new one. Raises OSError.

    `home`: where the session belongs, if that is another file of the user's.
    """
    place = Path(path)
    content = _session_json(session, place.parent)
    if home:
        content["home"] = str(Path(home).absolute())
    text = _LONE.sub(_escaped, json.dumps(content, indent=1, ensure_ascii=False)) + "\n"
    draft = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        with open(draft, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, place)
    finally:
        with suppress(OSError):
            draft.unlink()


def load(path: str | os.PathLike[str]) -> Saved:
    """Read a session. Raises InputError for anything that is none, or of a version that is not known."""
    shown = os.fspath(path)
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{shown}: {error.strerror or error}") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{shown}: a session (JSON) was expected: {error}") from error
    except RecursionError:
        raise InputError(f"{shown}: a session (JSON) was expected, but lists in lists without end came") from None
    version = content.get(_KEY) if isinstance(content, dict) else None
    if version not in (VERSION, _OLDER):
        came = "another file" if version is None else f"version {version!r}"
        raise InputError(f"{shown}: a session of version {VERSION} or older was expected, but {came} came")
    try:
        return _saved(content, Path(path).parent)
    except (KeyError, TypeError, ValueError, AttributeError, UsageError) as error:
        what = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else str(error)
        if isinstance(error, TypeError | AttributeError):
            what = "a value in it is of another kind than was expected"
        raise InputError(f"{shown}: this session cannot be used: {what}") from error


def _escaped(lone: re.Match[str]) -> str:
    return f"\\u{ord(lone[0]):04x}"


def _session_json(session: Session, folder: Path) -> dict[str, Any]:
    return {
        _KEY: VERSION,
        "modules": [_module_json(module, folder) for module in session.modules],
        "active": session.active,
        "base": session.base,
        "marks": [{"time": mark.time, "note": mark.note} for mark in session.marks],
        "lanes": {"order": session.lanes.order, "pinned": session.lanes.pinned, "hidden": session.lanes.hidden},
        "variants": [_entry_json(entry, folder) for entry in session.entries],
    }


def _module_json(module: ModuleFile, folder: Path) -> dict[str, Any]:
    path = Path(module.path)
    return {
        "key": module.key,
        "path": str(path.absolute()),
        "beside": _relative(path, folder),
        "sha256": module.sha256,
        "name": module.name,
    }


def _relative(module: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(module.absolute(), folder.absolute())).as_posix()
    except ValueError:  # another drive on Windows
        return ""


def _entry_json(entry: Entry, folder: Path) -> dict[str, Any]:
    plan, machine, recording = entry.plan, entry.machine, entry.recording
    fresh = entry.variant is not None and not entry.stale
    return {
        "key": entry.key,
        "module": entry.module,
        "name": entry.name,
        "collapsed": entry.collapsed,
        "passes": plan.passes,
        "scheduler": plan.scheduler,
        "budget": str(plan.budget) if plan.budget is not None else None,
        "memory_cap": plan.memory_cap,
        "chip": machine.chip,
        "topology": machine.topology,
        "mesh": machine.mesh,
        "costs": [_file_json(file, folder) for file in machine.costs],
        "recording": None
        if recording is None
        else {"kind": str(recording.kind), "target": recording.target, **_file_json(recording.file, folder)},
        "makespan": entry.variant.metrics.makespan if fresh and entry.variant is not None else None,
    }


def _file_json(file: GivenFile, folder: Path) -> dict[str, Any]:
    return {"path": file.path, "beside": _relative(Path(file.path), folder), "sha256": file.sha256}


def _saved(content: dict[str, Any], folder: Path) -> Saved:
    if content[_KEY] == _OLDER:
        content = _renewed(content)
    for name in content.keys() & {"variants", "modules", "marks"}:
        _check_list(content, name)
    entries = tuple(_entry(item, folder) for item in content["variants"])
    keys = [entry.key for entry in entries]
    if not entries or len(set(keys)) < len(keys):
        raise ValueError("variants with keys that differ were expected")
    modules = tuple(_module(item, folder) for item in content["modules"])
    names = {module.key for module in modules}
    if len(names) < len(modules) or not names.issuperset(entry.module for entry in entries):
        raise ValueError("modules with keys that differ were expected, and variants of these")
    marks = tuple(Mark(_number(mark, "time"), str(mark["note"])) for mark in content["marks"])
    session = Session(
        modules=modules,
        entries=entries,
        active=content["active"] if content["active"] in keys else keys[-1],
        base=content["base"] if content["base"] in keys else keys[0],
        marks=marks,
        lanes=_lanes(content.get("lanes", {})),
    )
    makespans = {item["key"]: _number(item, "makespan") for item in content["variants"] if item["makespan"] is not None}
    hashes = {item["key"]: str(item["sha256"]) for item in content["modules"]}
    return Saved(session, hashes, makespans, _text(content, "home") if "home" in content else "")


def _renewed(content: dict[str, Any]) -> dict[str, Any]:
    """What a session of the older version would be in the present one."""
    module = {"key": FIRST, "path": content["module"], "beside": content["module_beside"]}
    module.update(sha256=content["sha256"], name="")
    return {**content, "modules": [module], "variants": [{**item, "module": FIRST} for item in content["variants"]]}


def _module(item: dict[str, Any], folder: Path) -> ModuleFile:
    path = _found(_text(item, "path"), item["beside"], folder)
    return ModuleFile(_text(item, "key"), path, name=str(item.get("name", "")))


def _lanes(item: dict[str, Any]) -> Lanes:
    """Absent in sessions of before lanes could be arranged."""
    if not isinstance(item, dict):
        raise ValueError(f"an object was expected for 'lanes', but {_shown(item)} came")
    for name in item:
        if not isinstance(item[name], list):
            raise ValueError(f"a list was expected for '{name}', but {_shown(item[name])} came")
    order, pinned, hidden = (tuple(map(str, item.get(name, ()))) for name in ("order", "pinned", "hidden"))
    return Lanes(order, pinned, hidden)


def _found(path: object, beside: object, folder: Path) -> str:
    """Where a file is: beside the session as it was, since both may have moved; else where it was."""
    near = folder / str(beside) if beside else None
    return os.path.normpath(str(near) if near is not None and (archive_of(near) or near).is_file() else str(path))


def _entry(item: dict[str, Any], folder: Path) -> Entry:
    plan = Plan(
        passes=_text(item, "passes"),
        scheduler=_text(item, "scheduler"),
        budget=Budget.parse(_text(item, "budget")) if item["budget"] is not None else None,
        memory_cap=_number(item, "memory_cap", 1) if item["memory_cap"] is not None else None,
    )
    if "costs" in item:
        _check_list(item, "costs")
    costs = tuple(_file(file, folder) for file in item.get("costs", ()))
    machine = MachineSpec(_text(item, "chip"), _optional(item, "topology"), _optional(item, "mesh"), costs)
    return Entry(
        key=_text(item, "key"),
        plan=plan,
        machine=machine,
        name=_text(item, "name"),
        collapsed=bool(item["collapsed"]),
        module=_text(item, "module"),
        recording=_recording(item.get("recording"), folder),
    )


def _recording(item: dict[str, Any] | None, folder: Path) -> Recording | None:
    if item is None:
        return None
    if not isinstance(item, dict):
        raise ValueError(f"an object was expected for 'recording', but {_shown(item)} came")
    return Recording(RecordingKind(item["kind"]), _file(item, folder), _text(item, "target"))


def _file(item: dict[str, Any], folder: Path) -> GivenFile:
    return GivenFile(_found(_text(item, "path"), item["beside"], folder), _text(item, "sha256"))


def _check_list(item: dict[str, Any], key: str) -> None:
    """Raises ValueError where something else than a list of objects stands there."""
    found = item[key]
    if not isinstance(found, list):
        raise ValueError(f"a list was expected for '{key}', but {_shown(found)} came")
    for number, each in enumerate(found, 1):
        if not isinstance(each, dict):
            raise ValueError(f"an object was expected as number {number} of '{key}', but {_shown(each)} came")


def _shown(value: object) -> str:
    """A value of a damaged file, in a few letters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _text(item: dict[str, Any], key: str) -> str:
    found = item[key]
    if not isinstance(found, str) or "\0" in found:
        raise ValueError(f"text was expected for '{key}', but {found!r} came")
    return found


def _number(item: dict[str, Any], key: str, least: int = 0) -> int:
    """A whole number that fits where it is used: times in picoseconds, sizes in bytes."""
    found = item[key]
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= _LARGEST:
        raise ValueError(f"a whole number from {least} to 2^62 was expected for '{key}', but {str(found)[:40]} came")
    return found


def _optional(item: dict[str, Any], key: str) -> str | None:
    return None if item[key] is None else _text(item, key)
