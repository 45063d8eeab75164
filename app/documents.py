"""What is open: modules read by jobs, watched for changes, remembered as recent; sessions saved and opened again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.jobs import Jobs
from app.reading import read_file, told
from app.replacing import Answer, Replacement
from app.settings import Settings
from app.unsaved import Unsaved, Written
from app.watching import FileWatch
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
    """One sentence for the user about what was opened, of interest for a moment."""
    refused = Signal(str, str, object)
    """Something was not opened, or is not what it was: what that is, a sentence, and ways out (text, what to do)."""
    mended = Signal(str)
    """What was refused, or had changed on disk, is read now."""
    replaced = Signal()
    """Another session is open."""
    kept = Signal()
    """Whether there is unsaved work may be another answer now."""
    recovered = Signal()
    """What was left behind is open again."""
    read = Signal()
    """`modules` are others now."""

    def __init__(self, store: Store[Session], jobs: Jobs, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._jobs = jobs
        self._settings = settings
        self._watch = FileWatch(self)
        self._watch.changed.connect(self._file_changed)
        self._reading: dict[str, int] = {}
        self._adding: dict[str, ModuleFile] = {}
        self._last_key = 0
        self._changed: set[str] = set()
        self._recovered = False
        self._unsaved = Unsaved(store)
        self._coming: Replacement | None = None
        self._rereading: dict[str, Replacement] = {}
        self._as_read: dict[str, Written] = {}
        """Path → the file as it was when it was last read again: what is told of it later may be known by then."""
        self.may_go: Callable[[], bool] = lambda: True
        """Asks the user about what was changed while its replacement was read."""
        self._facts: dict[str, Facts] = {}
        self._hashes: Mapping[str, str] = {}
        self._machine = MachineSpec()
        self.modules: dict[str, Module] = {}
        """Those that were read, by their keys in the session."""
        self._stop = store.subscribe(self._session_changed)
        self._written = Written("")
        self.session_path = ""
        """Where the session was saved to or opened from; empty for none."""

    def module_of(self, entry: Entry | None) -> Module | None:
        """What an entry's plan is applied to; None while that is not read."""
        return self.modules.get(entry.module) if entry is not None else None

    @property
    def replacing(self) -> bool:
        """Whether something is being read that will take the place of what is open."""
        coming = (*self._rereading.values(), *((self._coming,) if self._coming is not None else ()))
        return any(replacement.going_on for replacement in coming)

    def open(self, *paths: str, machine: MachineSpec | None = None, recovered: bool = False) -> None:
        """Open modules under the plans that are shown first, or a saved session and the modules it is about.

        Modules given beside a session are added to it. Without `machine` the chip stays that of what was open. What is
        open stays until a module is read, and for good where none can be. A session that is `recovered` counts as one
        that was never saved.
        """
        entry = self._store.state.active_entry
        machine = machine or (MachineSpec(entry.machine.chip) if entry is not None else MachineSpec())
        sessions = [path for path in paths if files.is_session(path)]
        modules = [path for path in paths if path not in sessions]
        self._give_up()
        if not sessions:
            found = edits.begun(*dict.fromkeys(map(captured_file, modules)))
            self._replace(_Opening(found, machine, paths=paths))
            return
        try:
            saved = files.load(sessions[0])
        except InputError as error:
            if self._is_open:
                self._refuse(Path(sessions[0]).name, told(error), paths)
            else:
                self._store.reset(replace(edits.begun(sessions[0]), reading=False, problem=told(error)))
            return
        self._replace(_Opening(saved.session, machine, saved.hashes, sessions[0], tuple(modules), paths, recovered))
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
        self.open(path, recovered=True)

    @property
    def unsaved(self) -> bool:
        """Whether there is work that is in no file of the user's."""
        return self._unsaved.found(arranged=bool(self.session_path))

    def _keep(self) -> None:
        """What is open is what is in the user's files."""
        self._unsaved.keep()
        self.kept.emit()

    @property
    def overtaken(self) -> bool:
        """Whether another window or program has written the session's file since it was opened or saved here."""
        return self._written.is_other

    def save(self, path: str) -> str:
        """Save the session. Returns what went wrong, empty when nothing did."""
        try:
            files.save(self._store.state, path)
        except OSError as error:
            return f"{path}: {error.strerror or error}"
        self.session_path = path
        self._written = Written(path)
        self._keep()
        self._settings.remember(str(Path(path).absolute()))
        return ""

    def reload(self) -> None:
        """Read again what changed on disk and what could not be read, else the active module; plans and marks stay."""
        session = self._store.state
        wanted = [m for m in session.modules if m.key in self._changed or m.key not in self.modules]
        active = session.active_module
        wanted = wanted or ([active] if active is not None else [])
        for module in [module for module in wanted if module.key in self.modules]:
            self._read_again(module)
        missing = [module for module in wanted if module.key not in self.modules]
        for module in missing:
            self._forget(module.key)
        if missing:
            session = fresh(session, [module.key for module in missing])
            self._store.reset(replace(session, reading=not self.modules, problem=""))
            self.read.emit()
            self._start(*missing)

    def retry(self, entry: Entry | None) -> bool:
        """Read the module of an entry if it could not be read. Returns whether that was so."""
        module = self._store.state.module(entry.module) if entry is not None else None
        if module is None or module.key in self.modules or module.key in self._reading:
            return False
        self.reload()
        return True

    @property
    def _is_open(self) -> bool:
        """Whether something is shown that would be missed."""
        session = self._store.state
        return bool(session.entries) and not session.problem and not session.reading

    def _give_up(self) -> None:
        """Read nothing more of what was to take the place of what is open."""
        for replacement in (self._coming, *self._rereading.values()):
            if replacement is not None:
                replacement.give_up()
        self._coming = None
        self._rereading.clear()

    def _replace(self, wanted: _Opening) -> None:
        """Take what is `wanted`: at once where nothing is open, else when the first of its modules is read."""
        if not self._is_open:
            self._begin(wanted)
            self._start(*wanted.session.modules)
            self.add(*wanted.beside)
            return
        position = self._store.position

        def ready() -> None:
            if self._store.position != position and self.unsaved:
                QTimer.singleShot(0, self, ask)
            else:
                take()

        def ask() -> None:
            if self._coming is coming and self.may_go():
                take()

        def take() -> None:
            self._coming = None
            self._begin(wanted)
            self._reading.update(coming.reading)
            answers = [(file, coming.answers[file.key]) for file in coming.modules if file.key in coming.answers]
            # Those that were read first: else it would look as if none had been.
            for file, answer in sorted(answers, key=lambda item: isinstance(item[1], LapstrakeError)):
                self._answered(file, answer)
            self.add(*wanted.beside)

        def refused() -> None:
            self._coming = None
            name = Path(wanted.path).name or coming.names()
            none = "None of its modules could be read. " if wanted.path else ""
            if coming.cancelled:
                self.noticed.emit(f"{name} was not opened: cancelled")
            else:
                self._refuse(name, none + coming.said(), wanted.paths)

        def late(file: ModuleFile, job: int, answer: Answer) -> None:
            if self._reading.get(file.key) == job:
                del self._reading[file.key]
                self._answered(file, answer)

        coming = Replacement(self._jobs, wanted.session.modules, ready=ready, refused=refused, late=late)
        self._coming = coming
        coming.start()

    def _refuse(self, name: str, why: str, paths: Collection[str]) -> None:
        said = f"{name} was not opened, and what is open stays. {why}"
        again = (("Try again", lambda: self.open(*paths) if self.may_go() else None),)
        self.refused.emit("opening", said, again)

    def _begin(self, wanted: _Opening) -> None:
        """Take a session whose modules are still to come."""
        session = wanted.session
        self._machine, self._hashes, self._recovered = wanted.machine, wanted.hashes, wanted.recovered
        self.session_path = "" if wanted.recovered else wanted.path
        self._written = Written(self.session_path)
        self._adding.clear()
        self._unsaved.forget()
        for key in {*self.modules, *self._reading}:
            self._forget(key)
        self._as_read.clear()
        self._last_key = max((int(m.key) for m in session.modules if m.key.isdecimal()), default=0)
        self._store.reset(replace(session, reading=True, problem=""))
        self.read.emit()
        self.replaced.emit()

    def _read_again(self, file: ModuleFile) -> None:
        """Read a module that is there already; it stays what it was where that fails."""

        def ready() -> None:
            del self._rereading[file.key]
            answer = again.answers[file.key]
            if self._store.state.module(file.key) is None or isinstance(answer, LapstrakeError):
                return
            clean = not self.unsaved
            self._forget(file.key)
            self.modules[file.key], self._facts[file.key] = answer
            self._store.reset(replace(fresh(self._store.state, [file.key]), problem=""))
            self._take_in()
            self.read.emit()
            if clean:
                self._keep()
            self.mended.emit(file.path)

        def refused() -> None:
            del self._rereading[file.key]
            name = Path(file.path).name
            if again.cancelled:
                self.noticed.emit(f"{name} was not read again: cancelled")
            else:
                said = f"{name} was not read again, and what is shown is as it was read before. {again.said()}"
                self.refused.emit(file.path, said, (("Read again", self.reload),))

        if file.key in self._rereading:
            self._rereading.pop(file.key).give_up()
        self._as_read[file.path] = Written(file.path)
        again = self._rereading[file.key] = Replacement(self._jobs, (file,), ready=ready, refused=refused)
        again.start()

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
                self._answered(module, (read, facts))

        def failed(error: LapstrakeError) -> None:
            if current():
                del self._reading[module.key]
                self._answered(module, error)

        try:
            job = read_file(self._jobs, module.path, done, failed)
        except LapstrakeError as error:
            failed(error)
            return
        self._reading[module.key] = job

    def _answered(self, file: ModuleFile, answer: Answer) -> None:
        if isinstance(answer, LapstrakeError):
            self._failed(file, answer)
        else:
            self._arrived(file, *answer)

    def _arrived(self, file: ModuleFile, module: Module, facts: Facts) -> None:
        self.modules[file.key] = module
        self._facts[file.key] = facts
        self._remember(file.path if file.key in self._adding else self.session_path or file.path)
        self._take_in()
        self.read.emit()
        if self._hashes.get(file.key, "") not in ("", facts.sha256):
            said = f"{Path(file.path).name} is not what it was when the session was saved: its plans are applied to it "
            self.refused.emit(file.path, f"{said}as it is now, and names in them may mean other instructions.", ())

    def _failed(self, file: ModuleFile, error: LapstrakeError) -> None:
        session = self._store.state
        name = Path(file.path).name
        asked = isinstance(error, Cancelled)
        if self._adding.pop(file.key, None) is not None:
            self._complain(file, f"{name} was not added", error)
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
            self._complain(file, f"{name} was not opened", error)
        self._take_in()

    def _complain(self, file: ModuleFile, what: str, error: LapstrakeError) -> None:
        if isinstance(error, Cancelled):
            self.noticed.emit(f"{what}: cancelled")
        else:
            self.refused.emit(file.path, f"{what}: {told(error)}", (("Try again", lambda: self.add(file.path)),))

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
            if self._recovered:
                self.recovered.emit()
        elif session is not self._store.state:
            self._store.settle(modules=session.modules, entries=session.entries)
        if untouched and not self._recovered:
            self._keep()
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
        self._watch.watch(module.path for module in session.modules)
        # Undo brings back modules as they were then, which may be before they were read.
        late = [m.key for m in session.modules if m.facts is None and m.key in self._facts]
        for key in late:
            session = edits.informed(session, key, self._facts[key])
        if late:
            self._store.settle(modules=session.modules)

    def _file_changed(self, path: str) -> None:
        keys = [module.key for module in self._store.state.modules if module.path == path]
        known = self._as_read.get(path)
        if keys and (known is None or known.is_other):
            self._changed.update(keys)
            self.changed_on_disk.emit(path)


@dataclass(frozen=True)
class _Opening:
    """A session whose modules are to be read, and what is known of it besides."""

    session: Session
    machine: MachineSpec
    hashes: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    """Of the session's own file."""
    beside: tuple[str, ...] = ()
    """Modules to add to it."""
    paths: tuple[str, ...] = ()
    """All that was asked for."""
    recovered: bool = False


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
