"""`lapstrake chips`: the chips that ship, with the figures that costs are made of."""

from __future__ import annotations

from argparse import Namespace

from rich import box
from rich.table import Table

from app.cli.main import DONE
from app.cli.paper import console
from engine.chips.chip import DomainLinks, TorusLinks
from engine.chips.library import chips, load_chip
from engine.quantities import bytes_text


def run(arguments: Namespace) -> int:
    """Print a line for each chip."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("name", "chip"):
        table.add_column(name, no_wrap=True)
    for name in ("bf16 TFLOP/s", "HBM", "HBM GB/s", "link GB/s one way [nominal]"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("network", no_wrap=True)
    table.add_column("uncertain", overflow="fold")
    for name in chips():
        chip = load_chip(name)
        link = chip.network.link
        table.add_row(
            chip.name,
            chip.title,
            f"{chip.peak_flops['bf16'] / 1e12:.0f}",
            bytes_text(chip.hbm_bytes),
            f"{chip.hbm_bandwidth / 1e9:.0f}",
            f"{link.usable / 1e9:.0f} [{link.nominal / 1e9:.0f}]",
            _network(chip.network),
            "; ".join(f"{figure}: {why}" for figure, why in chip.uncertain),
        )
    console().print(table)
    return DONE


def _network(network: TorusLinks | DomainLinks) -> str:
    if isinstance(network, TorusLinks):
        torus = f"{network.dimensions}-D torus, up to {'×'.join(map(str, network.largest))}"
        if network.slices is None:
            return torus
        return f"{torus}; slices joined at {network.slices.host.usable / 1e9:.0f} GB/s a host"
    return f"switched domains of {network.domain}"
