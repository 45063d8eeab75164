"""The Export tab's jobs: files of the active variant, the search for a plan, and its bundle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from app.documents import Documents
from app.exporting import Begun, Found
from app.jobs import Jobs
from engine.control import Cancelled
from engine.errors import LapstrakeError
from engine.execute.targets import CUDA, TPU, Target, installed
from engine.export.bundle import check_bundled
from engine.export.bundle_folder import check_place
from engine.export.captured import check_dumped, read_capture
from engine.export.contents import FORMATS
from engine.export.tuned import Bundled
from engine.export.writing import check_apart, check_writable
from engine.ir.module import Module
from engine.quantities import bytes_text, gain_text, time_text
from engine.session.judging import Judgement, searches_itself
from engine.session.plan import MachineSpec, Plan
from engine.session.session import Entry, Session
from engine.session.store import Store
from engine.session.tuning import Trial, without_decomposition
from views.export.port import Known, Outcome, Progress, Stage, Wish, Writing

_BUNDLE = "app.exporting:write_bundle_of"
_CAPTURED = "Captured: the job knows itself again by its program, arguments and mesh."
_DUMPED = (
    "A bare dump: the job knows itself again by its module after partitioning, for which it compiles its step once "
    "more at its start. A captured step (lapstrake capture) needs no such compilation."
)
_SCHEDULED = (
    "Dumped after its compiler had scheduled it: no job can be compared with that. Its bundle is to be looked at; for "
    "one that a job runs, dump the module after partitioning, or capture the step."
)
_ORDER = "What the job's own compiler made of it: only the order of its instructions is searched, for install()."


class Exports(QObject):
    """Implements `views.export.port.Exporter`."""

    said = Signal(str)
    """A sentence for the line at the bottom."""

    def __init__(self, store: Store[Session], jobs: Jobs, documents: Documents, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._watchers: list[Callable[[], None]] = []
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
        self._watchers.append(listener)

        def stop() -> None:
            if listener in self._watchers:
                self._watchers.remove(listener)

        return stop

    def _tell(self) -> None:
        for listener in tuple(self._watchers):
            listener()

    @property
    def known(self) -> Known:
        """What the active module's file says of its job."""
        module = self._documents.module_of(self._store.state.active_entry)
        if module is not self._knowing[0]:
            self._knowing = (module, known_of(module) if module is not None else Known())
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
            self._wrote(to, Outcome(good=False, said=str(error), way_out="Name another file, or export again."))
            return
        title = f"{FORMATS[to].title} of {entry.key}"
        self.writing = Writing(to, running=True)

        def done(made: tuple[int, tuple[str, ...]]) -> None:
            size, warnings = made
            self._wrote(to, Outcome(good=True, said=f"{title}: {bytes_text(size)} in {path}", warnings=warnings))

        def failed(error: LapstrakeError) -> None:
            if isinstance(error, Cancelled):
                self._wrote(to, Outcome(good=False, said="Cancelled; nothing was written.", way_out="Export again."))
            else:
                self._wrote(to, Outcome(good=False, said=str(error), way_out="Name another file, or export again."))

        self._jobs.start(
            f"writing {title}", "app.exporting:write_variant", module, entry.variant, to, path, done=done, failed=failed
        )
        self._tell()

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
        self._tell()

    # A bundle

    def tune(self, wish: Wish) -> None:
        entry = self._begin()
        if entry is None or not self._has_place(wish):
            return
        self._found = None
        self._show(Progress(Stage.SEARCHING))

        def done(found: Found) -> None:
            self._found = found
            if wish.target and found.judgement is None:
                self._ask(wish)
            else:
                self._settle(wish, found.best, found.judgement)

        failed = self._failed("Change what is searched, the memory cap or the machine, and tune again.")
        self._by_cycles = bool(wish.target) and not self.known.order_only
        self._by_cycles = self._by_cycles and searches_itself(Target.parse(wish.target), wish.dimensions)
        if self._by_cycles:
            self._job = self._jobs.start(
                f"searching by the cycles of the compiler for {wish.target}",
                "app.exporting:search_compiler",
                self._module,
                entry.machine,
                wish.target,
                wish.memory_cap,
                wish.seconds,
                done=done,
                failed=failed,
                heard=self._heard,
            )
            self._tell()
            return
        self._job = self._jobs.start(
            "searching for the best plan",
            "app.exporting:search",
            self._module,
            entry.machine,
            entry.plan,
            tuple(sorted(wish.dimensions)),
            wish.memory_cap,
            wish.seconds,
            self.known.order_only,
            done=done,
            failed=failed,
            heard=self._heard,
        )
        self._tell()

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
            whose = self.progress.costs if judgement is None else f"the compiler for {judgement.target}"
            found = self._found
            stopped = "" if found is None or found.finished else " The time limit ended the search."
            name = "as loaded" if found is None or found.against is None else found.against[0]
            self._end(
                Outcome(
                    good=False,
                    said=f"Nothing that was tried is faster than the module {name}, by {whose}; no bundle was "
                    f"written.{stopped}",
                    way_out="Give it more time, a larger memory cap or more to search, or bundle a plan of the table.",
                )
            )
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
            done=lambda made: self._bundled(made, plan, judgement),
            failed=self._failed("Name another place, or bundle again; what was there before is as it was."),
        )

    def _bundled(self, made: Bundled, plan: Plan, judgement: Judgement | None) -> None:
        if not made.written:
            self._end(
                Outcome(
                    good=False,
                    said=f"No bundle was written: a plan that changes the numbers is no plan. {made.verdict}",
                    way_out="Bundle another plan of the table, or forbid its sites in the list of collectives.",
                )
            )
            return
        self._end(
            Outcome(
                good=True,
                said=f"{made.path}: {self._gain(plan, judgement)} {_sentence(made.verdict)}",
                warnings=made.warnings,
            )
        )

    def _gain(self, plan: Plan, judgement: Judgement | None) -> str:
        trial = next((t for t in self.progress.trials if t.plan == plan), None)
        base = self.progress.base
        said = "bundled."
        if trial is not None and trial.makespan is not None and base is not None:
            name, before = (self._found and self._found.against) or ("as loaded", base)
            change = gain_text(before, trial.makespan)
            also = "" if before == base else f"; as loaded {time_text(base)} ({gain_text(base, trial.makespan)})"
            said = (
                f"{name} {time_text(before)} → {time_text(trial.makespan)} ({change}){also}, predicted by "
                f"{self.progress.costs}."
            )
            whole = without_decomposition(self.progress.trials)
            other = whole is not None and whole.plan.passes != plan.passes
            if whole is not None and whole.makespan is not None and other and whole.makespan < before:
                said += (
                    f" The best that decomposes nothing takes {time_text(whole.makespan)} "
                    f"({gain_text(before, whole.makespan)})."
                )
        if judgement is not None and judgement.base.cycles and judgement.best.cycles:
            cycles = gain_text(judgement.base.cycles, judgement.best.cycles)
            said += f" By the compiler for {judgement.target}: {judgement.best.cycles:,} cycles ({cycles})."
        if self._found is not None and not self._found.finished:
            said += " The time limit ended the search."
        return said

    def _failed(self, way_out: str) -> Callable[[LapstrakeError], None]:
        def failed(error: LapstrakeError) -> None:
            if not isinstance(error, Cancelled):
                self._end(Outcome(good=False, said=str(error), way_out=way_out))
                return
            tried = any(trial.metrics for trial in self.progress.trials)
            kept = "Bundle the best so far, or tune again." if tried else "Tune again."
            self._end(Outcome(good=False, said="Stopped; no bundle was written.", way_out=kept))

        return failed

    def _end(self, outcome: Outcome) -> None:
        self._show(replace(self.progress, stage=Stage.IDLE, fraction=0.0, message="", outcome=outcome))

    def _show(self, progress: Progress) -> None:
        self.progress = progress
        self._dirty = False
        self._tell()

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
        self._tell()


def known_of(module: Module) -> Known:
    """What can be made of a module, by what lies beside its file."""
    try:
        check_bundled(module)
        capture = read_capture(module.source.path) if module.source is not None else None
        if capture is None:
            check_dumped(module)
    except LapstrakeError as error:
        return Known(str(error), able=False)
    if capture is None:
        return Known(_SCHEDULED if module.is_scheduled else _DUMPED)
    return Known(_ORDER, order_only=True) if capture.scheduled is not None else Known(_CAPTURED)


@cache
def targets_for(chip: str, topology: str) -> tuple[str, ...]:
    """Targets of one chip and topology whose compilers are installed."""
    found = []
    for platform, generations in (("tpu", TPU), ("cuda", CUDA)):
        for name, generation in generations.items():
            if generation.chip != chip or not installed(platform):
                continue
            shape = topology if platform == "tpu" else f"1x{topology}"
            try:
                found.append(str(Target.parse(f"{platform}:{name}:{shape}")))
            except LapstrakeError:
                continue
    return tuple(found)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
