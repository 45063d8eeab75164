"""Jobs that answer one question of a view: a plan tried, a text, a graph, a picture of it."""

from __future__ import annotations

from collections.abc import Callable

from app.documents import Documents
from app.evaluations import Evaluations, shared_by
from app.jobs import Jobs
from app.trials import Trials
from engine.control import Cancelled
from engine.errors import LapstrakeError
from engine.ir.module import Module
from engine.layout.outline import Outline
from engine.layout.picture import Picture, Skeleton
from engine.session.session import Asked
from engine.session.variant import Variant
from views.graph.comparison import Comparison
from views.hlo_text.lines import Printed

_GRAPH = "graph"
"""What jobs for the graph are near: one follows the other, and leaves the workers that plan alone."""


class Answers:
    """`arrived` gets each answer, or why there is none: a sentence, empty where the job was cancelled."""

    def __init__(self, jobs: Jobs, documents: Documents, evaluations: Evaluations, trials: Trials) -> None:
        self._jobs = jobs
        self._documents = documents
        self._evaluations = evaluations
        self._trials = trials

    def evaluate(self, title: str, asked: Asked, arrived: Callable[[Variant | str], None]) -> None:
        """A variant of a plan that is not shown, and not to be; at once where it is known."""
        known, module = self._evaluations.known(asked), self._documents.modules.get(asked.module)
        if known is not None or module is None:
            arrived(known or "no module is open")
            return

        def done(variant: Variant) -> None:
            if self._documents.modules.get(asked.module) is module:
                self._evaluations.remember(asked, variant)
                self._trials.learn(asked, variant.metrics)
                arrived(variant)

        self._jobs.start(
            title,
            "app.work:evaluate",
            module,
            asked.machine,
            asked.plan,
            "",
            done=done,
            failed=_told(arrived),
            near=shared_by(module, asked.machine, asked.plan),
            about=module,
        )

    def print_text(self, variant: Variant, beside: Variant | None, arrived: Callable[[Printed | str], None]) -> None:
        """A variant's HLO, and that of the one it is compared with."""
        self._jobs.start(
            "printing HLO",
            "app.work:print_text",
            variant.program.module,
            beside.program.module if beside is not None else None,
            done=arrived,
            failed=lambda error: arrived(str(error)),
        )

    def outline(self, wanted: Comparison, module: Module | None, arrived: Callable[[Outline | str], None]) -> int:
        """The graph of a variant, or of what one pass made; `module` is what its plan was applied to."""
        variant = wanted.variant
        if wanted.steps is not None and module is not None:
            target = "app.work:outline_steps"
            asked: tuple[object, ...] = (module, variant.machine, variant.plan, *wanted.steps)
        else:
            before = wanted.before.program.module if wanted.before is not None else None
            target, asked = "app.work:outline", (variant.program.module, before)
        return self._jobs.start(
            f"graph of {wanted.title}", target, *asked, done=arrived, failed=_told(arrived), near=_GRAPH
        )

    def arrange(self, skeleton: Skeleton, arrived: Callable[[Picture | str], None]) -> int:
        """A picture of what is open of a graph."""
        return self._jobs.start(
            f"laying out {len(skeleton.items):,} nodes",
            "app.work:arrange_graph",
            skeleton,
            done=arrived,
            failed=_told(arrived),
            near=_GRAPH,
        )


def _told(arrived: Callable[[str], None]) -> Callable[[LapstrakeError], None]:
    return lambda error: arrived("" if isinstance(error, Cancelled) else str(error))
