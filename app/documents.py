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
from engine.ir.module import Module
from engine.session import edits, files
from engine.session.evaluation import default_plans
from engine.session.plan import MachineSpec, Plan
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
        self._facts: dict[str, Facts] = {}
        self._hashes: Mapping[str, str] = {}
        self._machine = MachineSpec()
        self.modules: dict[str, Module] = {}
        """Those that were read, by their keys in the session."""
        self.session_path = ""
        """Where the session was saved to or opened from; empty for none."""

    def module_of(self, entry: Entry | None) -> Module | None:
        """What an entry's plan is applied to; None while that is not read."""
        return self.modules.get(entry.module) if entry is not None else None

    def open(self, path: str) -> None:
        """Open a module under the plans that are shown first, or a saved session and the modules it is about."""
        if not files.is_session(path):
            if path != self._store.state.path:
                self.session_path = ""
            self._begin(edits.begun(path), {})
            return
        try:
            saved = files.load(path)
        except InputError as error:
            self._store.reset(replace(edits.begun(path), reading=False, problem=told(error)))
            return
        self.session_path = path
        self._begin(saved.session, saved.hashes)

    def save(self, path: str) -> str:
        """Save the session. Returns what went wrong, empty when nothing did."""
        try:
            files.save(self._store.state, path)
        except OSError as error:
            return f"{path}: {error.strerror or error}"
        self.session_path = path
        self._settings.remember(str(Path(path).absolute()))
        return ""

    def reload(self) -> None:
        """Read the open files again; plans, marks and what is active stay."""
        session = self._store.state
        if session.path:
            self._begin(fresh(session, [m.key for m in session.modules]), {})

    def _begin(self, session: Session, hashes: Mapping[str, str]) -> None:
        """Take `session` and read its modules."""
        left, self._reading = self._reading, {}
        for job in left.values():
            self._jobs.cancel(job)
        entry = self._store.state.active_entry
        self._machine = MachineSpec(entry.machine.chip) if entry is not None else MachineSpec()
        self._hashes = hashes
        self._facts.clear()
        self.modules.clear()
        self.read.emit()
        self._watch(session)
        self._store.reset(replace(session, reading=True, problem=""))
        for module in session.modules:
            self._start(module)

    def _start(self, module: ModuleFile) -> None:
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

        self._reading[module.key] = job
        try:
            job = read_file(self._jobs, module.path, done, failed)
        except LapstrakeError as error:
            failed(error)
            return
        self._reading[module.key] = job

    def _arrived(self, file: ModuleFile, module: Module, facts: Facts) -> None:
        self.modules[file.key] = module
        self._facts[file.key] = facts
        self._remember(self.session_path or file.path)
        session = edits.informed(self._store.state, file.key, facts)
        if not session.entries:
            made = edits.opened(file.path, first_plans(module), self._machine)
            session = replace(made, modules=session.modules)
        self._store.reset(replace(session, reading=False, problem=""))
        self.read.emit()
        if self._hashes.get(file.key, "") not in ("", facts.sha256):
            self.noticed.emit(f"{Path(file.path).name} is not what it was when the session was saved")

    def _failed(self, file: ModuleFile, error: LapstrakeError) -> None:
        if isinstance(error, Cancelled):
            self._store.reset(Session())
            return
        self._store.settle(reading=False, problem=told(error))

    def _remember(self, path: str) -> None:
        if path != "-":
            self._settings.remember(str(Path(path).absolute()))

    def _watch(self, session: Session) -> None:
        if self._watcher.files():
            self._watcher.removePaths(self._watcher.files())
        for module in session.modules:
            if Path(module.path).is_file():
                self._watcher.addPath(module.path)

    def _file_changed(self, path: str) -> None:
        # Editors replace files: the new one must be watched again.
        if Path(path).is_file() and path not in self._watcher.files():
            self._watcher.addPath(path)
        if any(module.path == path for module in self._store.state.modules):
            self.changed_on_disk.emit(path)


def first_plans(module: Module) -> Iterable[tuple[str, Plan]]:
    """What is shown first: the module as loaded, and decomposed under the schedulers that overlap."""
    for name, plan in default_plans(module, None):
        if plan.scheduler != "memory":
            yield name, plan


def fresh(session: Session, modules: Collection[str]) -> Session:
    """`session` without what is known of some of its modules: that is computed anew."""
    for key in modules:
        session = edits.informed(session, key, None)
    entries = (replace(e, variant=None, error="") if e.module in modules else e for e in session.entries)
    return replace(session, entries=tuple(entries))
