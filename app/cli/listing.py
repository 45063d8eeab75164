"""Parts with options as a list: what `lapstrake passes` and `lapstrake schedulers` print."""

from __future__ import annotations

import inspect

from rich import box
from rich.table import Table

from app.cli.paper import console
from engine.options import fields_of
from engine.registry import Registry


def show_parts(registry: Registry) -> None:
    """Name, first line of the docstring, options with their choices and defaults."""
    table = Table(box=box.SIMPLE_HEAD, show_lines=False)
    table.add_column(registry.kind, no_wrap=True)
    table.add_column("what it does and its options", overflow="fold")
    for name in registry.names():
        part = registry.load(name)
        lines = [(inspect.getdoc(part) or "").split("\n\n")[0].replace("\n", " ")]
        for option in fields_of(part):
            choices = "|".join(option.choices) or {"list": "ID;ID…"}.get(option.kind, option.kind)
            lines.append(f"  {option.name}={choices}  (default {option.default or 'none'})")
        table.add_row(name, "\n".join(lines))
    console().print(table)
