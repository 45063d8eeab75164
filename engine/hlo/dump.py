"""Folders that XLA wrote with ``--xla_dump_to``: which modules they hold, at which stages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePath

_DUMPED = re.compile(
    r"module_(?P<number>\d+)\.(?P<rest>.+?)(?P<suffix>\.hlo|\.hlo\.pb|\.pb|\.txt|\.mlir|\.mlirbc)(\.gz)?$"
)
_NOT_HLO = re.compile(
    r"buffer-assignment|memory-usage-report|live-range|debug_options|config\.pb|execution_options|schedule|"
    r"thread_pool|thunk|\.ir-|autotune"
)
_STAGE = re.compile(
    r"^(?P<name>.+?)\.(?P<stage>before_optimizations|(?:\w+_)?after_optimizations\w*|\d{4}\..+|"
    r"after_codegen.*|(?:\w+_)?gpu_after_.*|sm_[\w.]+after_optimizations.*)$"
)
_SUFFIX = re.compile(r"(\.hlo|\.pb|\.txt|\.mlir|\.mlirbc|\.gz)+$")
_LOOKED_AT = 1 << 16
"""Bytes at the beginning of a text that are looked at for a module."""
_PLAIN = (".hlo", ".pb", ".mlir", ".mlirbc", ".txt", ".gz")


@dataclass(frozen=True, slots=True)
class Dumped:
    """One file of a dump that holds a module."""

    path: Path
    number: int
    """XLA's number of the module within the process that dumped it."""
    name: str
    """Name of the module, ``jit_step``."""
    stage: str
    """``before_optimizations``, ``0012.pipeline.after_pass``, …; empty where the name does not tell."""

    @property
    def title(self) -> str:
        """The stage in words: ``after spmd-partitioning`` of ``0012.pipeline.after_spmd-partitioning.before_dce``."""
        found = re.search(r"after_(?P<pass>[\w-]+)", self.stage)
        if re.match(r"\d{4}\.", self.stage) and found is not None:
            return f"after {found['pass']}"
        return self.stage.replace("_", " ")

    @property
    def is_partitioned(self) -> bool:
        """Whether the stage is right after the SPMD partitioner: what decomposition works on."""
        return "after_spmd-partitioning" in self.stage


def modules_in(folder: Path) -> tuple[Dumped, ...]:
    """Files with modules, by number and stage; a stage that is there as text and as proto is listed once, as text.

    Raises OSError when the folder cannot be listed.
    """
    found: dict[tuple[int, str, str], Dumped] = {}
    for path in sorted(folder.iterdir()):
        dumped = _dumped(path)
        if dumped is None:
            continue
        key = (dumped.number, dumped.name, dumped.stage)
        if key not in found or path.name.endswith((".txt", ".hlo", ".txt.gz", ".hlo.gz")):
            found[key] = dumped
    return tuple(sorted(found.values(), key=lambda d: (d.number, d.name, d.stage)))


def module_title(path: str) -> str:
    """A file's name without what says that it is a module: ``step``; for one of a dump, ``jit_step after spmd``."""
    name = PurePath(path).name
    bare = _SUFFIX.sub("", name)
    dumped = _dumped(Path(name))
    if dumped is None or not dumped.stage:
        return bare or name or path
    return f"{dumped.name} {dumped.title}"


def file_title(path: str) -> str:
    """A file's name; that of a captured step with its folder, since all of them have the same names."""
    place = PurePath(path)
    captured = place.name in ("partitioned.hlo", "scheduled.hlo") and place.parent.name
    return f"{place.parent.name}/{place.name}" if captured else place.name


def describe_folder(folder: Path) -> str:
    """Why a folder cannot be opened as a file, with what is in it that can."""
    expected = f"{folder}: expected a file, found a folder"
    try:
        modules = modules_in(folder)
        others = sorted(p.name for p in folder.iterdir() if p.is_file() and _may_hold_one(p))
    except OSError as error:
        return f"{expected} that cannot be listed ({error.strerror or error})"
    if not modules:
        listed = _listed([str(folder / name) for name in others])
        return f"{expected}{f'; give one of its files:{listed}' if others else ' without modules in it'}"
    best = (
        [d for d in modules if d.is_partitioned] or [d for d in modules if "after_optimizations" in d.stage] or modules
    )
    listed = _listed([str(d.path) for d in best])
    rest = len(modules) - len(best)
    more = f"\n  ({rest} more at other stages)" if rest else ""
    count = len({d.number for d in modules})
    return f"{expected}, an XLA dump of {count} module{'s' * (count > 1)}; give one of its files:{listed}{more}"


def _dumped(path: Path) -> Dumped | None:
    found = _DUMPED.match(path.name)
    if found is None or _NOT_HLO.search(path.name):
        return None
    staged = _STAGE.match(found["rest"])
    name, stage = (found["rest"], "") if staged is None else (staged["name"], staged["stage"])
    return Dumped(path, int(found["number"]), name, stage)


def _may_hold_one(path: Path) -> bool:
    """Whether a file that is not called as XLA calls its own may be a module: by its name, or its first lines."""
    if path.suffix not in _PLAIN or _NOT_HLO.search(path.name):
        return False
    if path.suffix != ".txt":
        return True
    with path.open("rb") as file:
        return re.search(rb"^\s*(HloModule|module\b.*\{|ENTRY\b)", file.read(_LOOKED_AT), re.MULTILINE) is not None


def _listed(names: list[str], most: int = 12) -> str:
    shown = "".join(f"\n  {name}" for name in names[:most])
    return shown + (f"\n  (and {len(names) - most} more)" if len(names) > most else "")
