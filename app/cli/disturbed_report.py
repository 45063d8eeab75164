"""How variants stand slow devices and slow paths, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from app.cli.paper import console
from engine.control import Control
from engine.quantities import microseconds, time_text
from engine.session.variant import Variant
from engine.simulate.stragglers import Disturbance, Spread, spread

Spreads = Sequence[tuple[Variant, Spread]]


def disturb(variants: Sequence[Variant], disturbance: Disturbance, control: Control) -> Spreads:
    """Every variant that was simulated, on all its devices. Raises UsageError for a device that the module lacks."""
    simulated = [variant for variant in variants if variant.recording is None]
    share = 1.0 / max(1, len(simulated))
    return [
        (variant, spread(variant.program, variant.schedule, disturbance, control.part(k * share, (k + 1) * share)))
        for k, variant in enumerate(simulated)
    ]


def show(spreads: Spreads, text: str) -> None:
    """One line a variant: how much longer the last device takes, and how much of that its own work explains."""
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"with {text}, every device simulated (times predicted; links are shared as undisturbed)",
        title_justify="left",
    )
    table.add_column("variant", overflow="fold")
    for name in ("undisturbed", "last device", "slowdown", "of own work", "first device", "waits, median"):
        table.add_column(name, justify="right", no_wrap=True)
    for variant, found in spreads:
        table.add_row(
            variant.name,
            time_text(found.undisturbed),
            time_text(int(found.finish.max())),
            f"{found.slowdown:.3f}×",
            f"{found.worst:.3f}×",
            time_text(int(found.finish.min())),
            time_text(int(np.median(found.exposed))),
        )
    console().print(table)


def as_json(spreads: Spreads, text: str) -> dict[str, Any]:
    """Times in microseconds; one entry a device in `finish_us` and `exposed_us`."""
    return {
        "disturbance": text,
        "variants": [
            {
                "name": variant.name,
                "undisturbed_us": microseconds(found.undisturbed),
                "slowdown": round(found.slowdown, 6),
                "own_work": round(found.worst, 6),
                "finish_us": [microseconds(int(time)) for time in found.finish],
                "exposed_us": [microseconds(int(time)) for time in found.exposed],
            }
            for variant, found in spreads
        ],
    }
