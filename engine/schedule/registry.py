"""Schedulers by name, and their one-line text form: ``bottom-up``, ``improve{seconds=2}``."""

from __future__ import annotations

from engine import options
from engine.errors import UsageError
from engine.registry import Registry
from engine.schedule.problem import Scheduler

SCHEDULERS = Registry(
    kind="scheduler",
    group="lapstrake.schedulers",
    table={
        "as-loaded": "engine.schedule.as_loaded:AsLoaded",
        "memory": "engine.schedule.memory:Memory",
        "bottom-up": "engine.schedule.bottom_up:BottomUp",
        "top-down": "engine.schedule.top_down:TopDown",
        "improve": "engine.schedule.improve:Improve",
        "exact": "engine.schedule.exact:Exact",
    },
)


def parse_scheduler(text: str) -> Scheduler:
    """The scheduler that `text` names, with its options. Raises UsageError for anything else."""
    parts = list(options.split(text))
    if len(parts) != 1:
        raise UsageError(
            f"one scheduler was expected, such as 'bottom-up' or 'improve{{seconds=2}}', but '{text}' came"
        )
    ((name, given),) = parts
    made: object = options.build(SCHEDULERS.load(name), name, given)
    if not isinstance(made, Scheduler):
        raise UsageError(f"scheduler '{name}' should have a method schedule(problem, control), but {made!r} has none")
    return made


def show_scheduler(scheduler: Scheduler) -> str:
    """The inverse of `parse_scheduler`."""
    return options.show(scheduler)
