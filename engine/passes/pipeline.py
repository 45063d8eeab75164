"""Passes in order, as one line of text and as something that runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine import options
from engine.control import Control
from engine.errors import UsageError
from engine.ir.module import Module
from engine.passes.passes import Context, Pass, Result
from engine.registry import Registry

PASSES = Registry(
    kind="pass",
    group="lapstrake.passes",
    table={
        "decompose": "engine.passes.decompose.decompose:Decompose",
        "flatten": "engine.passes.flatten:Flatten",
        "async-permute": "engine.passes.async_permute:AsyncPermute",
        "fuse": "engine.passes.fuse.fuse:Fuse",
    },
)


@dataclass(frozen=True)
class Pipeline:
    """Passes that run one after the other. `parse` and `str` are each other's inverse."""

    passes: tuple[Pass, ...] = ()

    @staticmethod
    def parse(text: str) -> Pipeline:
        """From ``decompose{unroll=2},async-permute``; the empty text is the empty pipeline. Raises UsageError."""
        return Pipeline(tuple(_pass(name, given) for name, given in options.split(text)))

    def __str__(self) -> str:
        return ",".join(options.show(p) for p in self.passes)

    @property
    def tries(self) -> bool:
        """Whether what the passes make depends on the scheduler and budget that trials are made with."""
        return any(getattr(p, "tries", False) for p in self.passes)

    def run(self, module: Module, context: Context) -> Result:
        """Apply every pass; candidates and notes are those of all passes together."""
        result = Result(module)
        for number, step in enumerate(self.passes):
            context.control.step(number / len(self.passes), step.name)
            result = result.then(step.apply(result.module, replace(context, control=self._part(context, number))))
        return result

    def _part(self, context: Context, number: int) -> Control:
        return context.control.part(number / len(self.passes), (number + 1) / len(self.passes))


def _pass(name: str, given: Mapping[str, str]) -> Pass:
    made: object = options.build(PASSES.load(name), name, given)
    if not isinstance(made, Pass):
        raise UsageError(f"pass '{name}' should have a method apply(module, context), but {type(made)!r} has none")
    return made
