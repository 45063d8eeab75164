"""Filling a table whose columns are as wide as what they hold, without measuring them after each item."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtWidgets import QHeaderView, QTableWidget


@contextmanager
def filling(table: QTableWidget) -> Iterator[None]:
    """Columns keep their widths inside, and are measured once at the end.

    A visible table that is filled again measures all its columns for every item: seconds for some hundred rows.
    """
    header = table.horizontalHeader()
    modes = [header.sectionResizeMode(column) for column in range(header.count())]
    for column, mode in enumerate(modes):
        if mode == QHeaderView.ResizeMode.ResizeToContents:
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Fixed)
    try:
        yield
    finally:
        for column, mode in enumerate(modes):
            header.setSectionResizeMode(column, mode)
