"""What is open: modules read by jobs, watched for changes, remembered as recent; sessions saved and opened again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.chips import beside, same_chip
from app.jobs import Jobs
from app.keys import Keys
from app.module_reads import ModuleReads
from app.reading import told
from app.replacing import Answer, Replacement
from app.rereading import Rereading
from app.session_file import SessionFile, left_at
from app.settings import Settings
from app.succession import Succession, Wanted
from app.watching import FileWatch
from engine.control import Cancelled
from engine.errors import InputError, LapstrakeError
from engine.export.captured import captured_file
from engine.ir.module import Module
from engine.session import edits, files
from engine.session.arrivals import informed, plans_beside, taken_in, unread, unreadable
from engine.session.plan import MachineSpec
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
    resumed = Signal()
    """A session is shown again as it was left."""
    read = Signal()
    """`modules` are others now."""

    def __init__(self, store: Store[Session], jobs: Jobs, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._jobs = jobs
        self._settings = settings
        self._watch = FileWatch(self)
        self._watch.changed.connect(self._file_changed)
        self._reads = ModuleReads(jobs, self._answered)
        self._again = Rereading(jobs, arrived=self._arrived_again, refused=self._refused_again)
        self._adding: dict[str, ModuleFile] = {}
        self._keys = Keys()
        self._changed: set[str] = set()
        """Keys of modules whose files changed on disk."""
        self._recovered = False
        self._file = SessionFile(store)
        self.may_go: Callable[[], bool] = lambda: True
        """Asks the user about unsaved work, when what is to take its place was read."""
        self._succession = Succession(
            jobs,
            self,
            unsaved=lambda: self.unsaved,
            may_go=self._may_be_left,
            take=self._take_over,
            refuse=self._not_read,
            late=self._reads.answer,
        )
        self._hashes: Mapping[str, str] = {}
        self._machine = MachineSpec()
        self._stop = store.subscribe(self._session_changed)

    @property
    def modules(self) -> Mapping[str, Module]:
        """Those that were read, by their keys in the session."""
        return self._reads.modules

    @property
    def session_path(self) -> str:
        """Where the session was saved to or opened from; empty for none."""
        return self._file.path

    def module_of(self, entry: Entry | None) -> Module | None:
        """What an entry's plan is applied to; None while that is not read."""
        return self.modules.get(entry.module) if entry is not None else None

    @property
    def replacing(self) -> bool:
        """Whether something is being read, or asked about, that will take the place of what is open."""
        return self._again.going_on or self._succession.going_on

    def open(self, *paths: str, machine: MachineSpec | None = None, recovered: bool = False) -> None:
        """Open modules under the plans that are shown first, or a saved session and the modules it is about.

        Modules given beside a session are added to it. Without `machine` the chip stays that of what was open. What is
        open stays until a module is read, and for good where none can be. A session that is `recovered` counts as one
        that was never saved.
        """
        note = ""
        if machine is None:
            machine, note = same_chip(self._store.state.active_entry)
        sessions = [path for path in paths if files.is_session(path)]
        modules = [path for path in paths if path not in sessions]
        self._give_up()
        if not sessions:
            found = edits.begun(*dict.fromkeys(map(captured_file, modules)))
            self._replace(self._keys.given(Wanted(found, machine, paths=paths, note=note)))
            return
        try:
            saved = files.load(sessions[0])
        except InputError as error:
            if self._is_open:
                self._refuse(Path(sessions[0]).name, told(error), paths)
            else:
                self._store.reset(replace(edits.begun(sessions[0]), reading=False, problem=told(error)))
            return
        wanted = Wanted(saved.session, machine, saved.hashes, sessions[0], tuple(modules), paths, recovered)
        self._replace(self._keys.given(replace(wanted, home=saved.home)))
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
                file = ModuleFile(self._keys.new(), path)
                self._adding[file.key] = file
                self._reads.start(file)

    def recover(self, path: str) -> None:
        """Open a session as one that was never saved."""
        self.open(path, recovered=True)

    @property
    def unsaved(self) -> bool:
        """Whether there is work that is in no file of the user's."""
        return self._file.is_behind

    @property
    def overtaken(self) -> bool:
        """Whether another window or program has written the session's file since it was opened or saved here."""
        return self._file.is_overtaken

    def save(self, path: str) -> str:
        """Save the session. Returns what went wrong, empty when nothing did."""
        try:
            self._file.save(path)
        except OSError as error:
            return f"{path}: {error.strerror or error}"
        self.kept.emit()
        self._settings.remember(str(Path(path).absolute()))
        return ""

    def reload(self) -> None:
        """Read again what changed on disk and what could not be read, else the active module; plans and marks stay."""
        session = self._store.state
        wanted = [m for m in session.modules if m.key in self._changed or m.key not in self.modules]
        active = session.active_module
        wanted = wanted or ([active] if active is not None else [])
        for module in [module for module in wanted if module.key in self.modules]:
            self._again.start(module)
        missing = [module for module in wanted if module.key not in self.modules]
        for module in missing:
            self._forget(module.key)
        if missing:
            session = unread(session, [module.key for module in missing])
            self._store.reset(replace(session, reading=not self.modules, problem=""))
            self.read.emit()
            self._reads.start(*missing)

    def retry(self, entry: Entry | None) -> bool:
        """Read the module of an entry if it could not be read. Returns whether that was so."""
        module = self._store.state.module(entry.module) if entry is not None else None
        if module is None or module.key in self._reads:
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
        self._succession.give_up()
        self._again.give_up()

    def _replace(self, wanted: Wanted) -> None:
        """Take what is `wanted`: at once where nothing is open, else when the first of its modules is read."""
        if self._is_open:
            self._succession.start(wanted)
        elif self._may_be_left():
            self._begin(wanted)
            self._reads.start(*wanted.session.modules)
            self.add(*wanted.beside)

    def _may_be_left(self) -> bool:
        """Whether what is open may go; the user is asked where there is unsaved work."""
        return not self.unsaved or self.may_go()

    def _take_over(self, wanted: Wanted, read: Replacement) -> None:
        self._begin(wanted)
        self._reads.take_over(read.reading)
        answers = [(file, read.answers[file.key]) for file in read.modules if file.key in read.answers]
        # Those that were read first: else it would look as if none had been.
        for file, answer in sorted(answers, key=lambda item: isinstance(item[1], LapstrakeError)):
            self._answered(file, answer)
        self.add(*wanted.beside)

    def _not_read(self, wanted: Wanted, read: Replacement) -> None:
        name = Path(wanted.path).name or read.names()
        if read.cancelled:
            self.noticed.emit(f"{name} was not opened: cancelled")
        else:
            none = "None of its modules could be read. " if wanted.path else ""
            self._refuse(name, none + read.said(), wanted.paths)

    def _refuse(self, name: str, why: str, paths: Collection[str]) -> None:
        said = f"{name} was not opened, and what is open stays. {why}"
        again = (("Try again", lambda: self.open(*paths)),)
        self.refused.emit("opening", said, again)

    def _begin(self, wanted: Wanted) -> None:
        """Take a session whose modules are still to come."""
        session = wanted.session
        self._machine, self._hashes, self._recovered = wanted.machine, wanted.hashes, wanted.recovered
        if wanted.recovered:
            self._file.begin(wanted.home, left_at(wanted.path))
        else:
            self._file.begin(wanted.path)
        self._adding.clear()
        for key in self._reads.known():
            self._forget(key)
        self._again.forget()
        self._store.reset(replace(session, reading=True, problem=""))
        self.read.emit()
        self.replaced.emit()
        if wanted.note:
            self.refused.emit("chip", wanted.note, ())

    def _arrived_again(self, file: ModuleFile, module: Module, facts: Facts) -> None:
        if self._store.state.module(file.key) is None:
            return
        clean = not self.unsaved
        self._forget(file.key)
        self._reads.keep(file.key, module, facts)
        self._store.reset(replace(unread(self._store.state, [file.key]), problem=""))
        self._take_in()
        self.read.emit()
        if clean:
            self._keep()
        self.mended.emit(file.path)

    def _refused_again(self, file: ModuleFile, again: Replacement) -> None:
        name = Path(file.path).name
        if again.cancelled:
            self.noticed.emit(f"{name} was not read again: cancelled")
        else:
            said = f"{name} was not read again, and what is shown is as it was read before. {again.said()}"
            self.refused.emit(file.path, said, (("Read again", self.reload),))

    def _forget(self, key: str) -> None:
        self._reads.forget(key)
        self._changed.discard(key)

    def _keep(self) -> None:
        """What is open is what is in the user's files."""
        self._file.keep()
        self.kept.emit()

    def _answered(self, file: ModuleFile, answer: Answer) -> None:
        if isinstance(answer, LapstrakeError):
            self._failed(file, answer)
        else:
            self._arrived(file, *answer)

    def _arrived(self, file: ModuleFile, module: Module, facts: Facts) -> None:
        self._reads.keep(file.key, module, facts)
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
        elif all(m.key not in self._reads for m in session.modules):
            for key in [*self._adding]:
                del self._adding[key]
                self._forget(key)
            if asked:
                self._store.reset(Session())
            else:
                self._store.settle(reading=False, problem=told(error))
        else:
            held = any(entry.module == file.key for entry in session.entries)
            said = f"{name} was not read: {'cancelled.' if asked else told(error)}\nFile → Read again tries once more."
            left = unreadable(session, file.key, said)
            self._store.settle(modules=left.modules, entries=left.entries)
            if not held:
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
        session = taken_in(session, self._reads.facts, self._machine)
        if session.reading and session.entries and self.modules:
            self._store.reset(replace(session, reading=False, problem=""))
            if self._recovered or self.session_path:
                self.resumed.emit()
            if self._recovered:
                self.recovered.emit()
        elif session is not self._store.state:
            self._store.settle(modules=session.modules, entries=session.entries)
        if untouched and not self._recovered:
            self._keep()
        if not self._store.state.reading:
            for key in [key for key in self._adding if key in self.modules]:
                session, facts = self._store.state, self._reads.facts[key]
                file = replace(self._adding.pop(key), facts=facts)
                made = edits.module_added(session, file, plans_beside(session, facts))
                self._store.become(f"Add {made.label(key)}", made)
                said = beside(made, made.label(key))
                if said:
                    self.refused.emit("chip", said, ())

    def _remember(self, path: str) -> None:
        if path != "-":
            self._settings.remember(str(Path(path).absolute()))

    def _session_changed(self, session: Session, changed: frozenset[str]) -> None:
        if "modules" not in changed:
            return
        alive = {module.key for state in self._store.states() for module in state.modules} | self._adding.keys()
        gone = [key for key in self._reads.known() if key not in alive]
        for key in gone:
            self._forget(key)
        if gone:
            self.read.emit()
        self._watch.watch(module.path for module in session.modules)
        # Undo brings back modules as they were then, which may be before they were read.
        self._store.settle(modules=informed(session, self._reads.facts).modules)

    def _file_changed(self, path: str) -> None:
        keys = [module.key for module in self._store.state.modules if module.path == path]
        if keys and not self._again.knows(path):
            self._changed.update(keys)
            self.changed_on_disk.emit(path)
