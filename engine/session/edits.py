"""Everything that can be done to a session, each a function from one Session to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine import options
from engine.passes.candidate import Candidate
from engine.session.given import GivenFile, Recording, RecordingKind
from engine.session.matching import carried
from engine.session.plan import MachineSpec, Plan
from engine.session.session import FIRST, Check, Entry, Facts, Mark, ModuleFile, Selection, Session
from engine.session.variant import Variant

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def begun(*paths: str) -> Session:
    """A session on the modules at `paths`, which are still to be read."""
    modules = tuple(ModuleFile(str(number), path) for number, path in enumerate(paths, int(FIRST)))
    return Session(modules=modules, reading=True)


def rekeyed(session: Session, keys: Mapping[str, str]) -> Session:
    """With other keys for its modules: old → new."""
    modules = tuple(replace(module, key=keys[module.key]) for module in session.modules)
    entries = tuple(replace(entry, module=keys[entry.module]) for entry in session.entries)
    return replace(session, modules=modules, entries=entries)


def opened(path: str, plans: Iterable[tuple[str, Plan]], machine: MachineSpec) -> Session:
    """A new session on `path`: one entry a plan, the first is the base and the second, if there is one, is active."""
    entries = tuple(Entry(key_of(n), plan, machine, name) for n, (name, plan) in enumerate(plans))
    active = entries[min(1, len(entries) - 1)].key
    return replace(begun(path), entries=entries, active=active, base=entries[0].key)


def informed(session: Session, module: str, facts: Facts | None) -> Session:
    """What is said about a module, now that it was read; None where it is to be read anew."""
    return replace(session, modules=tuple(replace(m, facts=facts) if m.key == module else m for m in session.modules))


def key_of(number: int) -> str:
    """``A`` … ``Z``, ``AA``, …"""
    text = _LETTERS[number % 26]
    return text if number < 26 else key_of(number // 26 - 1) + text


def activated(session: Session, key: str) -> Session:
    return replace(session, active=key) if session.entry(key) else session


def based(session: Session, key: str) -> Session:
    return replace(session, base=key) if session.entry(key) else session


def planned(session: Session, key: str, plan: Plan) -> Session:
    """Another plan for an entry; the old picture stays, stale, until the new one comes. A given name goes with it.

    What was recorded follows no other plan: such entries stay as they are.
    """
    entry = session.entry(key)
    if entry is None or entry.recording is not None:
        return session
    return _changed(session, key, plan=plan, name="", error="", remark="")


def pruned(session: Session, key: str, variant: Variant, remark: str = "") -> Session:
    """A better plan with its result for an entry whose plan nobody chose, and what the entry says of that. What is
    selected there stays selected."""
    entry = session.entry(key)
    found = _changed(
        session, key, plan=variant.plan, name=variant.name, variant=variant, error="", check=None, remark=remark
    )
    return _selected_still(found, entry, variant)


def on_machine(session: Session, machine: MachineSpec) -> Session:
    """Another machine for every entry: variants on different machines are not compared by accident.

    Entries of modules for another number of devices than the active one's take its chip alone. What was compiled for a
    target keeps that one, and each module its costs.
    """
    size = _devices(session, session.active_entry)

    def moved(entry: Entry) -> Entry:
        recording = entry.recording
        if recording is not None and recording.kind == RecordingKind.SCHEDULE and recording.target:
            return entry
        if _devices(session, entry) == size:
            own = replace(machine, costs=entry.machine.costs)
            # On the same machine what is known of it, and why it failed, still holds.
            return entry if own == entry.machine else replace(entry, machine=own, error="", remark="")
        if entry.machine.chip == machine.chip:
            return entry
        return replace(entry, machine=MachineSpec(machine.chip, costs=entry.machine.costs), error="", remark="")

    return replace(session, entries=tuple(moved(e) for e in session.entries))


def machine_for(session: Session, facts: Facts) -> MachineSpec:
    """The machine for variants of another module: the active one's, on as many devices, without its costs."""
    entry = session.active_entry
    if entry is None:
        return MachineSpec()
    if _devices(session, entry) != facts.partitions:
        return MachineSpec(entry.machine.chip)
    return replace(entry.machine, costs=())


def module_added(session: Session, module: ModuleFile, plans: Iterable[tuple[str, Plan]]) -> Session:
    """One more module with an entry a plan at the end of the stack, of which the last becomes active."""
    machine = machine_for(session, module.facts) if module.facts is not None else MachineSpec()
    made = replace(session, modules=(*session.modules, module))
    for name, plan in plans:
        entry = Entry(_free_key(made), plan, machine, name, module=module.key)
        made = replace(made, entries=(*made.entries, entry), active=entry.key)
    return made


def module_removed(session: Session, key: str) -> Session:
    """Without one module and its entries; the last one stays."""
    if len(session.modules) < 2 or session.module(key) is None:
        return session
    for entry in [e for e in session.entries if e.module == key]:
        session = removed(session, entry.key)
    return replace(session, modules=tuple(m for m in session.modules if m.key != key))


