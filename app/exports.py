"""The Export tab's jobs: files of the active variant, the search for a plan, and its bundle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from app import outcomes
from app.documents import Documents
from app.exporting import Begun, Found
from app.job_facts import known_of, targets_for
from app.jobs import Jobs
from app.listeners import Listeners
from engine.errors import LapstrakeError
from engine.execute.targets import Target
from engine.export.bundle_folder import check_place
from engine.export.contents import FORMATS
from engine.export.writing import check_apart, check_writable
from engine.ir.module import Module
from engine.quantities import bytes_text
from engine.session.judging import Judgement, searches_itself
from engine.session.plan import MachineSpec, Plan
from engine.session.session import Entry, Session
from engine.session.store import Store
from engine.session.tuning import Trial
from views.export.port import Known, Outcome, Progress, Stage, Wish, Writing

_BUNDLE = "app.exporting:write_bundle_of"


class Exports(QObject):
    """Implements `views.export.port.Exporter`."""

    said = Signal(str)
    """A sentence for the line at the bottom."""

    def __init__(self, store: Store[Session], jobs: Jobs, documents: Documents, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._watchers = Listeners()
        self._store = store
        self._jobs = jobs
        self._documents = documents
        self._job = 0
        self._module: Module | None = None
        self._spec = MachineSpec()
        self._found: Found | None = None
        self._by_cycles = False
        """Whether the trials have a compiler's costs, which a bundle does not mix with the model's."""
        self._dirty = False
        self._knowing: tuple[Module | None, Known] = (None, Known())
        self.progress: Progress = Progress()
        self.writing: Writing = Writing()
        jobs.changed.connect(self._follow)
        documents.read.connect(self._forget)

    def watch(self, listener: Callable[[], None]) -> Callable[[], None]:
        """See `views.export.port.Exporter`."""
        return self._watchers.add(listener)

    @property
    def known(self) -> Known:
        """What the active module's file says of its job."""
        session = self._store.state
        module = self._documents.module_of(session.active_entry)
        if module is not self._knowing[0]:
            file = session.active_module
            facts = file.facts if file is not None else None
            self._knowing = (module, known_of(module, facts) if module is not None and facts is not None else Known())
        return self._knowing[1]

    @property
    def targets(self) -> tuple[str, ...]:
        """Targets of the active variant's chip whose compilers are installed."""
        entry = self._store.state.active_entry
        variant = entry.variant if entry is not None else None
        return targets_for(variant.program.machine.chip.name, str(variant.program.machine.topology)) if variant else ()

    def copy(self, text: str) -> None:
        if text:
            QGuiApplication.clipboard().setText(text)
            self.said.emit(f"copied: {text}")

    def suggested(self, suffix: str) -> str:
        session = self._store.state
        path = Path(session.path or "module")
        stem = path.parent.name if path.name in ("partitioned.hlo", "scheduled.hlo") else path.name.partition(".")[0]
        return str(path.parent / f"{stem}{suffix}")

    # A file

    def write(self, to: str, path: str) -> None:
        entry = self._store.state.active_entry
        module = self._documents.module_of(entry)
        if entry is None or entry.variant is None or module is None or self.writing.running:
            return
        try:
            check_apart(path, self._sources())
            check_writable(path)
        except LapstrakeError as error:
            self._wrote(to, outcomes.not_written(error))
            return
        title = f"{FORMATS[to].title} of {entry.key}"
        self.writing = Writing(to, running=True)

        def done(made: tuple[int, tuple[str, ...]]) -> None:
            size, warnings = made
            self._wrote(to, Outcome(good=True, said=f"{title}: {bytes_text(size)} in {path}", warnings=warnings))

        self._jobs.start(
            f"writing {title}",
            "app.exporting:write_variant",
            module,
            entry.variant,
            to,
            path,
            done=done,
            failed=lambda error: self._wrote(to, outcomes.not_written(error)),
        )
        self._watchers.tell()

    def kept(self, path: str) -> bool:
        try:
            check_apart(path, self._sources())
        except LapstrakeError:
            return True
        return False

    def _sources(self) -> tuple[str, ...]:
        """Files that are open: modules, what their times come from, and the session's own."""
        session = self._store.state
        given = [file.path for entry in session.entries for file in entry.machine.costs]
        recorded = [entry.recording.file.path for entry in session.entries if entry.recording is not None]
        own = self._documents.session_path
        return (*(module.path for module in session.modules), *given, *recorded, *([own] if own else []))

    def _wrote(self, to: str, outcome: Outcome) -> None:
        self.writing = Writing(to, outcome=outcome)
        self._watchers.tell()

    # A bundle

    def tune(self, wish: Wish) -> None:
        entry = self._begin()
        if entry is None or not self._has_place(wish):
            return
        self._found = None
        self._show(Progress(Stage.SEARCHING))
        self._by_cycles = self._asks_for_cycles(wish)
        if self._by_cycles:
            title, search = (
                f"searching by the cycles of the compiler for {wish.target}",
                "app.exporting:search_compiler",
            )
            asked: tuple[object, ...] = (wish.target, wish.memory_cap, wish.seconds)
        else:
            title, search = "searching for the best plan", "app.exporting:search"
            dimensions = tuple(sorted(wish.dimensions))
            asked = (entry.plan, dimensions, wish.memory_cap, wish.seconds, self.known.order_only)
        self._job = self._jobs.start(
            title,
            search,
            self._module,
            entry.machine,
            *asked,
            done=partial(self._searched, wish),
            failed=self._failed("Change what is searched, the memory cap or the machine, and tune again."),
            heard=self._heard,
        )
        self._watchers.tell()

    def _asks_for_cycles(self, wish: Wish) -> bool:
        if not wish.target or self.known.order_only:
            return False
        return searches_itself(Target.parse(wish.target), wish.dimensions)

    def _searched(self, wish: Wish, found: Found) -> None:
        self._found = found
        if wish.target and found.judgement is None:
            self._ask(wish)
        else:
            self._settle(wish, found.best, found.judgement)

    def bundle(self, wish: Wish, plan: Plan) -> None:
        if self._begin() is not None and self._has_place(wish):
            self._show(replace(self.progress, best=plan, outcome=None))
            self._bundle(wish, plan, None)

    def _has_place(self, wish: Wish) -> bool:
        """Whether a bundle can be written where it is to go: found out before the search, not after it."""
        try:
            check_place(wish.path)
        except LapstrakeError as error:
            self._end(Outcome(good=False, said=str(error), way_out="Name another place; what is there is as it was."))
            return False
        return True

    def stop(self) -> None:
        self._jobs.cancel(self._job)

    def _begin(self) -> Entry | None:
        """The active entry, if its module can be bundled and nothing is being done."""
        entry = self._store.state.active_entry
        module = self._documents.module_of(entry)
        if entry is None or module is None or self.progress.stage is not Stage.IDLE or not self.known.able:
            return None
        self._module, self._spec = module, entry.machine
        return entry

    def _heard(self, told: object) -> None:
        if self.progress.stage is Stage.IDLE:
            return  # a search that was given up still tells what it had found
        if isinstance(told, Begun):
            self.progress = replace(self.progress, base=told.makespan, costs=told.costs)
        elif isinstance(told, Trial):
            self.progress = replace(self.progress, trials=(*self.progress.trials, told))
        self._dirty = True

    def _ask(self, wish: Wish) -> None:
        self._show(replace(self.progress, stage=Stage.JUDGING, fraction=0.0, message=""))
        self._job = self._jobs.start(
            f"asking the compiler for {wish.target}",
            "app.exporting:ask_compiler",
            self._module,
            self._spec,
            self.progress.trials,
            wish.target,
            done=lambda ruled: self._settle(wish, *ruled),
            failed=self._failed("Let the model choose, or bundle one of the plans in the table."),
        )

    def _settle(self, wish: Wish, best: Plan | None, judgement: Judgement | None = None) -> None:
        if best is None:
            self._end(outcomes.nothing_faster(self.progress, self._found, judgement))
            return
        self._show(replace(self.progress, best=best))
        self._bundle(wish, best, judgement)

    def _bundle(self, wish: Wish, plan: Plan, judgement: Judgement | None) -> None:
        self._show(replace(self.progress, stage=Stage.BUNDLING, fraction=0.0, message=""))
        self._job = self._jobs.start(
            f"bundling for {Path(wish.path).name}",
            _BUNDLE,
            self._module,
            self._spec,
            plan,
            () if self._by_cycles else self.progress.trials,
            self._found,
            wish.path,
            wish.check,
            judgement,
            done=lambda made: self._end(outcomes.bundled(made, plan, self.progress, self._found, judgement)),
            failed=self._failed("Name another place, or bundle again; what was there before is as it was."),
        )

    def _failed(self, way_out: str) -> Callable[[LapstrakeError], None]:
        module = self._module

        def failed(error: LapstrakeError) -> None:
            if self._module is module:  # else another is open, and has an outcome of its own
                self._end(outcomes.failed(error, self.progress, way_out))

        return failed

    def _end(self, outcome: Outcome) -> None:
        self._show(replace(self.progress, stage=Stage.IDLE, fraction=0.0, message="", outcome=outcome))

    def _show(self, progress: Progress) -> None:
        self.progress = progress
        self._dirty = False
        self._watchers.tell()

    def _follow(self) -> None:
        """Take over how far the job is."""
        if self.progress.stage is not Stage.IDLE:
            job = next((job for job in self._jobs.states() if job.number == self._job), None)
            if job is not None and (job.fraction, job.message) != (self.progress.fraction, self.progress.message):
                self.progress = replace(self.progress, fraction=job.fraction, message=job.message)
                self._dirty = True
        if self._dirty:
            self._show(self.progress)

    def _forget(self) -> None:
        """The module that was searched is gone: so is what was found."""
        if self._module is not None and self._module not in self._documents.modules.values():
            self.stop()
            self._module, self._found = None, None
            self.progress, self.writing = Progress(), Writing()
        self._watchers.tell()
