"""A job's step with a plan beside it: each call runs one of them, and the first call decides whether the plan may."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from . import jax_private
from .bundle import Bundle
from .mismatch import Mismatch, in_words
from .order import DECIDING
from .processes import agree
from .settings import debugging
from .tuned import Tuned

log = logging.getLogger("lapstrake")
_TRACED = (
    "it was called under a trace (an outer jit, grad, vmap, scan or eval_shape), and a plan runs only as the whole "
    "program: wrap the outermost jitted function"
)


class Wrapped:
    """A step that runs a plan where it fits, and the original everywhere else."""

    def __init__(self, bundle: Bundle, step: Callable[..., Any], *, strict: bool, groups: bool) -> None:
        functools.update_wrapper(self, step, updated=())
        self.__name__ = str(getattr(step, "__name__", "step"))
        self._bundle, self._step, self._strict, self._groups = bundle, step, strict, groups
        self._tuned: Tuned | None = None
        self._refusal = ""
        """Why no call runs the plan."""
        self._passed_by: dict[str, tuple[int, str]] = {}
        """Kind of the calls that the plan was not for → how many, and the first's reason."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (jax_private.MOVED or jax_private.trace_state_clean()):
            return self._pass_by("trace", _TRACED, args, kwargs)
        tuned = self._tuned
        if tuned is None and not self._refusal:
            if reason := debugging():
                return self._pass_by(reason, reason, args, kwargs)
            tuned = self._decide(args, kwargs)
        if tuned is None:
            if self._strict:
                raise Mismatch(self._refusal)
            return self._step(*args, **kwargs)
        if reason := tuned.outdated(args, kwargs):
            return self._pass_by(reason, reason, args, kwargs)
        try:
            return tuned.run(*args, **kwargs)
        except (TypeError, ValueError) as error:
            # Compiled functions refuse other structures, shapes, types and shardings before they run anything.
            reason = tuned.unlike(args, kwargs) or f"other arguments came: {in_words(error)}"
        return self._pass_by("arguments", reason, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        # lower, trace, clear_cache and the like are the original's
        return getattr(object.__getattribute__(self, "_step"), name)

    def outcome(self) -> str:
        """What became of the calls so far."""
        ran, runs = ("it raised", "it raises") if self._strict else ("the original ran", "the original runs")
        said = [f"{runs}: {self._refusal}"] if self._refusal else []
        said += self._tuned.outcome() if self._tuned else []
        for count, reason in self._passed_by.values():
            said.append(f"{ran} {count} time{'s' * (count > 1)}: {reason}")
        return "; ".join(said) or "the wrapped step was not called yet"

    def _decide(self, args: Any, kwargs: Any) -> Tuned | None:
        """The plan, ready to run; None, and `_refusal`, where it does not fit."""
        with DECIDING:
            if self._tuned or self._refusal:  # by another thread, meanwhile
                return self._tuned
            tuned = Tuned(self._bundle, self._step, self._groups)
            # Compilers of several processes may work together: none is started before all have come so far.
            for stage in (tuned.check, tuned.recognise, tuned.compile):
                state, problem = "", ""
                try:
                    state = stage(args, kwargs)
                except Exception as error:  # whatever is wrong with a plan must not stop the job
                    problem = in_words(error)
                self._refusal = agree(problem, state)
                if self._refusal:
                    if not self._strict:
                        log.warning("lapstrake: the original runs: %s", self._refusal)
                    return None
            self._tuned = tuned
            return tuned

    def _pass_by(self, kind: str, reason: str, args: Any, kwargs: Any) -> Any:
        count, first = self._passed_by.get(kind, (0, reason))
        self._passed_by[kind] = (count + 1, first)
        if self._strict:
            raise Mismatch(reason)
        if not count:
            log.warning("lapstrake: the original runs: %s", reason)
        return self._step(*args, **kwargs)
