"""What is open: modules read by jobs, watched for changes, remembered as recent; sessions saved and opened again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, Signal

from app.jobs import Jobs
from app.reading import read_file, told
from app.settings import Settings
from engine.control import Cancelled
from engine.errors import InputError, LapstrakeError
from engine.export.captured import captured_file
from engine.ir.module import Module
from engine.session import edits, files
from engine.session.plan import AS_LOADED, MachineSpec, Plan
from engine.session.session import Entry, Facts, ModuleFile, Session
from engine.session.store import Store


class Documents(QObject):
    """The modules that the session speaks of, and how they came to be there."""

    changed_on_disk = Signal(str)
    noticed = Signal(str)
    """One sentence for the user about what was opened."""
    read = Signal()
    """`modules` are others now."""

    def __init__(self, store: Store[Session], jobs: Jobs, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._jobs = jobs
        self._settings = settings
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._file_changed)
        self._reading: dict[str, int] = {}
        self._adding: dict[str, ModuleFile] = {}
        self._last_key = 0
        self._changed: set[str] = set()
        self._recovered = False
        self._kept: tuple[object, ...] = ()
        self._facts: dict[str, Facts] = {}
        self._hashes: Mapping[str, str] = {}
        self._machine = MachineSpec()
        self.modules: dict[str, Module] = {}
        """Those that were read, by their keys in the session."""
        self._stop = store.subscribe(self._session_changed)
        self.session_path = ""
        """Where the session was saved to or opened from; empty for none."""

    def module_of(self, entry: Entry | None) -> Module | None:
        """What an entry's plan is applied to; None while that is not read."""
        return self.modules.get(entry.module) if entry is not None else None

    def open(self, *paths: str, machine: MachineSpec | None = None) -> None:
        """Open modules under the plans that are shown first, or a saved session and the modules it is about.

        Modules given beside a session are added to it. Without `machine` the chip stays that of what was open.
        """
        entry = self._store.state.active_entry
        self._machine = machine or (MachineSpec(entry.machine.chip) if entry is not None else MachineSpec())
        sessions = [path for path in paths if files.is_session(path)]
        modules = [path for path in paths if path not in sessions]
        if not sessions:
            self.session_path = ""
            self._begin(edits.begun(*dict.fromkeys(map(captured_file, modules))), {})
            return
        try:
            saved = files.load(sessions[0])
        except InputError as error:
            self._store.reset(replace(edits.begun(sessions[0]), reading=False, problem=told(error)))
            return
        self.session_path = sessions[0]
        self._begin(saved.session, saved.hashes)
        self.add(*modules)
        if len(sessions) > 1:
            self.noticed.emit(f"One session can be open at a time: {Path(sessions[1]).name} was not opened")

    def add(self, *paths: str) -> None:
        """Read more modules and put them beside those that are open, each with variants of its own."""
        if not self._store.state.modules:
            if paths:
                self.open(*paths)
            return
        for path in dict.fromkeys(map(captured_file, paths)):
            name = Path(path).name
            if files.is_session(path):
                self.noticed.emit(f"{name} is a session: it can be opened, not added")
            elif path in {module.path for module in (*self._store.state.modules, *self._adding.values())}:
                self.noticed.emit(f"{name} is open already")
            else:
                self._last_key += 1
                self._adding[str(self._last_key)] = ModuleFile(str(self._last_key), path)
                self._start(self._adding[str(self._last_key)])

    def recover(self, path: str) -> None:
        """Open a session as one that was never saved."""
        self.open(path)
        self.session_path = ""
        self._recovered = True

    @property
    def unsaved(self) -> bool:
        """Whether there is work that is in no file of the user's."""
        session = self._store.state
        return bool(session.entries) and not session.reading and _work(session) != self._kept

    def save(self, path: str) -> str:
        """Save the session. Returns what went wrong, empty when nothing did."""
        try:
            files.save(self._store.state, path)
        except OSError as error:
            return f"{path}: {error.strerror or error}"
        self.session_path = path
        self._kept = _work(self._store.state)
        self._settings.remember(str(Path(path).absolute()))
        return ""

    def reload(self) -> None:
        """Read again what changed on disk and what could not be read, else the active module; plans and marks stay."""
        session = self._store.state
        wanted = [m for m in session.modules if m.key in self._changed or m.key not in self.modules]
        active = session.active_module
        wanted = wanted or ([active] if active is not None else [])
        for module in wanted:
            self._forget(module.key)
        if wanted:
            session = fresh(session, [module.key for module in wanted])
            self._store.reset(replace(session, reading=not self.modules, problem=""))
            self.read.emit()
            self._start(*wanted)

    def retry(self, entry: Entry | None) -> bool:
        """Read the module of an entry if it could not be read. Returns whether that was so."""
        module = self._store.state.module(entry.module) if entry is not None else None
        if module is None or module.key in self.modules or module.key in self._reading:
            return False
        self.reload()
        return True

    def _begin(self, session: Session, hashes: Mapping[str, str]) -> None:
        """Take `session` and read its modules."""
        self._hashes = hashes
        self._adding.clear()
        self._recovered = False
        self._kept = ()
        for key in {*self.modules, *self._reading}:
            self._forget(key)
        self._last_key = max((int(m.key) for m in session.modules if m.key.isdecimal()), default=0)
        self._store.reset(replace(session, reading=True, problem=""))
        self.read.emit()
        self._start(*session.modules)

    def _forget(self, key: str) -> None:
        self.modules.pop(key, None)
        self._facts.pop(key, None)
        self._changed.discard(key)
        self._jobs.cancel(self._reading.pop(key, 0))

    def _start(self, *modules: ModuleFile) -> None:
        self._reading.update((module.key, 0) for module in modules)
        for module in modules:
            self._read(module)

    def _read(self, module: ModuleFile) -> None:
        job = 0

        def current() -> bool:
            return self._reading.get(module.key) == job

        def done(read: Module, facts: Facts) -> None:
            if current():
                del self._reading[module.key]
                self._arrived(module, read, facts)

        def failed(error: LapstrakeError) -> None:
            if current():
                del self._reading[module.key]
                self._failed(module, error)

        try:
            job = read_file(self._jobs, module.path, done, failed)
        except LapstrakeError as error:
            failed(error)
            return
        self._reading[module.key] = job

    def _arrived(self, file: ModuleFile, module: Module, facts: Facts) -> None:
        self.modules[file.key] = module
        self._facts[file.key] = facts
        self._remember(file.path if file.key in self._adding else self.session_path or file.path)
        self._take_in()
        self.read.emit()
        if self._hashes.get(file.key, "") not in ("", facts.sha256):
            self.noticed.emit(f"{Path(file.path).name} is not what it was when the session was saved")

    def _failed(self, file: ModuleFile, error: LapstrakeError) -> None:
        session = self._store.state
        name = Path(file.path).name
        asked = isinstance(error, Cancelled)
        if self._adding.pop(file.key, None) is not None:
            self.noticed.emit(f"{name} was not added: {'cancelled' if asked else error}")
        elif all(m.key not in self.modules and m.key not in self._reading for m in session.modules):
            for key in [*self._adding]:
                del self._adding[key]
                self._forget(key)
            if asked:
                self._store.reset(Session())
            else:
                self._store.settle(reading=False, problem=told(error))
        elif any(entry.module == file.key for entry in session.entries):
            said = f"{name} was not read: {'cancelled.' if asked else told(error)}\nFile → Read again tries once more."
            for entry in session.entries:
                if entry.module == file.key:
                    session = edits.failed(session, entry.key, said)
            self._store.settle(entries=session.entries)
        else:
            self._store.settle(modules=tuple(m for m in session.modules if m.key != file.key))
            self.noticed.emit(f"{name} was not opened: {'cancelled' if asked else error}")
        self._take_in()

    def _take_in(self) -> None:
        """Show what has arrived: in the session's order, and beside what it holds already."""
        session = self._store.state
        untouched = session.reading or not self.unsaved
        for file in session.modules:
            if file.key in self.modules and file.facts is None:
                session = edits.informed(session, file.key, self._facts[file.key])
        for file in session.modules:
            if any(entry.module == file.key for entry in session.entries):
                continue
            if file.key not in self.modules:
                break
            session = self._with_entries(session, file.key)
        if session.reading and session.entries and self.modules:
            self._store.reset(replace(session, reading=False, problem=""))
        elif session is not self._store.state:
            self._store.settle(modules=session.modules, entries=session.entries)
        if untouched and not self._recovered:
            self._kept = _work(self._store.state)
        if not self._store.state.reading:
            for key in [key for key in self._adding if key in self.modules]:
                file = replace(self._adding.pop(key), facts=self._facts[key])
                made = edits.module_added(self._store.state, file, plans_beside(self._store.state, self._facts[key]))
                self._store.become(f"Add {made.label(key)}", made)

    def _with_entries(self, session: Session, key: str) -> Session:
        file = session.module(key)
        assert file is not None
        if not session.entries:
            opened = edits.opened(file.path, self._facts[key].plans, self._machine)
            entries = tuple(replace(entry, module=key) for entry in opened.entries)
            return replace(session, entries=entries, active=opened.active, base=opened.base)
        bare = replace(session, modules=tuple(m for m in session.modules if m.key != key))
        made = edits.module_added(bare, file, plans_beside(session, self._facts[key]))
        return replace(made, modules=session.modules, active=session.active)

    def _remember(self, path: str) -> None:
        if path != "-":
            self._settings.remember(str(Path(path).absolute()))

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if "modules" not in changed:
            return
        alive = {module.key for state in self._store.states() for module in state.modules} | self._adding.keys()
        gone = [key for key in (*self.modules, *self._reading) if key not in alive]
        for key in gone:
            self._forget(key)
        if gone:
            self.read.emit()
        self._watch(session)
        # Undo brings back modules as they were then, which may be before they were read.
        late = [m.key for m in session.modules if m.facts is None and m.key in self._facts]
        for key in late:
            session = edits.informed(session, key, self._facts[key])
        if late:
            self._store.settle(modules=session.modules)

    def _watch(self, session: Session) -> None:
        wanted = {module.path for module in session.modules if Path(module.path).is_file()}
        watched = set(self._watcher.files())
        if watched - wanted:
            self._watcher.removePaths(list(watched - wanted))
        if wanted - watched:
            self._watcher.addPaths(list(wanted - watched))

    def _file_changed(self, path: str) -> None:
        # Editors replace files: the new one must be watched again.
        if Path(path).is_file() and path not in self._watcher.files():
            self._watcher.addPath(path)
        keys = [module.key for module in self._store.state.modules if module.path == path]
        if keys:
            self._changed.update(keys)
            self.changed_on_disk.emit(path)


def _work(session: Session) -> tuple[object, ...]:
    """What would be lost with a session."""
    modules = tuple((m.key, m.path, m.name) for m in session.modules)
    entries = tuple((e.asked, e.key, e.name, e.recording) for e in session.entries)
    return modules, entries, session.marks


def plans_beside(session: Session, facts: Facts) -> Iterable[tuple[str, Plan]]:
    """What is shown of a module that comes beside others: as loaded, and under the plan that is looked at."""
    yield facts.plans[0]
    entry = session.active_entry
    if entry is not None and entry.plan.scheduler != AS_LOADED.scheduler:
        yield "", entry.plan
    else:
        yield next((name, plan) for name, plan in facts.plans if plan.scheduler != AS_LOADED.scheduler)


def fresh(session: Session, modules: Collection[str]) -> Session:
    """`session` without what is known of some of its modules: that is computed anew."""
    for key in modules:
        session = edits.informed(session, key, None)
    entries = (replace(e, variant=None, error="") if e.module in modules else e for e in session.entries)
    return replace(session, entries=tuple(entries))
