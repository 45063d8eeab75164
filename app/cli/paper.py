"""What reports are printed on: as wide as the terminal, or as a page where nobody says how wide it is."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

PIPE_WIDTH = 100
"""Columns where standard output is no terminal and COLUMNS is not set."""
_GAP = "  "
_NO_BREAK = "\N{NO-BREAK SPACE}"
_FIGURE = re.compile(r"(?<=\d) (?=(?:[mµnp]?s|%|[KMGT]?i?B)\b)")
"""Between a number and its unit, which stay on one line."""


class _Console(Console):
    """Leaves a reader that went away to `main`, which knows the exit status for it, and cuts no figure nor name."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich does, but a table that cannot be as narrow as the page is printed as wide as it has to be."""
        width = self.width
        for table in objects:
            if isinstance(table, Table):
                _hold(table)
                self.width = max(self.width, Measurement.get(self, self.options, table).minimum)
        try:
            super().print(*objects, **options)
        finally:
            self.width = width


def _hold(table: Table) -> None:
    """Keep columns that are not wrapped as wide as what they hold: rich cuts them where a table has no room."""
    for column in table.columns:
        if column.no_wrap:
            texts = (line for cell in (column.header, *column.cells) for line in str(cell).splitlines())
            column.min_width = max(map(cell_len, texts), default=0)


def console() -> Console:
    """Standard output. Nothing printed is markup: names of instructions and origins of times have brackets."""
    made = _Console(highlight=False, markup=False)
    width = shutil.get_terminal_size((PIPE_WIDTH, 24)).columns
    return made if made.is_terminal else _Console(highlight=False, markup=False, width=width)


def lines_of(
    heading: Sequence[str], rows: Sequence[tuple[Sequence[str], str]], words: int, width: int
) -> tuple[str, ...]:
    """Rows of cells in columns, of which the first `words` hold words and the others figures, and under each row its
    text, wrapped to `width`."""
    table = [heading, *(cells for cells, _ in rows)]
    widths = [max(len(cells[n]) for cells in table) for n in range(len(heading))]
    aligned = [
        _GAP.join(
            cell.ljust(size) if n < words else cell.rjust(size)
            for n, (cell, size) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()
        for cells in table
    ]
    found = [aligned[0], "─" * max(map(len, aligned))]
    indent = " " * (widths[0] + len(_GAP)) if widths else ""
    for line, (_, text) in zip(aligned[1:], rows, strict=True):
        kept = _FIGURE.sub(_NO_BREAK, text)
        wrapped = wrap(kept, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
        found += [line, *(part.replace(_NO_BREAK, " ") for part in wrapped)]
    return tuple(found)
