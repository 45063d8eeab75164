"""Runs variants on devices, and has them compiled, as jobs; what came of each is kept while the window is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject

from app.jobs import Jobs
from app.listeners import Listeners
from app.run_work import Compilation, Timed
from engine.control import Cancelled
from engine.errors import LapstrakeError
from engine.execute.devices import Platform
from engine.execute.verifying import Verification
from engine.ir.module import Module
from engine.session import edits
from engine.session.given import Recording, RecordingKind
from engine.session.plan import AS_LOADED
from engine.session.production import PIN_BUDGET
from engine.session.session import Check, Entry, Session
from engine.session.store import Store
from engine.session.variant import Variant
from views.runs.rows import devices_text, runnable
from views.runs.runner import CompiledRow, Outcome, Progress, Stage, Task, Wish

_AGAIN = "Cancelled."
_NOT_RUN = (
    "Only variants that show a plan are run. The module in a compiler's schedule is not the one that the compiler ends "
    "with: to run that, open the optimised HLO that `lapstrake compile -o` writes."
)


class Runs(QObject):
    """Implements `views.runs.runner.Runner`. One task at a time, so that nothing disturbs what is timed."""

    def __init__(self, store: Store[Session], jobs: Jobs, folder: Path, parent: QObject | None = None) -> None:
        """`folder`: where profiles and schedules are kept."""
        super().__init__(parent)
        self._store = store
        self._jobs = jobs
        self._folder = str(folder)
        self._modules: dict[str, Module] = {}
        self._platforms: tuple[Platform, ...] = ()
        self._looking = 0
        self._progress = Progress()
        self._compiling = Progress()
        self._compiled: tuple[CompiledRow, ...] = ()
        self._outcomes: dict[Variant, Outcome] = {}
        self._number = 0
        self._listeners = Listeners()

    def set_modules(self, modules: Mapping[str, Module]) -> None:
        """The modules that are there now, by their keys: what is known of others is of no use."""
        before, self._modules = self._modules, dict(modules)
        if any(before[key] is not modules.get(key) for key in before):
            self._jobs.cancel(self._progress.job)
            self._jobs.cancel(self._compiling.job)
            self._progress = self._compiling = Progress()
            self._compiled = ()
            self._outcomes.clear()
        self._listeners.tell()

    # views.runs.runner.Runner

    @property
    def platforms(self) -> tuple[Platform, ...]:
        return self._platforms

    @property
    def looking(self) -> bool:
        return self._jobs.is_running(self._looking)

    @property
    def progress(self) -> Progress:
        return self._progress

    @property
    def compiling(self) -> Progress:
        return self._compiling

    @property
    def compiled(self) -> tuple[CompiledRow, ...]:
        there = {entry.key for entry in self._store.state.entries}
        return tuple(row if row.key in there else replace(row, key="") for row in self._compiled)

    def outcome(self, variant: Variant) -> Outcome | None:
        return self._outcomes.get(variant)

    def watch(self, listener: Callable[[], None]) -> Callable[[], None]:
        return self._listeners.add(listener)

    def look(self) -> None:
        if self.looking:
            return

        def found(platforms: tuple[Platform, ...]) -> None:
            self._platforms = platforms
            self._listeners.tell()

        self._looking = self._jobs.start(
            "looking for devices", "app.run_work:look", done=found, failed=lambda _: self._listeners.tell()
        )
        self._listeners.tell()

    def start(self, task: Task, keys: Sequence[str], wish: Wish) -> None:
        if self._progress.stage == Stage.RUNNING:
            return
        entries = [entry for entry in runnable(self._store.state) if entry.key in keys]
        if not entries:
            self._progress = Progress(Stage.FAILED, text=_NOT_RUN, task=task)
            self._listeners.tell()
            return
        if task == Task.VERIFY:
            self._verify(entries, wish, ())
        else:
            self._time(task, entries, wish)

    # Timing and profiles

    def _time(self, task: Task, entries: Sequence[Entry], wish: Wish) -> None:
        base = self._store.state.base
        entries = sorted(entries, key=lambda entry: entry.key != base)
        variants = tuple(entry.variant for entry in entries if entry.variant is not None)
        options = wish.options(profile=task == Task.PROFILE)
        where = devices_text(wish.platform, _devices(variants[0]), alone=wish.alone)
        verb = "profiling" if task == Task.PROFILE else "timing"

        def done(timed: Timed) -> None:
            self._timed(entries, variants, timed)

        self._begin(
            task, f"{verb} {_keys(entries)} on {where}", "app.run_work:run", variants, options, self._folder, done=done
        )

    def _timed(self, entries: Sequence[Entry], variants: Sequence[Variant], timed: Timed) -> None:
        found = timed.run
        self._number += 1
        origin = devices_text(found.platform, found.devices, alone=found.alone)
        for variant, ran in zip(variants, found.ran, strict=True):
            before = self._outcomes.get(variant, Outcome())
            self._outcomes[variant] = replace(before, timing=ran.timing, run=self._number, origin=origin)
        self._end(Stage.DONE, notes=found.notes)
        session = self._store.state
        for entry, file in zip(entries, timed.profiles, strict=True):
            if file is not None:
                recording = Recording(RecordingKind.PROFILE, file, origin)
                title = f"{entry.title}, measured on {origin}"
                session = edits.recorded(session, entry.plan, entry.machine, recording, title, module=entry.module)
        self._store.become("Show what was measured", session)

    # Verifying

    def _verify(self, entries: Sequence[Entry], wish: Wish, notes: tuple[str, ...]) -> None:
        """The first of `entries` now, the others after it: each ends by itself, well or not."""
        entry, left = entries[0], entries[1:]
        variant, module = entry.variant, self._modules.get(entry.module)
        if variant is None or module is None:
            return

        def then(more: tuple[str, ...] = ()) -> None:
            if left:
                self._verify(left, wish, (*notes, *more))
            else:
                self._end(Stage.DONE, notes=(*notes, *more))

        def done(found: Verification) -> None:
            self._check(entry, variant, Check(found.equal, str(found)))
            before = self._outcomes.get(variant, Outcome())
            self._outcomes[variant] = replace(before, verification=found, trouble="")
            then(found.notes)

        def failed(error: LapstrakeError) -> None:
            self._check(entry, variant, Check(equal=False, text=str(error), failed=True))
            before = self._outcomes.get(variant, Outcome())
            self._outcomes[variant] = replace(before, verification=None, trouble=str(error))
            if left:
                then()
            else:
                self._end(Stage.FAILED, text=str(error), notes=notes)

        self._begin(
            Task.VERIFY,
            f"verifying {entry.key} on {devices_text(wish.platform, module.header.devices)}",
            "app.run_work:verify_variant",
            module,
            variant.program.module,
            wish.seed,
            wish.seeds,
            wish.platform,
            wish.inputs or None,
            done=done,
            failed=failed,
            say=str,
        )

    def _check(self, entry: Entry, variant: Variant, check: Check) -> None:
        self._store.settle(entries=edits.checked(self._store.state, entry.key, variant, check).entries)

    # Compiling

    def compile(self, target: str) -> None:
        entry = edits.planned_entry(self._store.state)
        if entry is None or self._compiling.stage == Stage.RUNNING:
            return
        module = self._modules.get(entry.module)
        if module is None:
            return
        plan = replace(entry.plan, budget=entry.plan.budget or PIN_BUDGET)
        title = f"compiling {entry.key} for {target}"

        def done(found: Compilation) -> None:
            self._arrived(target, entry, found)

        def failed(error: LapstrakeError) -> None:
            if self._compiling.job != job:  # its module is gone
                return
            stage = Stage.CANCELLED if isinstance(error, Cancelled) else Stage.FAILED
            self._compiling = Progress(stage, title, text=_AGAIN if stage == Stage.CANCELLED else str(error))
            self._listeners.tell()

        job = self._jobs.start(
            title,
            "app.run_work:compile_plan",
            module,
            plan,
            target,
            entry.machine,
            self._folder,
            done=done,
            failed=failed,
        )
        self._compiling = Progress(Stage.RUNNING, title, job)
        self._listeners.tell()

    def _arrived(self, target: str, of: Entry, found: Compilation) -> None:
        session, rows = self._store.state, []
        for row, file in zip(found.rows, found.schedules, strict=True):
            recording = Recording(RecordingKind.SCHEDULE, file, target)
            session = edits.recorded(session, AS_LOADED, found.machine, recording, row.name, module=of.module)
            rows.append(replace(row, key=session.active))
        self._store.become(f"Compile for {target}", edits.activated(session, self._store.state.active))
        self._compiled = tuple(rows)
        nothing = "" if rows else "The compiler predicted no schedule: nothing in the module is asynchronous."
        self._compiling = Progress(Stage.DONE, f"compiled for {target}", text=nothing, notes=found.notes)
        self._listeners.tell()

    # Progress

    def _begin(
        self,
        task: Task,
        title: str,
        target: str,
        *args: object,
        done: Callable[..., None],
        failed: Callable[[LapstrakeError], None] | None = None,
        say: Callable[[object], str] = lambda _: "",
    ) -> None:
        def ended(error: LapstrakeError) -> None:
            if self._progress.job != job:  # its module is gone
                return
            if isinstance(error, Cancelled):
                self._end(Stage.CANCELLED, text=_AGAIN)
            elif failed is not None:
                failed(error)
            else:
                self._end(Stage.FAILED, text=str(error))

        job = self._jobs.start(title, target, *args, done=done, failed=ended, say=say)
        self._progress = Progress(Stage.RUNNING, title, job, task=task)
        self._listeners.tell()

    def _end(self, stage: Stage, text: str = "", notes: tuple[str, ...] = ()) -> None:
        self._progress = replace(self._progress, stage=stage, job=0, text=text, notes=tuple(dict.fromkeys(notes)))
        self._listeners.tell()


def _devices(variant: Variant) -> int:
    return variant.program.module.header.devices


def _keys(entries: Sequence[Entry]) -> str:
    return ", ".join(entry.key for entry in entries)
