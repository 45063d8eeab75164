"""Replays the TPU compiler's predicted schedules and prints our totals beside the compiler's."""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.scheduled_module import read_scheduled_module
from engine.simulate.replay import replay

DATA = Path(__file__).parent.parent / "tests" / "data" / "tpu-compiler"


def main() -> None:
    """Print the totals of every schedule."""
    parser = argparse.ArgumentParser(prog="benchmarks.replay", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="*.schedule.txt.gz; those in tests/data if none is named")
    paths = parser.parse_args().files or sorted(DATA.glob("*.schedule.txt.gz"))
    for path in paths:
        predicted = read_scheduled_module(gzip.decompress(path.read_bytes()).decode(), str(path))
        played = replay(predicted, machine_for(predicted.module, load_chip("tpu-v4")))
        print(
            f"\n{path.name}: µs by the compiler, by our simulation of its order and costs, and waits in loops included"
        )
        for total in played.totals:
            name = f"{total.computation}{' (runs loops)' if total.runs_loops else ''}"
            print(_line(name, total.compiler, total.ours, total.whole))
        for row in played.loops:
            print(_line(f"{row.loop} × {row.trips}", row.compiler, row.ours, row.whole))


def _line(name: str, compiler: int, ours: int, whole: int) -> str:
    return f"  {name:62s}{compiler / 1e6:12.2f}{ours / 1e6:12.2f} {ours / compiler - 1:8.3%}{whole / 1e6:12.2f}"


if __name__ == "__main__":
    main()
