"""`lapstrake devices`: what modules can run on here."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from dataclasses import asdict

from rich import box
from rich.table import Table

from app.cli.console import progress
from app.cli.main import DONE
from app.cli.paper import console
from engine.execute.devices import Platform, platforms_found
from engine.execute.memory import available_bytes
from engine.quantities import bytes_text


def run(arguments: Namespace) -> int:
    """Print a line for each platform; one without devices says why."""
    with progress(arguments) as control:
        found = platforms_found(control=control)
    available = available_bytes()
    if arguments.json:
        content = {"schema": 1, "host_memory_bytes": available, "platforms": [asdict(p) for p in found]}
        json.dump(content, sys.stdout, indent=1)
        print()
        return DONE
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("platform", "devices", "kind", "memory", "version"):
        table.add_column(name, overflow="fold")
    for platform in found:
        table.add_row(*_cells(platform, available))
    console().print(table)
    return DONE


def _cells(platform: Platform, available: int | None) -> tuple[str, ...]:
    if platform.problem:
        return platform.name, "none", platform.problem, "", ""
    if platform.name == "cpu":
        shared = "" if available is None else f"{bytes_text(available)} free, shared"
        return platform.name, f"as many as needed, on {os.cpu_count()} cores", platform.kind, shared, platform.version
    memory = "" if platform.memory is None else f"{bytes_text(platform.memory)} each"
    return platform.name, str(platform.count), platform.kind, memory, platform.version
