"""Opening files: read by a job, watched for changes, remembered as recent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, Signal

from app.evaluations import Evaluations
from app.jobs import Jobs
from app.settings import Settings
from engine import worker
from engine.control import Cancelled
from engine.errors import InputError, LapstrakeError
from engine.hlo import complaints
from engine.hlo.decoding import HloText, decode
from engine.hlo.reading import read_bytes
from engine.ir.module import Module
from engine.session import edits, files
from engine.session.evaluation import default_plans
from engine.session.plan import MachineSpec, Plan
from engine.session.session import Facts, Session
from engine.session.store import Store

DEADLINE = 300.0
"""Seconds after which reading a file is given up."""


class Documents(QObject):
    """What is open, and how it came to be."""

    changed_on_disk = Signal(str)
    noticed = Signal(str)
    """One sentence for the user about what was opened."""
    read = Signal(object)
    """Another module is there, or (None) the one that was there is gone."""

    def __init__(
        self,
        store: Store[Session],
        jobs: Jobs,
        evaluations: Evaluations,
        settings: Settings,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._jobs = jobs
        self._evaluations = evaluations
        self._settings = settings
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._file_changed)
        self._job = 0
        self._saved: files.Saved | None = None
        self.module: Module | None = None
        self.session_path = ""
        """Where the session was saved to or opened from; empty for none."""

    def open(self, path: str) -> None:
        """Open a module under the plans that are shown first, or a saved session and the module it is about."""
        if not files.is_session(path):
            self._open_module(path, None)
            return
        try:
            saved = files.load(path)
        except InputError as error:
            self._store.reset(Session(path=path, problem=_told(error)))
            return
        self._saved = saved
        self.session_path = path
        self._open_module(saved.session.path, saved.session)

    def save(self, path: str) -> str:
        """Save the session. Returns what went wrong, empty when nothing did."""
        try:
            files.save(self._store.state, path)
        except OSError as error:
            return f"{path}: {error.strerror or error}"
        self.session_path = path
        self._settings.remember(str(Path(path).absolute()))
        return ""

    def _open_module(self, path: str, session: Session | None) -> None:
        self._jobs.cancel(self._job)
        saved, self._saved = self._saved, None
        if saved is None and path != self._store.state.path:
            self.session_path = ""
        self._evaluations.set_module(None)
        self.module = None
        self.read.emit(None)
        self._watch(path)
        machine = self._machine()
        self._store.reset(replace(session or Session(path=path), reading=True, problem=""))
        try:
            data = read_bytes(path)
        except LapstrakeError as error:
            self._failed(path)(error)
            return
        self._job = self._jobs.start(
            f"reading {Path(path).name}",
            "app.work:load",
            data,
            path,
            done=self._read(path, machine, saved),
            failed=self._failed(path, data),
            deadline=DEADLINE,
        )

    def reload(self) -> None:
        """Read the open file again; plans, marks and what is active stay."""
        session = self._store.state
        if session.path:
            self._open_module(session.path, fresh(session) if session.entries else None)

    def _machine(self) -> MachineSpec:
        entry = self._store.state.active_entry
        return MachineSpec(entry.machine.chip) if entry is not None else MachineSpec()

    def _read(
        self, path: str, machine: MachineSpec, saved: files.Saved | None
    ) -> Callable[[tuple[Module, Facts]], None]:
        def arrived(loaded: tuple[Module, Facts]) -> None:
            module, facts = loaded
            self.module = module
            opened = path if saved is None else self.session_path
            if opened not in ("", "-"):
                self._settings.remember(str(Path(opened).absolute()))
            session = self._store.state
            if not session.entries:
                session = edits.opened(path, first_plans(module), machine)
            self._store.reset(replace(session, reading=False, problem="", facts=facts))
            self._evaluations.set_module(module)
            self.read.emit(module)
            if saved is not None and module.source is not None and saved.sha256 not in ("", module.source.sha256):
                self.noticed.emit(f"{Path(path).name} is not what it was when the session was saved")

        return arrived

    def _failed(self, path: str, data: bytes = b"") -> Callable[[LapstrakeError], None]:
        def failed(error: LapstrakeError) -> None:
            if self._store.state.path != path:
                return
            if isinstance(error, Cancelled):
                self._store.reset(Session())
                return
            self._store.settle(reading=False, problem=_told(_explained(error, path, data)))

        return failed

    def _watch(self, path: str) -> None:
        if self._watcher.files():
            self._watcher.removePaths(self._watcher.files())
        if Path(path).is_file():
            self._watcher.addPath(path)

    def _file_changed(self, path: str) -> None:
        # Editors replace files: the new one must be watched again.
        if Path(path).is_file() and path not in self._watcher.files():
            self._watcher.addPath(path)
        if path == self._store.state.path:
            self.changed_on_disk.emit(path)


def first_plans(module: Module) -> Iterable[tuple[str, Plan]]:
    """What is shown first: the module as loaded, and decomposed under the schedulers that overlap."""
    for name, plan in default_plans(module, None):
        if plan.scheduler != "memory":
            yield name, plan


def fresh(session: Session) -> Session:
    """`session` without results: they are computed anew."""
    entries = tuple(replace(entry, variant=None, error="") for entry in session.entries)
    return replace(session, entries=entries, facts=None)


def _told(error: LapstrakeError) -> str:
    """An error in full, with the line it is about."""
    if isinstance(error, InputError) and error.place is not None:
        return f"{error.message}\n\n{error.place}"
    return str(error)


def _explained(error: LapstrakeError, path: str, data: bytes) -> LapstrakeError:
    """The death of the reading process as an error about the file."""
    if isinstance(error, worker.TimedOut):
        return InputError(f"{path}: XLA did not finish reading it within {DEADLINE:g} s")
    if not isinstance(error, worker.Died):
        return error
    content = decode(data, path)
    text = content.text if isinstance(content, HloText) else ""
    return complaints.explain_death(error.said or str(error), text, path)
