"""Files that are given to a session besides its module: costs that price its plans, and recordings that are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

from PySide6.QtWidgets import QFileDialog

from app.documents import Documents
from app.jobs import Jobs
from app.reading import told
from engine.control import Cancelled
from engine.errors import LapstrakeError
from engine.session import edits
from engine.session.given import GivenFile, Recording, RecordingKind
from engine.session.kinds import FileKind, kind_of
from engine.session.plan import AS_LOADED, Plan
from engine.session.session import Session
from engine.session.store import Store
from views.main_window import MainWindow
from views.notices import Way
from views.runs.rows import runnable

_COSTS = "Costs (*.csv *.toml *.pbtxt *.txt *.pb *.gz);;All files (*)"
_RECORDINGS = "Profiles and schedules (*.pb *.json *.txt *.gz);;All files (*)"
_KINDS = {FileKind.SCHEDULE: RecordingKind.SCHEDULE, FileKind.PROFILE: RecordingKind.PROFILE}


class Imports:
    """What File → Import costs, File → Open a recording, and files dropped on the window do."""

    def __init__(
        self,
        store: Store[Session],
        jobs: Jobs,
        window: MainWindow,
        say: Callable[[str], None],
        complain: Callable[[str, str, Sequence[Way]], None],
        folder: Path,
        documents: Documents,
    ) -> None:
        """`say` is for what is of interest for a moment, `complain` for what needs an action: what it is about, a
        text, and buttons. `folder`: where modules that profiles bring along are kept."""
        self._store = store
        self._jobs = jobs
        self._window = window
        self._say = say
        self._complain = complain
        self._kept = str(folder)
        self._documents = documents
        self._refused: set[str] = set()
        """Files with costs that were not imported."""
        self._alone = ""
        """A profile that is shown when the module in it was read."""
        documents.read.connect(self._show_alone)

    def take(self, path: str) -> bool:
        """Use a file that belongs to the open module; whether it is such a file and not one to be opened."""
        kind = kind_of(path)
        if kind == FileKind.MODULE:
            return False
        if not self._is_open() and kind == FileKind.PROFILE:
            self._open_alone(path)
        elif not self._is_open():
            what = "costs" if kind == FileKind.COSTS else "a compiler's schedule"
            said = f"{Path(path).name} holds {what}: open the module that it belongs to first, and then drop it again."
            self._complain(path, said, (("Open …", lambda: self._window.perform("open")),))
        elif kind == FileKind.COSTS:
            self.add_costs(path)
        else:
            self.add_recording(path, _KINDS[kind])
        return True

    def _open_alone(self, path: str) -> None:
        """Open the compiled module that a profile brings along, and the profile on it."""

        def found(file: GivenFile) -> None:
            if not self._is_open():
                self._alone = path
                self._documents.open(file.path)

        title = f"looking for the module in {Path(path).name}"
        self._jobs.start(title, "app.given_work:take_module", path, self._kept, done=found, failed=self._failure(path))

    def _show_alone(self) -> None:
        if self._alone and self._is_open():
            path, self._alone = self._alone, ""
            self.add_recording(path, RecordingKind.PROFILE)

    def ask_costs(self) -> None:
        title = "Import costs: ScheduleProto text, PGLE, xplane.pb, or a table of names and microseconds"
        paths, _ = QFileDialog.getOpenFileNames(self._window, title, self._folder(), _COSTS)
        for path in paths:
            self.add_costs(path)

    def ask_recording(self) -> None:
        title = "Show a recording: xplane.pb, a Perfetto trace, or ScheduleProto text"
        path, _ = QFileDialog.getOpenFileName(self._window, title, self._folder(), _RECORDINGS)
        if not path:
            return
        kind = kind_of(path)
        if kind in _KINDS:
            self.add_recording(path, _KINDS[kind])
        else:
            said = (
                f"{Path(path).name}: a profile (xplane.pb, or a Perfetto trace as JSON) or a compiler's schedule "
                "(ScheduleProto text) was expected. Modules come by File → Open, costs by File → Import costs."
            )
            self._complain(path, said, ())

    def add_costs(self, path: str) -> None:
        """Price every plan with a file's times, by a job, as one undoable step."""

        session = self._store.state
        module = self._documents.module_of(session.active_entry)
        if module is None:
            self._complain(path, f"{Path(path).name} was not imported: the module it is for is not read yet.", ())
            return

        before = frozenset(self._refused)

        def read(taken: tuple[GivenFile, tuple[str, ...]]) -> None:
            file, doubts = taken
            for mended in before:  # what was refused together with it stays in sight
                self._window.notices.dismiss(mended)
            self._refused -= before
            if self._documents.module_of(self._store.state.active_entry) is module:
                session = self._store.state
                self._store.become(
                    f"Import costs {file.name}", edits.with_costs(session, (*edits.costs_of(session), file))
                )
                self._say(f"plans are priced with {file.name}; “costs” in the plan line says what was used of it")
                if doubts:
                    self._complain(path, " ".join(doubts), (("Do not use them", lambda: self._drop_costs(file)),))

        failed = self._failure(path, lambda: self.add_costs(path))

        def refused(error: LapstrakeError) -> None:
            self._refused.add(path)
            failed(error)

        self._jobs.start(
            f"importing costs from {Path(path).name}",
            "app.given_work:take_costs",
            path,
            module,
            _names(session),
            done=read,
            failed=refused,
            about=module,
        )

    def _drop_costs(self, file: GivenFile) -> None:
        session = self._store.state
        kept = [other for other in edits.costs_of(session) if other != file]
        self._store.become(f"Remove costs {file.name}", edits.with_costs(session, kept))

    def add_recording(self, path: str, kind: RecordingKind) -> None:
        """Show a file's times as a variant, as one undoable step.

        A profile is of the module as loaded, or of that of the variant in the stack that has more of its names.
        """
        title = f"reading {Path(path).name}"
        session = self._store.state
        module = self._documents.module_of(session.active_entry)
        failed = self._failure(path, lambda: self.add_recording(path, kind))
        if kind == RecordingKind.SCHEDULE:

            def taken(file: GivenFile) -> None:
                self._show(Recording(kind, file), AS_LOADED, session)

            self._jobs.start(title, "app.given_work:take_schedule", path, done=taken, failed=failed, about=module)
            return
        variants = [e.variant for e in runnable(session) if e.variant is not None]

        def found(answer: tuple[GivenFile, int]) -> None:
            file, number = answer
            self._show(Recording(kind, file), variants[number].plan if variants else AS_LOADED, session)

        args = (path, _names(session))
        self._jobs.start(title, "app.given_work:take_profile", *args, done=found, failed=failed, about=module)

    def _show(self, recording: Recording, plan: Plan, asked_in: Session) -> None:
        """A recording as one more variant of the module that was active when it was asked for."""
        session = self._store.state
        entry = edits.planned_entry(asked_in)
        if entry is not None and session.module(entry.module) is not None:
            machine = (session.entry(entry.key) or entry).machine
            state = edits.recorded(session, plan, machine, recording, module=entry.module)
            self._store.become(f"Show {recording.file.name}", state)

    def use_as_costs(self) -> None:
        """Price every plan with the times of the recording that is active."""
        session = self._store.state
        entry = session.active_entry
        if entry is None or entry.recording is None:
            self._say(
                "Only a variant that shows a profile or a compiler's schedule has times that plans can be priced with"
            )
            return
        file = entry.recording.file
        self._store.become(
            f"Use the times of {entry.key} as costs", edits.with_costs(session, (*edits.costs_of(session), file))
        )

    def _failure(self, path: str, again: Callable[[], None] | None = None) -> Callable[[LapstrakeError], None]:
        """What is done where reading `path` failed; `again` tries once more, else a module can be opened."""

        def failed(error: LapstrakeError) -> None:
            if not isinstance(error, Cancelled):
                ways = (
                    ("Try again", again) if again is not None else ("Open …", lambda: self._window.perform("open")),
                )
                self._complain(path, told(error), ways)

        return failed

    def _is_open(self) -> bool:
        return bool(self._store.state.entries)

    def _folder(self) -> str:
        path = self._store.state.path
        return str(Path(path).parent) if path else ""


def _names(session: Session) -> tuple[frozenset[str], ...]:
    """Of each variant that shows a plan of the active module, what its instructions are called."""
    variants = [e.variant for e in runnable(session) if e.variant is not None]
    return tuple(frozenset(chain.from_iterable(g.names for g in v.program.graphs.values())) for v in variants)