def module_named(session: Session, key: str, name: str) -> Session:
    """With a name for one module; an empty one leaves it its file's."""
    renamed = (replace(m, name=name.strip()) if m.key == key else m for m in session.modules)
    return replace(session, modules=tuple(renamed))


def with_costs(session: Session, costs: Iterable[GivenFile]) -> Session:
    """Other files of costs, in order, for all entries of the active module; of one that comes twice the last counts."""
    given = tuple(costs)
    kept = tuple(file for n, file in enumerate(given) if file not in given[n + 1 :])
    return replace(
        session,
        entries=tuple(
            replace(e, machine=replace(e.machine, costs=kept), error="", remark="") if _priced(session, e) else e
            for e in session.entries
        ),
    )


def costs_of(session: Session) -> tuple[GivenFile, ...]:
    """The files of costs that plans of the active module are priced with."""
    return next((e.machine.costs for e in session.entries if _priced(session, e)), ())


def _priced(session: Session, entry: Entry) -> bool:
    """Whether an entry is of the active module and has no costs of a compiler's own."""
    active = session.active_entry
    if active is None or entry.module != active.module:
        return False
    return entry.recording is None or entry.recording.kind != RecordingKind.SCHEDULE


def added(session: Session, plan: Plan, name: str = "") -> Session:
    """One more entry at the end, of the active entry's module and machine; it becomes the active one."""
    like = planned_entry(session) or Entry("", plan)
    made = Entry(_free_key(session), plan, like.machine, name, module=like.module)
    return replace(session, entries=(*session.entries, made), active=made.key)


def planned_entry(session: Session) -> Entry | None:
    """The active entry; where that shows a recording, the first of its module that shows a plan."""
    active = session.active_entry
    if active is None or active.recording is None:
        return active
    return next((e for e in session.entries if e.recording is None and e.module == active.module), active)


def _free_key(session: Session) -> str:
    taken = {e.key for e in session.entries}
    return next(k for k in map(key_of, range(len(taken) + 1)) if k not in taken)


def recorded(
    session: Session, plan: Plan, machine: MachineSpec, recording: Recording, name: str = "", *, module: str = ""
) -> Session:
    """One more entry at the end, of what was recorded: a run of the module that `plan` makes of `module` (its key;
    without it, of the active one), or a compiler's schedule of it. Nothing where that module has gone.

    It becomes the active one. A recording that is there already, of the same plan, is made active instead.
    """
    module = module or (session.active_entry.module if session.active_entry is not None else FIRST)
    if session.modules and session.module(module) is None:
        return session
    same = (e for e in session.entries if (e.recording, e.plan, e.module) == (recording, plan, module))
    made = next(same, None) or Entry(_free_key(session), plan, machine, name, module=module, recording=recording)
    kept = tuple(e for e in session.entries if e.key != made.key)
    entries = session.entries if len(kept) < len(session.entries) else (*kept, made)
    return replace(session, entries=entries, active=made.key)


def removed(session: Session, key: str) -> Session:
    """Without one entry; the last one stays. A module goes with its last entry."""
    left = tuple(e for e in session.entries if e.key != key)
    if not left or len(left) == len(session.entries):
        return session
    keys = [e.key for e in left]
    gone = {e.module for e in session.entries} - {e.module for e in left}
    return replace(
        session,
        modules=tuple(m for m in session.modules if m.key not in gone),
        entries=left,
        active=session.active if session.active in keys else keys[-1],
        base=session.base if session.base in keys else keys[0],
        selection=session.selection if session.selection.entry in keys else Selection(),
    )


def sound(before: Session, session: Session) -> Session:
    """With nothing active or selected that is not there: undo brings and takes entries, and leaves the eye alone.

    What was selected in the result that `before` shows is selected, by where it came from, in the one that came back.
    """
    keys = [e.key for e in session.entries]
    selection = session.selection if session.selection.entry in ("", *keys) else Selection()
    old, new = (state.entry(selection.entry) for state in (before, session))
    if old is not None and new is not None and old.variant is not None and new.variant is not None:
        selection = replace(selection, instructions=carried(old.variant, new.variant, selection.instructions))
    active = session.active if session.active in keys or not keys else keys[-1]
    return replace(session, active=active, selection=selection)


def moved(session: Session, key: str, by: int) -> Session:
    """An entry further up (negative) or down in the stack."""
    entries = list(session.entries)
    at = next((n for n, e in enumerate(entries) if e.key == key), None)
    if at is None:
        return session
    entries.insert(max(0, min(len(entries) - 1, at + by)), entries.pop(at))
    return replace(session, entries=tuple(entries))


def renamed(session: Session, key: str, name: str) -> Session:
    return _changed(session, key, name=name.strip())


def folded(session: Session, key: str) -> Session:
    """Collapse an entry to its header, or open it again."""
    entry = session.entry(key)
    return session if entry is None else _changed(session, key, collapsed=not entry.collapsed)


