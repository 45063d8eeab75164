"""Shows any iteration of a loop: goes to it where the timeline has it, and has it unfolded where it does not."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QInputDialog

from app.documents import Documents
from app.evaluations import Evaluations, shared_by
from app.jobs import Jobs
from engine.control import Cancelled
from engine.session import edits
from engine.session.lookup import lookup
from engine.session.matching import shown_in
from engine.session.session import Asked, Session
from engine.session.store import Store
from engine.session.variant import Variant
from views.main_window import MainWindow
from views.timeline.iterations import iteration_span, loop_at

_MOST = 2**31 - 1
"""The largest number that the dialog takes."""


class Iterations:
    """What the action "Show an iteration" does."""

    def __init__(
        self,
        store: Store[Session],
        jobs: Jobs,
        evaluations: Evaluations,
        documents: Documents,
        window: MainWindow,
        say: Callable[[str], None],
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._evaluations = evaluations
        self._documents = documents
        self._window = window
        self._say = say

    def ask(self) -> None:
        """Ask which iteration of the selected loop, or of the loop around the selection, to show."""
        session = self._store.state
        variant = session.active_variant
        frame = loop_at(variant.timeline, shown_in(session, session.active)) if variant is not None else None
        if variant is None or frame is None:
            self._say("Select a loop of the active variant, or something in one, to show an iteration of it")
            return
        trips = min(int(variant.timeline.repeat[frame]), _MOST)
        name = lookup(variant).name(int(variant.timeline.instruction[frame]))
        question = f"{name} runs {trips:,} times. Iteration:"
        number, accepted = QInputDialog.getInt(self._window, "Show an iteration", question, 1, 1, trips)
        if accepted:
            self.show(session.active, variant, frame, number - 1)

    def show(self, key: str, variant: Variant, frame: int, iteration: int) -> None:
        """Show an iteration (from 0) of the loop whose frame is row `frame`, by a job where it is folded."""
        entry = self._store.state.entry(key)
        module = self._documents.module_of(entry)
        if self._reveal(variant, frame, iteration) or entry is None or module is None:
            return
        asked = Asked(entry.module, variant.machine, variant.plan)
        loop = int(variant.timeline.instruction[frame])

        def arrived(unfolded: Variant) -> None:
            if self._documents.modules.get(asked.module) is not module:
                return
            self._evaluations.remember(asked, unfolded)
            there = self._store.state.entry(key)
            if there is None or there.asked != asked:
                return
            now = edits.arrived(self._store.state, key, unfolded)
            self._store.settle(entries=now.entries, selection=now.selection)
            found = loop_at(unfolded.timeline, (loop,))
            if found is None or not self._reveal(unfolded, found, iteration):
                self._say(f"iteration {iteration + 1:,} has nothing that takes time")

        self._jobs.start(
            f"unfolding iteration {iteration + 1:,}",
            "app.work:unfold",
            module,
            variant.machine,
            variant.plan,
            variant.name,
            (loop, iteration),
            done=arrived,
            failed=lambda error: None if isinstance(error, Cancelled) else self._say(str(error)),
            entry=key,
            near=shared_by(module, variant.machine, variant.plan),
            about=module,
        )

    def _reveal(self, variant: Variant, frame: int, iteration: int) -> bool:
        span = iteration_span(variant.timeline, frame, iteration)
        if span is None:
            return False
        start, stop = span
        self._window.range.show(start - (stop - start) // 10, (stop - start) * 6 // 5)
        return True
