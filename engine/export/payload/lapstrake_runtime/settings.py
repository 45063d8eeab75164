"""Settings of jax: those under which jit makes other programs, and those under which no plan runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from . import jax_private
from .lapstrake_capture import settings


def context() -> tuple[Any, ...]:
    """What jit traces a step again for, and settings under which it checks results."""
    traced_in = jax_private.trace_context()
    return traced_in, jax.config.jax_debug_nans, jax.config.jax_debug_infs  # type: ignore[attr-defined]  # made at run time


def debugging() -> str:
    """Which setting of jax keeps any plan from running now; empty where none does."""
    for name in ("jax_disable_jit", "jax_debug_nans", "jax_debug_infs"):
        if getattr(jax.config, name):
            how = "only compiled" if name == "jax_disable_jit" else "without its checks"
            return f"{name} is set, and a plan runs {how}: unset it"
    return ""


def settings_apart(written: Mapping[str, str]) -> str:
    """Settings of jax that are others than they were, to begin a sentence with; empty where none is known to be."""
    now = settings()
    apart = [f"{name} is {now[name]} (was {was})" for name, was in written.items() if now.get(name, was) != was]
    return f"{', '.join(apart)}, and " if apart else ""
