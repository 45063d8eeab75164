"""`lapstrake chips`: the chips that ship, with the figures that costs are made of."""

from __future__ import annotations

from argparse import Namespace

from rich import box
from rich.table import Table

from app.cli.figures import size
from app.cli.main import DONE
from app.cli.tables import console
from engine.chips.library import chips, load_chip


def run(arguments: Namespace) -> int:
    """Print a line for each chip."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("name", "chip"):
        table.add_column(name, no_wrap=True)
    for name in ("bf16 TFLOP/s", "HBM", "HBM GB/s", "link GB/s one way", "links"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("notes", overflow="fold")
    for name in chips():
        chip = load_chip(name)
        table.add_row(
            chip.name,
            chip.title,
            f"{chip.peak_flops['bf16'] / 1e12:.0f}",
            size(chip.hbm_bytes),
            f"{chip.hbm_bandwidth / 1e9:.0f}",
            f"{chip.link_bandwidth / 1e9:.0f} [{chip.link_nominal / 1e9:.0f}]",
            str(chip.links),
            chip.uncertain or "",
        )
    console().print(table)
    return DONE
