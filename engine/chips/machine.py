"""A machine: so many chips of one kind, wired in one way, and how the job numbers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.chips.budget import Budget


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip's figures, read from a TOML file. Rates are per second, usable unless said otherwise."""

    name: str
    """Key: ``tpu-v4``."""
    title: str
    """As shown: ``TPU v4``."""
    family: str
    """``tpu`` or ``gpu``."""
    peak_flops: Mapping[str, float]
    """Dense peak by XLA dtype name (``bf16``, ``f32``, ``s8``, ``f8``)."""
    hbm_bytes: int
    hbm_bandwidth: float
    default_budget: Budget


@dataclass(frozen=True, eq=False)
class Machine:
    """Chips, their wiring and the job's device order. `links` and routing are added by the cost model's needs."""

    chip: Chip
    devices: int
    notes: tuple[str, ...] = ()
    """What was inferred (mesh axes from replica groups, …), each one sentence for the user."""
