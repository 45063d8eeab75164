"""The application behind the window: holds the store, starts jobs, and does what the actions say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QInputDialog

from app import kept
from app.actions import menus
from app.actions.sheet import key_groups
from app.actions.table import ACTIONS
from app.answers import Answers
from app.documents import Documents
from app.evaluations import Evaluations
from app.explaining import Explaining
from app.exports import Exports
from app.imports import Imports
from app.iterations import Iterations
from app.jobs import Jobs
from app.listeners import Listeners
from app.looks import Looks
from app.matches import Matches
from app.opening import Opening
from app.picturing import Picturing
from app.pruning import Pruning
from app.recordings import Recordings
from app.recovery import Recovery
from app.runs import Runs
from app.saving import Saving
from app.settings import Settings
from app.soon import Soon
from app.trials import Trials
from engine.layout.outline import Outline
from engine.layout.picture import Picture, Skeleton
from engine.session import edits
from engine.session.commands import report_command
from engine.session.lookup import lookup
from engine.session.session import TRANSIENT, Asked, Entry, Session
from engine.session.store import Store
from engine.session.variant import Variant
from engine.timeline.timeline import Metrics
from views.about import show_about
from views.budget.budget import BudgetPane
from views.compare.compare import ComparePane
from views.compare.differences import DifferencePane
from views.export.pane import ExportPane
from views.fusion.pane import FusionPane
from views.graph.comparison import Comparison
from views.graph.pane import GraphPane
from views.guide import Guide
from views.hlo_text.lines import Printed
from views.hlo_text.pane import HloPane
from views.key_sheet import KeySheet
from views.main_window import MainWindow
from views.palette import CommandPalette
from views.plan.form import PlanForm
from views.plan.plan_line import MOST_IN_FLIGHT
from views.ports import JobState
from views.runs.pane import RunsPane
from views.runs.rows import run_key
from views.runs.runner import Task
from views.theme import Theme
from views.timeline.table import TablePane

PASSING_MS = 8000
"""How long the line at the bottom says what is of interest for a moment."""


class Explorer(QObject):
    """Implements `views.ports.Host`, and what the table of actions calls."""

    def __init__(self, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.settings: Settings = settings
        self.store: Store[Session] = Store(Session(), TRANSIENT, mended=edits.sound)
        self.job_list: Jobs = Jobs(self)
        self.looks: Looks = Looks(settings, self)
        self._watchers = Listeners()
        self._predicted_watchers = Listeners()
        self._make_work()
        self._make_window()
        self._make_tasks()
        self._tell_of_work()
        self._tell_of_documents()
        self._stop = self.store.subscribe(lambda session, changed: self._retitle())
        self._retitle()

    def _make_work(self) -> None:
        """What reads, computes and measures, without a window."""
        self.evaluations: Evaluations = Evaluations(self.store, self.job_list, self)
        self.trials: Trials = Trials(self.job_list, self)
        self.documents: Documents = Documents(self.store, self.job_list, self.settings, self)
        self.answers: Answers = Answers(self.job_list, self.documents, self.evaluations, self.trials)
        self.pruning: Pruning = Pruning(self.store, self.job_list, self.evaluations, self)
        self.recordings: Recordings = Recordings(self.store, self.job_list, self)
        self.matches: Matches = Matches(self.store, self.job_list, self)
        self.explaining: Explaining = Explaining(self.job_list)
        self.runs: Runs = Runs(self.store, self.job_list, self._kept, self)
        self.exports: Exports = Exports(self.store, self.job_list, self.documents, self)
        self.documents.read.connect(self._hand_modules_on)
        self.recovery: Recovery = Recovery(self.store, self.settings.folder, self, lambda: self.documents.session_path)

    def _make_window(self) -> None:
        """The window and its panes, which show that and ask for it."""
        # Soon: what shows jobs paints at once, in the midst of what starts or takes in several.
        self.job_list.changed.connect(Soon(self._watchers.tell, self).start)
        self.trials.changed.connect(self._predicted_watchers.tell)
        self.window: MainWindow = MainWindow(self)
        self.compare: ComparePane = ComparePane(self)
        self.graph: GraphPane = GraphPane(self)
        self.text: HloPane = HloPane(self)
        self.runs_pane: RunsPane = RunsPane(self, self.runs)
        self.export: ExportPane = ExportPane(self, self.exports)
        self.window.add_bottom(
            [
                ("Graph", self.graph),
                ("Compare", self.compare),
                ("Differences", DifferencePane(self, self.recordings.measured)),
                ("Budget", BudgetPane(self)),
                ("Fusion", FusionPane(self)),
                ("Runs", self.runs_pane),
                ("HLO", self.text),
                ("Table", TablePane(self)),
                ("Export", self.export),
            ]
        )

    def _make_tasks(self) -> None:
        """What the user does with both, and the actions that do it."""
        window, notices = self.window, self.window.notices
        self.iterations: Iterations = Iterations(
            self.store, self.job_list, self.evaluations, self.documents, window, self.say
        )
        self.imports: Imports = Imports(
            self.store, self.job_list, window, self.say, notices.say, self._kept, self.documents
        )
        self.saving: Saving = Saving(self)
        self.opening: Opening = Opening(self)
        self.picturing: Picturing = Picturing(self)
        self.actions: Mapping[str, QAction] = menus.install(self)
        window.timelines.search.sought.connect(self.graph.marking.search_for)

    @property
    def _kept(self) -> Path:
        """Where profiles are until they are saved beside a session."""
        return self.settings.folder / kept.FOLDER

    def _hand_modules_on(self) -> None:
        """Give the modules that are there now to everybody who computes with them."""
        self.job_list.cancel_without(self.documents.modules.values())
        for part in (
            self.evaluations,
            self.trials,
            self.pruning,
            self.recordings,
            self.matches,
            self.explaining,
            self.runs,
        ):
            part.set_modules(self.documents.modules)

    def _tell_of_work(self) -> None:
        """Have the window say what became of jobs that nobody waits for."""
        self.exports.said.connect(self.say)
        self.pruning.said.connect(self.say)
        self.recordings.arrived.connect(self._reveal)
        self.recordings.doubted.connect(self.window.notices.say)

    def _tell_of_documents(self) -> None:
        """Have the window say what becomes of files."""
        self.documents.changed_on_disk.connect(self._changed_on_disk)
        self.documents.noticed.connect(self.say)
        self.documents.refused.connect(self.window.notices.say)
        self.documents.mended.connect(self.window.notices.dismiss)
        self.documents.replaced.connect(self.window.notices.clear)
        self.documents.recovered.connect(self.recovery.settle)
        self.documents.kept.connect(self.recovery.write)
        self.documents.resumed.connect(self.window.timelines.view.reveal_active)

    # views.ports.Host

    @property
    def theme(self) -> Theme:
        return self.looks.theme

    def jobs(self) -> tuple[JobState, ...]:
        return self.job_list.states()

    def watch_jobs(self, listener: Callable[[], None]) -> Callable[[], None]:
        return self._watchers.add(listener)

    def cancel(self, job: int) -> None:
        self.job_list.cancel(job)

    def perform(self, action: str) -> None:
        if action == "leave":
            self.leave()
        else:
            self.actions[action].trigger()

    def keys_of(self, action: str) -> str:
        return self.actions[action].shortcut().toString(QKeySequence.SequenceFormat.NativeText)

    def recent(self) -> tuple[str, ...]:
        return self.settings.recent

    def recoverable(self) -> str:
        return str(self.recovery.last() or "")

    def may_close(self) -> bool:
        return self.saving.may_go()

    def open(self, *paths: str) -> None:
        self.opening.open(*paths)

    def drop(self, paths: Sequence[str]) -> None:
        self.opening.drop(paths)

    def predicted(self, asked: Asked) -> Metrics | str | None:
        variant = self.evaluations.known(asked)
        return variant.metrics if variant is not None else self.trials.known(asked)

    def predict(self, title: str, asked: Sequence[Asked]) -> None:
        for one in asked:
            variant = self.evaluations.known(one)
            if variant is not None:
                self.trials.learn(one, variant.metrics)
        self.trials.predict(title, asked)

    def evaluated(self, asked: Asked) -> Variant | None:
        return self.evaluations.known(asked)

    def evaluate(self, title: str, asked: Asked, arrived: Callable[[Variant | str], None]) -> None:
        self.answers.evaluate(title, asked, arrived)

    def explain(self, entry: Entry, instruction: int, arrived: Callable[[tuple[str, ...] | str], None]) -> int:
        return self.explaining.start(entry, instruction, arrived)

    def print_text(self, variant: Variant, beside: Variant | None, arrived: Callable[[Printed | str], None]) -> None:
        self.answers.print_text(variant, beside, arrived)

    def outline(self, wanted: Comparison, arrived: Callable[[Outline | str], None]) -> int:
        return self.answers.outline(wanted, self.documents.module_of(self.store.state.active_entry), arrived)

    def arrange(self, skeleton: Skeleton, arrived: Callable[[Picture | str], None]) -> int:
        return self.answers.arrange(skeleton, arrived)

    def watch_predicted(self, listener: Callable[[], None]) -> Callable[[], None]:
        return self._predicted_watchers.add(listener)

    # Files

    def show(self) -> None:
        """Show the window where and as it was."""
        self.window.open_with(self.settings.geometry, self.settings.layout)

    def leave(self) -> None:
        """Keep what is remembered; end every job."""
        self.saving.leave()
        self.picturing.close()
        self.settings.geometry = self.window.saveGeometry()
        self.settings.layout = self.window.layout_state()
        self.settings.sync()
        self.recovery.close()
        self.evaluations.close()
        self.pruning.close()
        self.recordings.close()
        self.job_list.close()
        kept.prune(self._kept)

    def quit(self) -> None:
        self.window.close()

    def show_export(self, what: str) -> None:
        self.export.choose(what)
        self.window.show_pane("Export")

    def rerun(self) -> None:
        """Compute or read the active variant again although that failed or was cancelled."""
        if self.documents.retry(self.store.state.active_entry):
            return
        self.recordings.retry(self.store.state.active)
        self.evaluations.retry(self.store.state.active)

    def say(self, text: str) -> None:
        """Something that is of interest for a moment."""
        if text:
            self.window.statusBar().showMessage(text, PASSING_MS)

    def _changed_on_disk(self, path: str) -> None:
        said = f"{Path(path).name} has changed on disk: what is shown is of the file as it was read."
        self.window.notices.say(path, said, (("Read again", self.documents.reload),))

    # Editing

    def undo(self) -> None:
        self.store.undo()

    def redo(self) -> None:
        self.store.redo()

    def try_all(self) -> None:
        self.window.show_pane("Compare")
        self.compare.try_all()

    def verify(self) -> None:
        """Run the active variant and the module as loaded on the chosen devices, and compare their numbers."""
        self.show_runs()
        self.runs_pane.devices.do(Task.VERIFY, (run_key(self.store.state),))

    def show_runs(self) -> None:
        self.window.show_pane("Runs")
        self.runs_pane.show_devices()

    def show_compiler(self) -> None:
        self.window.show_pane("Runs")
        self.runs_pane.show_compiler()

    def show_graph(self) -> None:
        self.window.show_pane("Graph")

    def duplicate(self) -> None:
        entry = self.store.state.active_entry
        if entry is not None:
            self.store.become(f"Add a variant like {entry.key}", edits.added(self.store.state, entry.plan))

    def show_plan_form(self) -> None:
        PlanForm(self, self.window).show()

    def ask_name(self) -> None:
        entry = self.store.state.active_entry
        if entry is None:
            return
        name, accepted = QInputDialog.getText(self.window, "Name", f"Name of variant {entry.key}:", text=entry.title)
        if accepted:
            self.store.become(f"Name {entry.key}", edits.renamed(self.store.state, entry.key, name))

    def mark(self) -> None:
        time = self.window.timelines.view.moves.mark_time()
        self.store.become("Mark", edits.marked(self.store.state, time))

    def ask_note(self) -> None:
        time = self.window.timelines.view.moves.mark_time()
        note, accepted = QInputDialog.getText(self.window, "Mark", "Note at this moment:")
        if accepted:
            self.store.become("Note", edits.marked(self.store.state, time, note))

    def step_variant(self, by: int) -> None:
        session = self.store.state
        keys = [entry.key for entry in session.entries]
        if session.active in keys:
            key = keys[(keys.index(session.active) + by) % len(keys)]
            self.store.become(f"Activate {key}", edits.activated(session, key))

    def step_budget(self, by: int) -> None:
        slider = self.window.plan_line.budget
        slider.setValue(max(1, min(MOST_IN_FLIGHT, slider.value() + by)))

    def copy_names(self) -> None:
        session = self.store.state
        entry = session.entry(session.selection.entry)
        if entry is not None and entry.variant is not None:
            names = map(lookup(entry.variant).name, session.selection.instructions)
            QGuiApplication.clipboard().setText("\n".join(filter(None, names)))

    def copy_command(self) -> None:
        session = self.store.state
        entry = session.active_entry
        if entry is not None:
            command = report_command(session.path, entry)
            QGuiApplication.clipboard().setText(command)
            self.say(f"copied: {command}")

    # Help

    def show_palette(self) -> None:
        shown = [self.actions[action.id] for action in ACTIONS if action.menu]
        CommandPalette(shown, self.window).open_over(self.window)

    def show_keys(self) -> None:
        KeySheet(key_groups(ACTIONS), self.theme, self.window).show()

    def show_guide(self) -> None:
        self.settings.guided = True
        Guide(self, self.window).show()

    def show_about(self) -> None:
        show_about(self.window)

    def _reveal(self, key: str) -> None:
        """Bring a recording that was asked for into view."""
        if key == self.store.state.active:
            self.window.timelines.view.reveal(key)

    def _retitle(self) -> None:
        menus.retitle_history(self.actions, self.store.undo_label, self.store.redo_label)
