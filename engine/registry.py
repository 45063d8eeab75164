"""Passes, schedulers and other parts by name, imported only when used.

A table maps a name to ``module:attribute``; installed packages add their own through an entry point group.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from engine.errors import UsageError


@dataclass(frozen=True)
class Registry:
    """Names of one kind of part."""

    kind: str
    """For messages: ``pass``, ``scheduler``."""
    group: str
    """Entry point group: ``lapstrake.passes``."""
    table: Mapping[str, str]
    """Name → ``module:attribute`` of the parts that ship."""

    def names(self) -> tuple[str, ...]:
        """Every name, those that ship first."""
        return (*self.table, *(e.name for e in entry_points(group=self.group) if e.name not in self.table))

    def load(self, name: str) -> type:
        """The class behind `name`; UsageError for an unknown one or one whose module is missing."""
        target = self.table.get(name)
        if target is None:
            found = entry_points(group=self.group, name=name)
            if not found:
                raise UsageError(f"no {self.kind} is called '{name}'{self._hint(name)}; there are: {self._listed()}")
            loaded = next(iter(found)).load()
        else:
            module, _, attribute = target.partition(":")
            loaded = getattr(importlib.import_module(module), attribute)
        if not isinstance(loaded, type):
            raise UsageError(f"{self.kind} '{name}' should be a class, but {loaded!r} came")
        return loaded

    def _hint(self, name: str) -> str:
        close = difflib.get_close_matches(name, self.names(), n=1)
        return f" (did you mean '{close[0]}'?)" if close else ""

    def _listed(self) -> str:
        return ", ".join(self.names())
