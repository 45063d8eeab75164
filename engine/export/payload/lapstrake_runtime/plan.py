"""What a job holds of a bundle: it wraps steps, or installs an order, and says what became of each."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import jax

from .bundle import Bundle
from .jax_private import VERSIONS
from .lapstrake_capture import known_module
from .mismatch import Mismatch, in_words
from .modules import kept_names, module_difference
from .order import DECIDING, OrderHook
from .processes import agree
from .settings import settings_apart
from .wrapped import Wrapped

log = logging.getLogger("lapstrake")
_installed: dict[str, OrderHook] = {}


class Plan:
    """A plan on disk, and what became of it in this process."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._uses: list[tuple[str, Callable[[], str]]] = []
        """Names, and how to say what became of each."""

    def wrap(self, step: Callable[..., Any], *, strict: bool = False, groups: bool = False) -> Wrapped:
        """A function that does what `step` does, the tuned way where the plan fits.

        With `groups` the compiler is asked to keep each transfer with the einsum that hides it, by XLA's scheduling
        groups: for TPU compilers where jax has no scheduler hook, which orders everything.
        """
        wrapped = Wrapped(self._bundle, step, strict=strict, groups=groups)
        self._uses.append((wrapped.__name__, wrapped.outcome))
        return wrapped

    def install(self, *, strict: bool = False) -> bool:
        """Have the compiler put one module's instructions in the plan's order; False, and a warning, where it cannot.

        `explain` says later whether the compiler asked. From here on the process has compilation-cache keys of its
        own: executables without the plan are not found, and jobs without the plan find none of these.
        """
        with DECIDING, contextlib.ExitStack() as undo:
            hook, problem = None, ""
            try:
                hook = _order_hook(self._bundle)
                if hook.mark not in _installed:
                    undo.callback(hook.register())
            except Exception as error:  # whatever is wrong with a plan must not stop the job
                problem = in_words(error)
            problem = agree(problem)
            if hook and not problem:
                hook = _installed.setdefault(hook.mark, hook)
                self._uses.append((hook.module, hook.outcome))
                undo.pop_all()
                return True
        self._uses.append(("install", lambda: f"order: not installed, {problem}"))
        if strict:
            raise Mismatch(problem)
        log.warning("lapstrake: order not installed: %s", problem)
        return False

    def explain(self) -> str:
        """One paragraph for the job's log: what of the plan runs."""
        parts = [outcome() for _, outcome in self._uses] or ["nothing was wrapped or installed"]
        if len(parts) > 1:
            parts = [f"{name}: {part}" for (name, _), part in zip(self._uses, parts, strict=True)]
        return f"lapstrake: {'. '.join(parts)}."


def _order_hook(bundle: Bundle) -> OrderHook:
    """What `install` registers. Raises Mismatch for a plan that is no order, or one for another compiler."""
    manifest = bundle.manifest()
    if manifest["structure"]:
        raise Mismatch("the plan changes the program, not only its order: use load(…).wrap(step)")
    written = manifest["versions"]
    here = VERSIONS | compiler(written["platform"])
    for name in ("jaxlib", "platform", "platform_version"):
        if written[name] != here[name]:
            raise Mismatch(
                f"the plan was made with {name} {written[name]}, this job has {here[name]}: an order belongs to "
                "one compiler, so capture and tune it again"
            )
    expected, names = manifest["scheduled"], kept_names(manifest["signature"])

    def check(module: Any) -> None:
        if differs := module_difference(expected, known_module(module), names):
            under = settings_apart(manifest["settings"])
            raise Mismatch(f"{under}{module.name}, on each device: {differs}: capture and tune it again")

    donates = expected["input_output_alias"] != "{}"
    mark = manifest["digest"][:12]
    return OrderHook(manifest["module"], bundle.ranks(manifest), here["platform"], mark, donates, check)


def compiler(platform: str) -> dict[str, str]:
    """The compiler for `platform`, whether it is jax's default or not; the default's where jax has no such devices.

    A step is compiled for the devices of its mesh: on a machine with GPUs these may be the CPU's.
    """
    try:
        client = jax.devices(platform)[0].client
    except RuntimeError:  # jax knows no such platform here
        client = jax.devices()[0].client
    return {"platform": client.platform, "platform_version": client.platform_version}