def arrived(session: Session, key: str, variant: Variant) -> Session:
    """A result, unless the entry asks for something else by now."""
    entry = session.entry(key)
    if entry is None or not entry.wants(variant):
        return session
    return _selected_still(_changed(session, key, variant=variant, error="", check=None), entry, variant)


def _selected_still(session: Session, before: Entry | None, variant: Variant) -> Session:
    """With what was selected in the result of `before` selected in `variant`, which has taken its place."""
    if before is None or before.variant is None or session.selection.entry != before.key:
        return session
    kept = carried(before.variant, variant, session.selection.instructions)
    return replace(session, selection=Selection(before.key, kept))


def checked(session: Session, key: str, variant: Variant, check: Check) -> Session:
    """What came of running a variant, unless the entry shows another one by now."""
    entry = session.entry(key)
    return session if entry is None or entry.variant is not variant else _changed(session, key, check=check)


def failed(session: Session, key: str, error: str, *, stopped: bool = False) -> Session:
    """With the reason why an entry has no result; `stopped` where that is that the user cancelled it."""
    return _changed(session, key, error=error, stopped=stopped)


def selected(session: Session, entry: str, instructions: Iterable[int], *, add: bool = False) -> Session:
    """Select instructions of one entry's module; with `add`, what was selected already is taken out again."""
    chosen = tuple(dict.fromkeys(instructions))
    if add and session.selection.entry == entry:
        had = session.selection.instructions
        chosen = tuple(i for i in had if i not in chosen) + tuple(i for i in chosen if i not in had)
    return replace(session, selection=Selection(entry, chosen) if chosen else Selection())


def marked(session: Session, time: int, note: str = "") -> Session:
    """A mark at `time`; a mark that is there already takes the note, and goes when marked again without one."""
    others = tuple(m for m in session.marks if m.time != time)
    if len(others) < len(session.marks) and not note:
        return replace(session, marks=others)
    return replace(session, marks=tuple(sorted((*others, Mark(time, note)), key=lambda m: m.time)))


def with_options(plan: Plan, name: str, values: Mapping[str, str | None]) -> Plan:
    """`plan` with options of its pass `name` set, or taken back to their defaults (None).

    A pass that is missing is put in where it belongs: ``flatten`` first, then ``decompose``, ``async-permute`` after
    it, ``fuse`` last.
    """
    parts = {part: dict(given) for part, given in options.split(plan.passes)}
    given = parts.setdefault(name, {})
    for key, value in values.items():
        given.pop(key, None)
        if value is not None:
            given[key] = value
    return replace(plan, passes=_joined(parts))


def without_pass(plan: Plan, name: str) -> Plan:
    parts = {part: dict(given) for part, given in options.split(plan.passes) if part != name}
    return replace(plan, passes=_joined(parts))


def options_of(plan: Plan, name: str) -> Mapping[str, str] | None:
    """What is given to pass `name`, None where the plan does not have it."""
    return next((given for part, given in options.split(plan.passes) if part == name), None)


def overridden(plan: Plan, collectives: Iterable[str], verdict: str | None) -> Plan:
    """`plan` with collectives forced (``force``), forbidden (``forbid``), or left to the gate (None)."""
    given = options_of(plan, "decompose") or {}
    names = tuple(collectives)
    values: dict[str, str | None] = {}
    for option in ("force", "forbid"):
        items = [i for i in given.get(option, "").split(";") if i and i not in names]
        if option == verdict:
            items.extend(names)
        values[option] = ";".join(items) or None
    return with_options(plan, "decompose", values)


def released(plan: Plan, collectives: Iterable[str], candidates: Iterable[Candidate]) -> Plan:
    """`plan` with collectives decomposed, where the gate says so, although they do not pay in the simulator
    (``losing``); the others of their rows, which `candidates` tell, stay as they are."""
    names, rows = frozenset(collectives), tuple(candidates)
    kept: list[str] = []
    for item in filter(None, (options_of(plan, "decompose") or {}).get("losing", "").split(";")):
        members = [c.id for c in rows if item in (c.id, c.row)]
        kept += [m for m in members if m not in names] if names.intersection(members) else [item]
    return with_options(plan, "decompose", {"losing": ";".join(dict.fromkeys(kept)) or None})


_RANK = {"flatten": 0, "decompose": 1, "async-permute": 2, "fuse": 3}


def _joined(parts: Mapping[str, Mapping[str, str]]) -> str:
    order = sorted(parts, key=lambda name: _RANK.get(name, 2))
    return ",".join(
        f"{name}{{{','.join(f'{key}={value}' for key, value in parts[name].items())}}}" if parts[name] else name
        for name in order
    )


def _devices(session: Session, entry: Entry | None) -> int:
    """How many devices the module of an entry is for; 0 where that is not known."""
    module = session.module(entry.module) if entry is not None else None
    return module.facts.partitions if module is not None and module.facts is not None else 0


def _changed(session: Session, key: str, **values: object) -> Session:
    entries = tuple(
        replace(e, **values) if e.key == key else e  # type: ignore[arg-type] # names and types are the callers'
        for e in session.entries
    )
    return replace(session, entries=entries)
