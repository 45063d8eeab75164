"""The manifest of a bundle: what a job checks before it runs the plan, and what a reader asks of where it came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from engine.execute.verifying import Verification
from engine.export.captured import Capture
from engine.hlo import xla
from engine.quantities import microseconds
from engine.session.evaluation import Evaluator
from engine.session.tuning import Tuning
from engine.session.variant import Variant, costs_in_words

SCHEMA = 1


def manifest(evaluator: Evaluator, found: Tuning, shown: Variant, known: Capture) -> dict[str, Any]:
    """What is known before the files are: module, versions, machine, plan, prediction and search.

    `shown` is the plan as it is in the bundle's files.
    """
    plan, metrics = found.best.plan, shown.metrics
    return {
        "schema": SCHEMA,
        "tool": {"lapstrake": _version(), "jaxlib": xla.version()},
        "module": evaluator.module.name,
        "fingerprint": dict(known.fingerprint),
        "signature": None if known.signature is None else dict(known.signature),
        "versions": dict(known.versions),
        "settings": dict(known.settings),
        "scheduled": None if known.scheduled is None else dict(known.scheduled),
        "machine": {
            "chip": evaluator.machine.chip.name,
            "topology": str(evaluator.machine.topology),
            "mesh": dict(evaluator.machine.mesh),
            "notes": list(evaluator.machine.notes),
        },
        "plan": {
            "passes": plan.passes,
            "scheduler": plan.scheduler,
            "budget": str(shown.schedule.budget),
            "memory_cap": plan.memory_cap,
        },
        "predicted": {
            "source": shown.source.name.lower(),
            "costs": costs_in_words((found.base, found.against, shown)),
            "against": found.against.name,
            "against_us": microseconds(found.against.metrics.makespan),
            "original_us": microseconds(found.base.metrics.makespan),
            "tuned_us": microseconds(metrics.makespan),
            "priced_unlike": list(shown.priced_unlike(found.against)),
            "tuned_exposed_us": microseconds(metrics.exposed),
            "tuned_peak_memory_bytes": metrics.peak_memory,
        },
        "search": {
            "finished": found.finished,
            "dimensions": list(found.dimensions),
            "trials": [
                {
                    "passes": t.plan.passes,
                    "scheduler": t.plan.scheduler,
                    "budget": None if t.plan.budget is None else str(t.plan.budget),
                    "makespan_us": None if t.makespan is None else microseconds(t.makespan),
                    "why_not": t.why_not,
                }
                for t in found.trials
            ],
        },
        "measured": None,
    }


def verified(verification: Verification | None, unverified: str) -> dict[str, Any]:
    """What a manifest says of the numbers; `unverified` says why there is no `verification`."""
    if verification is None:
        return {"done": False, "why": unverified}
    return {"done": True, **verification.as_json()}


def sealed(manifest: Mapping[str, Any], content: Mapping[str, bytes]) -> bytes:
    """The manifest as it is written: with the SHA-256 of every file in `content`, and of itself without that digest."""
    told = {**manifest, "files": {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}}
    canonical = json.dumps(told, sort_keys=True, separators=(",", ":")).encode()
    return json.dumps({**told, "digest": hashlib.sha256(canonical).hexdigest()}, indent=1).encode()


def _version() -> str:
    try:
        return version("lapstrake")
    except PackageNotFoundError:
        return "unknown"
