"""What the user works on, as one frozen value: modules, the variants made from them, what is active and selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import NamedTuple

from engine.chips.budget import Budget
from engine.hlo.dump import module_title
from engine.session.correspondence import Correspondence
from engine.session.folders import telling_folders
from engine.session.given import Recording
from engine.session.lanes import Lanes
from engine.session.plan import MachineSpec, Plan
from engine.session.variant import Variant

TRANSIENT = frozenset({"active", "selection", "reading", "problem", "matches"})
"""Fields of a Session that undo leaves alone: what is looked at, and what became known."""

FIRST = "1"
"""Key of the first module of a session."""


class Asked(NamedTuple):
    """What a result is for."""

    module: str
    """Key of the module in the session."""
    machine: MachineSpec
    plan: Plan


@dataclass(frozen=True, slots=True)
class Check:
    """What came of running a variant and the module as loaded on devices, number against number."""

    equal: bool
    text: str
    """In a sentence, with the worst error and its tolerance; why it could not be run where `failed`."""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A variant's place in the stack: what was asked for, and what came of it as far as it is known."""

    key: str
    """``A``, ``B``, …: as shown, and stable while the entry exists."""
    plan: Plan
    machine: MachineSpec = field(default_factory=MachineSpec)
    name: str = ""
    """Given by the user; empty where the plan describes itself."""
    variant: Variant | None = None
    """The last result, which may be of an earlier plan: see `stale`."""
    error: str = ""
    """Why the present plan has no result."""
    stopped: bool = False
    """Whether there is an `error` because the user cancelled what would have given the result."""
    collapsed: bool = False
    check: Check | None = None
    """Of `variant`; None where it was not run."""
    module: str = FIRST
    """Key of the module that the plan is applied to; stays while the entry exists."""
    recording: Recording | None = None
    """A file that its times come from: a compiler's schedule of a module of its own, or a profile of the module that
    `plan` makes. None where `plan` is simulated."""
    remark: str = ""
    """What was left out of the default plan that it had at first, and why; empty where the plan is as it was chosen."""

    @property
    def asked(self) -> Asked:
        return self.asking(self.plan)

    def asking(self, plan: Plan) -> Asked:
        """What another plan of the same module on the same machine would be asked for as."""
        return Asked(self.module, self.machine, plan)

    def wants(self, variant: Variant) -> bool:
        """Whether `variant` is what is asked for."""
        asked = self.plan, self.machine, self.recording
        return (variant.plan, variant.machine, variant.recording) == asked

    @property
    def stale(self) -> bool:
        """Whether `variant` belongs to another plan than the present one."""
        return self.variant is not None and not self.wants(self.variant)

    @property
    def of_this_machine(self) -> bool:
        """Whether `variant` is of the present machine and costs, be it of an earlier plan."""
        return self.variant is not None and self.variant.machine == self.machine

    def compares_with(self, other: Entry) -> bool:
        """Whether a difference of the times of both says anything: while one is still of an earlier machine or other
        costs, it would be a gain of the chip."""
        if self.variant is None or other.variant is None or not (self.of_this_machine and other.of_this_machine):
            return False
        return self.variant.compares_with(other.variant)

    @property
    def pending(self) -> bool:
        """Whether a result is still to come."""
        return not self.error and (self.variant is None or self.stale)

    @property
    def ending(self) -> str:
        """How it ended without a result, in a word; empty where it did not."""
        return ("cancelled" if self.stopped else "failed") if self.error else ""

    @property
    def budget(self) -> Budget:
        """What may be in flight, as far as it is known: the chip's limits are when there is a variant."""
        if self.variant is None:
            return self.plan.budget or Budget()
        return self.variant.program.machine.chip.budget(self.plan.budget)

    @property
    def title(self) -> str:
        if self.name:
            return self.name
        return self.variant.name if self.variant is not None and not self.stale else self.plan.scheduler


