"""The tuned program of one step: checked, recognised and compiled at its first call, and watched from then on."""

from __future__ import annotations

import hashlib
import re
import time
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.sharding import NamedSharding
from jax.tree_util import tree_leaves, tree_unflatten

from . import jax_private, lapstrake_capture
from .arguments import argument_difference, mesh_of
from .bundle import Bundle
from .explaining import fusion_in_words, order_in_words
from .mismatch import Mismatch, in_words
from .modules import kept_names, module_difference
from .order import DECIDING, OrderHook
from .processes import agree
from .program import donated, freeing, grouping, jitted, structs
from .settings import context, debugging, settings_apart


class Tuned:
    """A plan for one step. First `check`, `recognise` and `compile`, in this order: each raises Mismatch where the plan
    does not fit, and returns what has to be alike in all processes. Then `run` unless it is `outdated`."""

    run: Callable[..., Any]
    """Called as the step. Raises TypeError or ValueError, before anything runs, for other arguments than the plan's."""

    def __init__(self, bundle: Bundle, step: Any, groups: bool) -> None:
        self._bundle, self._step, self._groups = bundle, step, groups
        self._recognised = ""

    def check(self, args: Any, kwargs: Any) -> str:
        """What can be told without a compiler; the bundle's digest."""
        if jax_private.MOVED:
            raise Mismatch(jax_private.MOVED)
        step, manifest = self._step, self._bundle.manifest()
        if not manifest["structure"]:
            raise Mismatch("the plan changes only the order of instructions: use load(…).install()")
        if manifest["fingerprint"]["kind"] == "scheduled":
            raise Mismatch(
                "the plan was made from a dump of what a compiler had scheduled, which no job can be compared with: "
                "dump the module after partitioning, or capture the step"
            )
        if not hasattr(step, "lower") or isinstance(step, types.FunctionType):
            raise Mismatch(
                f"a function from jax.jit was expected, {type(step).__name__} {step!r:.60} came (it may be made by "
                "pmap, or wrapped in another): wrap the jitted function itself"
            )
        lowered, text = self._lower(args, kwargs)
        if why := lapstrake_capture.obstacle(lowered, text, args, kwargs):
            raise Mismatch(f"no plan can run this step: {why}")
        self._manifest, self._lowered, self._signature = manifest, lowered, manifest["signature"]
        self._fingerprint = _sha256(text)
        if self._signature is not None:
            self._mesh = mesh_of(lowered, (args, kwargs), self._signature["mesh"])
            if manifest["fingerprint"]["sha256"] != self._fingerprint:
                raise Mismatch(self._another_program(args, kwargs))
        self._settings = lapstrake_capture.settings()
        self._context, self._why = context(), ""
        """What jit was called in last, and why it makes another program there; empty where it does not."""
        self._verdicts = {self._context: self._why}
        self._ranks = self._bundle.ranks(manifest)
        self._program = self._bundle.read("grouped.mlirbc" if self._groups else "tuned.mlirbc", manifest)
        return str(manifest["digest"])

    def _another_program(self, args: Any, kwargs: Any) -> str:
        """What makes it another than the captured one."""
        gives = [bool(info.donated) for info in tree_leaves(self._lowered.args_info)]
        made = self._manifest["versions"].get("jax")
        lowering = "" if made in (None, jax.__version__) else f", or jax: {jax.__version__} for {made}"
        loose = ", arguments that lie on no mesh" * any(_is_loose(leaf) for leaf in tree_leaves((args, kwargs)))
        what = argument_difference(self._signature, (args, kwargs), self._mesh, gives) or (
            "the program is another than the captured one, for arguments of the same kinds (by its code, a constant, a "
            f"sharding inside it{loose}{lowering})"
        )
        under = settings_apart(self._manifest["settings"])
        return f"{under}{what}: call it as then, or capture and tune it again"

    def recognise(self, args: Any, kwargs: Any) -> str:
        """Compile the step as it is, to see whether it is the one that was dumped; nothing to do for a captured one."""
        if self._signature is not None:
            return ""
        begun, differs = time.monotonic(), ""
        for known, signature in lapstrake_capture.partitioned(self._step, self._lowered):
            differs = module_difference(self._manifest["fingerprint"], known, kept_names(signature))
            if not differs:
                break
        if differs:
            raise Mismatch(f"the step after partitioning, on each device: {differs}: dump and tune it again")
        self._signature, self._mesh = signature, mesh_of(self._lowered, (args, kwargs), signature["mesh"])
        spent = time.monotonic() - begun
        self._recognised = f" (made from a dump: the step was compiled once more, to compare it, in {spent:.1f} s)"
        return ""

    def compile(self, args: Any, kwargs: Any) -> str:
        """Compile once, with the order hook on where this jax has one; what became of the order, in words."""
        platform, digest = self._mesh.devices.flat[0].platform, self._manifest["digest"][:12]
        name = re.sub(r"\W", "_", f"{getattr(self._step, '__name__', 'step')}_lapstrake_{digest}")
        trees = self._lowered.in_tree, self._lowered.out_tree
        step = jitted(name, self._signature, self._program, self._mesh, self._weak, trees)
        by_place, by_name = tree_unflatten(trees[0], structs(self._signature, self._mesh))
        lowered = step.lower(*by_place, **by_name)
        own = getattr(getattr(self._lowered, "_lowering", None), "_compiler_options_kvs", ())  # what it was jitted with
        options = dict(own) | (grouping() if self._groups else {})
        gives = donated(lowered, self._signature)
        hook = OrderHook(f"jit_{name}", self._ranks, platform, name, donates=bool(gives))
        compiled = hook.compiled(lowered, options)
        self._text = str(compiled.as_text())
        self._order = f"order: not applied, {hook.problem}"
        if self._groups or not hook.problem:
            by = f" by scheduling groups alone: {hook.problem}" if hook.problem else ""
            self._order = order_in_words(self._text, self._ranks) + by
        forgotten = gives if "input_output_alias" not in self._text.partition("\n")[0] else ()
        self.run = freeing(compiled, forgotten) if forgotten else compiled
        self._lowered = None  # what is cleared from caches can be freed
        return self._order

    def unlike(self, args: Any, kwargs: Any) -> str:
        """Which of these arguments the plan is not for; empty where nothing differs."""
        differs = argument_difference(self._signature, (args, kwargs), self._mesh)
        return f"other arguments came: {differs}; give the plan's, or tune a plan for these" if differs else ""

    def outdated(self, args: Any, kwargs: Any) -> str:
        """Why jit would run another program by now than the plan was made for; empty where it would not.

        It traces a step again under other settings of jax, and after its caches were cleared. Then it is lowered again
        here, once, and compared. Raises Mismatch where the processes of a job come to run one the plan, one not.
        """
        now = context()
        if now == self._context and self._trace() is not None:
            return self._why
        with DECIDING:
            if unlike := self.unlike(args, kwargs):
                return unlike  # nothing is compared by them; they may also be of this process alone
            if self._trace() is None:
                self._verdicts.clear()
            if now not in self._verdicts:
                self._verdicts[now] = self._compare_again(args, kwargs)
            why = self._verdicts[now]
            if bool(why) != bool(self._why):
                _turn(why)
            self._context, self._why = now, why
            return why

    def _compare_again(self, args: Any, kwargs: Any) -> str:
        if why := debugging():
            return why
        try:
            _, text = self._lower(args, kwargs)
        except Exception as error:  # the original raises it too
            return f"it cannot be traced again ({in_words(error)})"
        if _sha256(text) == self._fingerprint:
            return ""
        apart = settings_apart(self._settings)
        why = "" if apart else " (by its code, or by what it reads beside its arguments)"
        return (
            f"{apart}traced again it is another program than the plan was made for{why}: call it as before, or capture "
            "and tune it again"
        )

    def _lower(self, args: Any, kwargs: Any) -> tuple[Any, str]:
        """The step as jit traces and lowers it now, and its text. `_trace` is None from when jit forgets the trace."""
        traced = self._step.trace(*args, **kwargs)
        self._trace: Callable[[], Any] = weakref.ref(traced.jaxpr.jaxpr)
        self._weak = [bool(result.weak_type) for result in traced.jaxpr.out_avals]
        lowered = traced.lower()
        return lowered, lowered.as_text(debug_info=False)

    def outcome(self) -> Iterator[str]:
        """Structure, order and fusion, each in words."""
        written, here = self._manifest["versions"], jax_private.VERSIONS
        others = ", ".join(f"{name} {written[name]}" for name in here if written.get(name, here[name]) != here[name])
        said = self._recognised or (f" (made with {others})" if others else "")
        applied = "applied" if self._manifest["changed"] else "nothing to apply, the plan changes order only"
        yield f"structure: {applied}{said}"
        yield self._order
        yield fusion_in_words(self._text, self._manifest["fusions"])


def _is_loose(leaf: Any) -> bool:
    """Whether an argument is an array that jit has to lay out by itself."""
    return getattr(leaf, "ndim", 0) > 0 and not isinstance(getattr(leaf, "sharding", None), NamedSharding)


def _turn(why: str) -> None:
    """From the plan to the original, or back, in all processes at the same call.

    A job's processes launch the same programs in turn, so what turns one turns all. Where it does not, they would wait
    for each other in other collectives without end, or mix their data up: better the job ends with a reason.
    """
    to = f"the original is to run, because {why}" if why else "the plan is to run again"
    if problem := agree("", "the original" if why else "the plan"):
        raise Mismatch(f"from here on {to}; but {problem}")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
