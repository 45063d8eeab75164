"""The pass: collectives and the einsums next to them become rings of partial einsums and collective permutes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engine.cost.given import NOTHING_GIVEN, given_times
from engine.ir.edit import Editor
from engine.ir.module import Module
from engine.passes.decompose.decide.planning import plan
from engine.passes.decompose.emit.emit import emit
from engine.passes.decompose.options import Options
from engine.passes.passes import Context, Result


@dataclass(frozen=True)
class Decompose(Options):
    """Decomposes what the gate, or the user, lets through; every collective gets a verdict."""

    name: ClassVar[str] = "decompose"

    def apply(self, module: Module, context: Context) -> Result:
        """Raises UsageError when `force` or `forbid` name nothing, UnsupportedError for groups that do not fit."""
        editor = Editor(module)
        given = given_times(context.priced(module)) if context.priced is not None else NOTHING_GIVEN
        planned = plan(module, context.machine, self, context.control.part(0.0, 0.5), editor, given)
        for number, part in enumerate(planned.parts):
            context.control.step(0.5 + 0.5 * number / len(planned.parts), "writing loops")
            emit(editor, part.site, part.variant)
        return Result(editor.finish(), planned.candidates, notes=planned.notes)
