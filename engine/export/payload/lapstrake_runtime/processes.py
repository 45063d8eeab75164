"""What all processes of a job decide together: whether the plan runs."""

from __future__ import annotations

import itertools
import json
from typing import Any

import jax

from . import jax_private
from .mismatch import in_words

PATIENCE_S = 600
"""How long the processes of a job wait for each other before the plan is given up."""
_agreements = itertools.count()


def agree(problem: str, state: str = "") -> str:
    """The first problem that any process of the job has; empty when none has and all are in the same state.

    The barrier fails for all or for none, also for a process that comes late, so that all come to one verdict.
    """
    if jax.process_count() == 1:
        return problem
    client: Any = None if jax_private.MOVED else jax_private.global_state.client
    if client is None:
        return problem or "the job's processes cannot agree: call jax.distributed.initialize"
    key = f"lapstrake/{next(_agreements)}"
    try:
        client.key_value_set(f"{key}/{jax.process_index()}", json.dumps([problem, state]))
        client.wait_at_barrier(key, PATIENCE_S * 1000)
        said = {int(path.rpartition("/")[2]): json.loads(text) for path, text in client.key_value_dir_get(key)}
    except Exception as error:  # whatever is wrong with a plan must not stop the job
        return problem or f"not every process came here within {PATIENCE_S} s ({in_words(error)}): do alike in all"
    problems = [f"process {number}: {theirs}" for number, (theirs, _) in sorted(said.items()) if theirs]
    if problem or problems:
        return problem or problems[0]
    states = sorted({theirs for _, theirs in said.values()})
    return f"the processes differ ({'; '.join(states)}): give all one bundle, and do alike in all" * (len(states) > 1)
