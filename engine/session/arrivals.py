"""What becomes of a session as its modules are read, one after the other, or turn out to be unreadable."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from engine.session import edits
from engine.session.plan import AS_LOADED, MachineSpec, Plan
from engine.session.session import Facts, ModuleFile, Session


def informed(session: Session, facts: Mapping[str, Facts]) -> Session:
    """With what is known of the modules in `facts`, by key, said about those of which nothing is said yet."""
    for file in session.modules:
        if file.key in facts and file.facts is None:
            session = edits.informed(session, file.key, facts[file.key])
    return session


def taken_in(session: Session, facts: Mapping[str, Facts], machine: MachineSpec) -> Session:
    """With entries for the modules in `facts`, by key.

    Modules come in the session's order: one that was read waits for those before it. The first entries of a session are
    on `machine`, later ones on that of what is looked at.
    """
    session = informed(session, facts)
    for file in session.modules:
        if any(entry.module == file.key for entry in session.entries):
            continue
        if file.key not in facts:
            break
        session = _with_entries(session, file, facts[file.key], machine)
    return session


def _with_entries(session: Session, file: ModuleFile, facts: Facts, machine: MachineSpec) -> Session:
    if not session.entries:
        opened = edits.opened(file.path, facts.plans, machine)
        entries = tuple(replace(entry, module=file.key) for entry in opened.entries)
        return replace(session, entries=entries, active=opened.active, base=opened.base)
    bare = replace(session, modules=tuple(m for m in session.modules if m.key != file.key))
    made = edits.module_added(bare, file, plans_beside(session, facts))
    return replace(made, modules=session.modules, active=session.active)


def plans_beside(session: Session, facts: Facts) -> Iterable[tuple[str, Plan]]:
    """What is shown of a module that comes beside others: as loaded, and under the plan that is looked at."""
    yield facts.plans[0]
    entry = session.active_entry
    if entry is not None and entry.plan.scheduler != AS_LOADED.scheduler:
        yield "", entry.plan
    else:
        yield next((name, plan) for name, plan in facts.plans if plan.scheduler != AS_LOADED.scheduler)


def unread(session: Session, modules: Collection[str]) -> Session:
    """Without what is known of some of its modules, by key: that is computed anew."""
    for key in modules:
        session = edits.informed(session, key, None)
    entries = (replace(e, variant=None, error="") if e.module in modules else e for e in session.entries)
    return replace(session, entries=tuple(entries))


def unreadable(session: Session, module: str, said: str) -> Session:
    """With the same error for every entry of a module; without the module where it has none."""
    entries = [entry for entry in session.entries if entry.module == module]
    if not entries:
        return replace(session, modules=tuple(m for m in session.modules if m.key != module))
    for entry in entries:
        session = edits.failed(session, entry.key, said)
    return session