@dataclass(frozen=True, slots=True)
class Selection:
    """Instructions by id in the module of one entry (or, where passes replaced them, in the module as loaded).

    Other entries show what came from the same origins.
    """

    entry: str = ""
    instructions: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.instructions)

    def has(self, entry: str, instruction: int) -> bool:
        """Whether an instruction of that entry's module is selected: another entry's may have the same id."""
        return entry == self.entry and instruction in self.instructions


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment on the shared time axis that the user wants to find again."""

    time: int
    """Picoseconds."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is said about the module as loaded."""

    name: str
    instructions: int
    computations: int
    partitions: int
    scheduled: bool
    sha256: str
    whole: bool = False
    """Whether it is still to be partitioned: the collectives come with that."""
    notes: tuple[str, ...] = ()
    plans: tuple[tuple[str, Plan], ...] = ()
    """Names and plans of what is shown of it first, as loaded before all."""
    best_passes: str = ""
    """The pipeline that is tried where nobody names one."""
    unbundled: str = ""
    """Why no bundle can be made of it; empty where one can."""
    undumped: str = ""
    """Why no job can be compared with it, unless a capture lies beside it; empty where one can."""
    names: Mapping[int, str] = field(default_factory=dict, repr=False)
    """Name of every instruction by id: variants no longer hold those that passes replaced."""


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A module of the session: the file that it is read from, and what is known of it."""

    key: str
    """``1``, ``2``, …: stable while the module is in the session, and in one window not used again for another one."""
    path: str
    facts: Facts | None = None
    """None until it was read."""
    name: str = ""
    """Given by the user; empty where the file's name will do."""

    @property
    def sha256(self) -> str:
        """Of the file's content; empty until it was read."""
        return self.facts.sha256 if self.facts is not None else ""


@dataclass(frozen=True)
class Session:
    """One or more modules and everything asked of them."""

    modules: tuple[ModuleFile, ...] = ()
    """Empty while nothing is open."""
    entries: tuple[Entry, ...] = ()
    active: str = ""
    """Key of the entry that the plan line and the inspector act on."""
    base: str = ""
    """Key of the entry that the others are compared with."""
    selection: Selection = field(default_factory=Selection)
    marks: tuple[Mark, ...] = ()
    lanes: Lanes = field(default_factory=Lanes)
    reading: bool = False
    """Whether the session's modules are being read right now."""
    problem: str = ""
    """Why none of them could be read."""
    matches: Mapping[tuple[str, str], Correspondence] = field(default_factory=dict)
    """Hashes of two modules' files → which instructions of the one stand for which of the other, as far as it is known;
    both orders are there."""

    def entry(self, key: str) -> Entry | None:
        return next((e for e in self.entries if e.key == key), None)

    def module(self, key: str) -> ModuleFile | None:
        return next((m for m in self.modules if m.key == key), None)

    @property
    def active_entry(self) -> Entry | None:
        return self.entry(self.active)

    @property
    def base_entry(self) -> Entry | None:
        return self.entry(self.base)

    @property
    def active_variant(self) -> Variant | None:
        entry = self.active_entry
        return entry.variant if entry is not None else None

    def beside(self, key: str) -> tuple[Entry, ...]:
        """The entry of that key, and after it the others of its module; all where there is no such entry."""
        entry = self.entry(key)
        if entry is None:
            return self.entries
        return (entry, *(e for e in self.entries if e is not entry and e.module == entry.module))

    def alike(self, entry: Entry) -> str:
        """Key of the first entry without a result for the reason why `entry` has none; empty where that is `entry`."""
        first = next((e for e in self.entries if e.error == entry.error), entry)
        return first.key if entry.error and first.key != entry.key else ""

    def label(self, key: str) -> str:
        """What a module is called where variants of several are shown: short, and different for each."""
        return labels(self.modules).get(key, "")

    def title_of(self, entry: Entry) -> str:
        """What a variant is called, with its module's name where there are several."""
        return f"{self.label(entry.module)} · {entry.title}" if len(self.modules) > 1 else entry.title

    @property
    def active_module(self) -> ModuleFile | None:
        """The module of the active entry; the first one while there are no entries."""
        entry = self.active_entry
        return self.module(entry.module) if entry is not None else next(iter(self.modules), None)

    @property
    def path(self) -> str:
        """Path of the active module; empty while nothing is open."""
        module = self.active_module
        return module.path if module is not None else ""

    @property
    def facts(self) -> Facts | None:
        """What is said about the active module; None until it was read."""
        module = self.active_module
        return module.facts if module is not None else None


def labels(modules: Sequence[ModuleFile]) -> Mapping[str, str]:
    """Key → what a module is called: its given name, or its file's, with as much as needed to tell it apart: of the
    folder, or the ending."""
    titles = {m.key: m.name or module_title(m.path) for m in modules}
    found = {}
    for module in modules:
        title, file = titles[module.key], PurePath(module.path).name
        alike = [m.path for m in modules if titles[m.key] == title and m.path != module.path]
        namesakes = [path for path in alike if PurePath(path).name == file]
        if len(namesakes) < len(alike):
            title = f"{title} ({file})" if module.name else file
        found[module.key] = f"{telling_folders(module.path, namesakes)}{title}"
    return found
