"""Run a plan made with Lapstrake inside a JAX job. This file and jax are all it needs.

    import sys
    sys.path.insert(0, "bundle")        # the folder, or the .zip, that `lapstrake tune` wrote
    import lapstrake_job

    plan = lapstrake_job.load("bundle")
    step = plan.wrap(step)              # a function from jax.jit
    ...
    print(plan.explain())               # after the first call: what of the plan runs

The wrapped step is called as before: same arguments, pytrees, shardings, donation. At its first call everything is
compared with what the plan was made for; whatever differs, the job runs its own function, unchanged, and one warning
says why (`strict=True` raises instead). In a job of several processes all of them run the plan or none does. A plan is
a whole compiled program: under a trace (an outer jit, grad, vmap, scan, eval_shape) the original runs. A bundle that
was made from a bare dump knows its job only by the module after partitioning: the step is compiled once more at its
first call, to be compared with it. Plans that change nothing but the order of a module that its compiler had scheduled
are not wrapped: `load("bundle").install()`, before the step is first called.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import graphlib
import hashlib
import heapq
import importlib
import importlib.metadata
import inspect
import itertools
import json
import logging
import os
import pathlib
import re
import sys
import threading
import time
import weakref
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

try:
    from jax._src.core import trace_state_clean as _outermost
except ImportError:  # this jax has moved it, and with it what `wrap` needs

    def _outermost() -> bool:
        return True


try:
    from jax._src.config import trace_context as _settings  # what jit traces again for
except ImportError:

    def _settings() -> tuple[Any, ...]:
        return tuple(getattr(jax.config, f"jax_{name}") for name in ("enable_x64", "default_matmul_precision"))


SCHEMA = 1
TAG = re.compile(r"lapstrake=([\w.\-]+)")
"""What instructions of the tuned module say in their op_name: their names there."""
PATIENCE_S = 600
"""How long the processes of a job wait for each other before the plan is given up."""
OBSTACLES = (
    (r"\w*python\w*callback|SendToHost|RecvFromHost|stablehlo\.(send|recv)\b", "it calls back to the host"),
    (r"!stablehlo\.token", "it has ordered effects"),
    (r'memory_kind = "(?!device)', "it uses a memory kind other than device"),
    (r"annotate_device_placement", "it moves data between memory kinds"),
    (r"_internal_pmap_axis_name|num_replicas = (?!1 )", "it is made by pmap"),
    (r"algorithm = <lhs_precision_type", "it chooses a dot algorithm, which the plan's format drops"),
)
"""Text of a lowered program → why no plan of it can run."""

log = logging.getLogger("lapstrake")
_deciding = threading.RLock()
"""Held while a plan is compared and compiled: compilers' hooks and cache keys are those of the whole process."""
_installed: dict[str, OrderHook] = {}
_agreements = itertools.count()


class Mismatch(Exception):
    """The job is not the one that the plan was made for, or this jax cannot run it: what was expected, what came, what
    to do."""


def load(path: str) -> Bundle:
    """The bundle in a folder or .zip. Nothing is read before a wrapped step's first call, or `install`."""
    return Bundle(path)


class Bundle:
    """A plan on disk, and what became of it in this process."""

    def __init__(self, path: str) -> None:
        self.path = pathlib.Path(path).absolute()  # jobs change their working directory
        self._uses: list[Wrapped | OrderHook] = []

    def wrap(self, step: Callable[..., Any], *, strict: bool = False, groups: bool = False) -> Wrapped:
        """A function that does what `step` does, the tuned way where the plan fits.

        With `groups` the compiler is asked to keep each transfer with the einsum that hides it, by XLA's scheduling
        groups: for TPU compilers where jax has no scheduler hook, which orders everything.
        """
        wrapped = Wrapped(self, step, strict=strict, groups=groups)
        self._uses.append(wrapped)
        return wrapped

    def install(self, *, strict: bool = False) -> bool:
        """Have the compiler put one module's instructions in the plan's order; False, and a warning, where it cannot.

        `explain` says later whether the compiler asked. From here on the process has compilation-cache keys of its
        own: executables without the plan are not found, and jobs without the plan find none of these.
        """
        with _deciding:
            hook = OrderHook("install", {}, "", "")
            try:
                hook = self._order_hook()
            except Exception as reason:  # whatever is wrong with a plan must not stop the job
                hook.problem = _words(reason)
            hook.problem = _agree(hook.problem)
            if not hook.problem and hook is _installed.setdefault(hook.mark, hook):
                hook.register()
            hook = _installed.get(hook.mark, hook)
            hook.installed = not hook.problem
            self._uses.append(hook)
        if not hook.installed:
            if strict:
                raise Mismatch(hook.problem)
            log.warning("lapstrake: order not installed: %s", hook.problem)
        return hook.installed

    def _order_hook(self) -> OrderHook:
        manifest = self.manifest()
        if manifest["structure"]:
            raise Mismatch("the plan changes the program, not only its order: use load(…).wrap(step)")
        written, here = manifest["versions"], versions()
        for name in ("jaxlib", "platform", "platform_version"):
            if written[name] != here[name]:
                raise Mismatch(
                    f"the plan was made with {name} {written[name]}, this job has {here[name]}: an order belongs to "
                    "one compiler, so capture and tune it again"
                )
        mark = manifest["digest"][:12]
        return OrderHook(manifest["module"], self.ranks(manifest), here["platform"], mark, manifest)

    def explain(self) -> str:
        """One paragraph for the job's log: what of the plan runs."""
        parts = [use.outcome() for use in self._uses] or ["nothing was wrapped or installed"]
        if len(parts) > 1:
            parts = [f"{use.__name__}: {part}" for use, part in zip(self._uses, parts, strict=True)]
        return f"lapstrake: {'. '.join(parts)}."

    def manifest(self) -> Mapping[str, Any]:
        try:
            content: dict[str, Any] = json.loads(self._bytes("manifest.json"))
            unsigned = {k: v for k, v in content.items() if k != "digest"}
            text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"))
            whole = content["digest"] == hashlib.sha256(text.encode()).hexdigest()
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise Mismatch(f"{self.path} is no bundle that can be read ({_words(error)}): copy it whole") from None
        if not whole:
            raise Mismatch(f"{self.path}/manifest.json was changed after it was written: copy the bundle again")
        if content["schema"] != SCHEMA:
            raise Mismatch(
                f"the bundle has schema {content['schema']}, the lapstrake_job.py that was imported reads {SCHEMA}: "
                "import the one in the bundle"
            )
        return content

    def read(self, name: str, manifest: Mapping[str, Any]) -> bytes:
        """A file of the bundle, if it is the one that was written."""
        content = self._bytes(name)
        if hashlib.sha256(content).hexdigest() != manifest["files"].get(name):
            raise Mismatch(f"{self.path}/{name} was changed after it was written: copy the bundle again")
        return content

    def ranks(self, manifest: Mapping[str, Any]) -> dict[str, int]:
        """Tag, or instruction name, → place in the plan's order."""
        orders = json.loads(self.read("order.json", manifest))
        return {tag: place for place, tag in enumerate(dict.fromkeys(t for order in orders.values() for t in order))}

    def _bytes(self, name: str) -> bytes:
        try:
            if self.path.is_dir():
                return (self.path / name).read_bytes()
            with zipfile.ZipFile(self.path) as archive:
                return archive.read(name)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise Mismatch(f"{self.path}/{name} cannot be read ({_words(error)}): copy the bundle again") from None


# --- wrapping a step -----------------------------------------------------------------------------------------------

_TRACED = (
    "it was called under a trace (an outer jit, grad, vmap, scan or eval_shape), and a plan runs only as the whole "
    "program: wrap the outermost jitted function"
)
_DEBUGGING = {
    "jax_disable_jit": "jax_disable_jit is set, and a plan runs only compiled: unset it",
    "jax_debug_nans": "jax_debug_nans is set, and a plan runs without its checks: unset it",
    "jax_debug_infs": "jax_debug_infs is set, and a plan runs without its checks: unset it",
}
"""Settings of jax under which no plan runs, whatever it was made under."""


class Wrapped:
    """A step that runs a plan where it fits, and the original everywhere else."""

    def __init__(self, bundle: Bundle, step: Callable[..., Any], *, strict: bool, groups: bool) -> None:
        functools.update_wrapper(self, step, updated=())
        self.__name__ = str(getattr(step, "__name__", "step"))
        self._bundle, self._step, self._strict, self._groups = bundle, step, strict, groups
        self._tuned: _Tuned | None = None
        self._refusal = ""
        self._passed_by: dict[str, tuple[int, str]] = {}
        """Kind of calls that did not run the plan although it fits, or before it was tried → how many, the first's
        reason."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not _outermost():
            return self._pass_by("trace", _TRACED, args, kwargs)
        for setting, why in _DEBUGGING.items():
            if getattr(jax.config, setting):
                return self._pass_by(setting, why, args, kwargs)
        tuned = self._tuned or self._decide(args, kwargs)
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
            reason = tuned.refusal(args, kwargs) or f"other arguments came: {_words(error)}"
        return self._pass_by("arguments", reason, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        # lower, trace, clear_cache and the like are the original's
        return getattr(object.__getattribute__(self, "_step"), name)

    def explain(self) -> str:
        """What of the plan runs in this step; see `Bundle.explain`."""
        return f"lapstrake: {self.outcome()}."

    def outcome(self) -> str:
        passed_by = [
            f"{'it raised' if self._strict else 'the original ran'} {count} time{'s' * (count > 1)}: {reason}"
            for count, reason in self._passed_by.values()
        ]
        verb = "it raises" if self._strict else "the original runs"
        decided = [f"{verb}: {self._refusal}"] if self._refusal else []
        decided = list(self._tuned.outcome()) if self._tuned else decided
        return "; ".join(decided + passed_by) or "the wrapped step was not called yet"

    def _decide(self, args: Any, kwargs: Any) -> _Tuned | None:
        """The tuned step; None, and `_refusal`, where it does not fit."""
        if self._refusal:
            return None
        with _deciding:
            if self._tuned or self._refusal:  # by another thread, meanwhile
                return self._tuned
            tuned = _Tuned(self._bundle, self._step, self._groups, args, kwargs)
            # Compilers of several processes may work together: none is started before all have come so far.
            for stage in (tuned.check, tuned.recognise, tuned.compile):
                state, problem = "", ""
                try:
                    state = stage()
                except Exception as error:  # whatever is wrong with a plan must not stop the job
                    problem = _words(error)
                self._refusal = _agree(problem, state)
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


class _Tuned:
    """A plan for one step and its arguments: checked, recognised and compiled, in this order.

    Each of these raises Mismatch where the plan does not fit, and returns what has to be alike in all processes.
    """

    def __init__(self, bundle: Bundle, step: Any, groups: bool, args: Any, kwargs: Any) -> None:
        self._bundle, self._step, self._groups, self._called = bundle, step, groups, (args, kwargs)
        self._names, self._parameters = sorted(kwargs), _parameters(step)
        self._compared_s = 0.0
        self._planned = self._fits = _settings()
        self._named = _named_settings()
        self._changed: dict[Any, str] = {self._planned: ""}
        """Settings of jax under which the step was compared again → why jit runs another program; empty where not."""
        self.run: Callable[..., Any]

    def check(self) -> str:
        """What can be told without a compiler; the bundle's digest."""
        bundle, step, (args, kwargs) = self._bundle, self._step, self._called
        manifest = self._manifest = bundle.manifest()
        if not manifest["structure"]:
            raise Mismatch("the plan changes only the order of instructions: use load(…).install()")
        if manifest["fingerprint"]["kind"] == "scheduled":
            raise Mismatch(
                "the plan was made from a dump of what a compiler had scheduled, which no job can be compared with: "
                "dump the module after partitioning, or capture the step"
            )
        if not hasattr(step, "lower") or inspect.isfunction(step):
            raise Mismatch(
                f"a function from jax.jit was expected, {type(step).__name__} {self._step!r:.60} came (it may be made "
                "by pmap, or wrapped in another): wrap the jitted function itself"
            )
        lowered, text = self._lower(args, kwargs)
        self._lowered, self._text_hash = lowered, hashlib.sha256(text.encode()).hexdigest()
        if jax.tree_util.tree_structure((args, kwargs)) != lowered.in_tree:
            raise Mismatch("the step has static arguments, which a plan cannot carry: bind them before jax.jit")
        for pattern, why in OBSTACLES:
            if re.search(pattern, text):
                raise Mismatch(f"no plan can run this step, because {why}: leave that out of it, or run it as it is")
        self._signature: Any = manifest["signature"]
        if self._signature is not None:
            self._mesh = _check_signature(manifest["signature"], lowered, self._called, self._parameters)
            if manifest["fingerprint"]["sha256"] != self._text_hash:
                made = manifest["versions"].get("jax", jax.__version__)
                lowering = f", or jax: {jax.__version__} for {made}" if made != jax.__version__ else ""
                raise Mismatch(
                    "the program is another than the captured one, for the same arguments (by its code, a constant, a "
                    f"sharding inside it{lowering}): capture and tune it again"
                )
        results = jax.tree_util.tree_leaves(step.eval_shape(*args, **kwargs))
        self._weak = [bool(getattr(r, "weak_type", False)) for r in results]
        self._ranks = bundle.ranks(manifest)
        self._program = bundle.read("grouped.mlirbc" if self._groups else "tuned.mlirbc", manifest)
        digest: str = manifest["digest"]
        return digest

    def recognise(self) -> str:
        """Compile the step as it is, to see whether it is the one that was dumped; nothing to do for a captured one."""
        if self._signature is not None:
            return ""
        capture, names = self._capture(), self._parameters
        begun = time.monotonic()
        with _no_cache():
            # Dumps are also made with the compiler's own decomposition switched off, where it has one.
            for whole in (False, True)[: 1 + capture.leaves_whole(self._lowered)]:
                compiled, found = capture.partitioned(self._lowered, whole=whole)
                signature = self._signature = capture.signature(self._lowered, compiled)
                problem = _module_difference(self._manifest["fingerprint"], found, signature, names)
                if not problem:
                    break
        if problem:
            raise Mismatch(f"the step after partitioning, on each device: {problem}: dump and tune it again")
        self._mesh = _check_signature(signature, self._lowered, self._called, names)
        self._compared_s = time.monotonic() - begun
        return ""

    def _capture(self) -> Any:
        """The module lapstrake_capture, which bundles made from dumps bring."""
        sys.path.insert(0, str(self._bundle.path))
        try:
            return importlib.import_module("lapstrake_capture")
        except ImportError:
            raise Mismatch(f"{self._bundle.path}/lapstrake_capture.py is not found: copy the bundle whole") from None
        finally:
            sys.path.remove(str(self._bundle.path))

    def compile(self) -> str:
        """Compile once, with the order hook on where this jax has one; what became of the order, in words."""
        digest = self._manifest["digest"][:12]
        name = re.sub(r"\W", "_", f"{getattr(self._step, '__name__', 'step')}_lapstrake_{digest}")
        (args, kwargs), platform = self._called, self._mesh.devices.flat[0].platform
        arguments = (*args, *(kwargs[name] for name in self._names))
        trees = jax.tree_util.tree_structure(arguments), self._lowered.out_tree
        lowered = jitted(name, self._signature, self._program, self._mesh, self._weak, trees).lower(*arguments)
        donated = _donated(lowered)
        hook = OrderHook(f"jit_{name}", self._ranks, platform, name)
        unregister = hook.register(donates=bool(donated))
        try:
            with _cache_hits() as hits:
                compiled = lowered.compile(self._options() or None)
        finally:
            unregister()
        if not (hook.problem or hook.fired or hits):
            hook.problem = f"jax took a hook for {platform}, but its compiler did not ask for it"
        self._text = compiled.as_text()
        grouped = self._groups and bool(hook.problem)
        self._order = order_in_words(*standing(self._text, self._ranks), "" if grouped else hook.problem)
        self._order += f" by scheduling groups alone: {hook.problem}" if grouped else hook.noted
        self.run = _callable(compiled, self._names, donated if hook.noted else ())
        self._called, self._lowered = ((), {}), None  # arrays, and what is cleared from caches, can be freed
        return self._order

    def _options(self) -> dict[str, Any]:
        """What the step was jitted with, and what its plan needs."""
        own = getattr(getattr(self._lowered, "_lowering", None), "_compiler_options_kvs", ())
        return {**dict(own), **(grouping() if self._groups else {})}

    def outcome(self) -> Iterator[str]:
        """Structure, order and fusion, each in words."""
        written, here = self._manifest["versions"], versions()
        others = ", ".join(f"{k} {written[k]}" for k in ("jax", "jaxlib") if written.get(k, here[k]) != here[k])
        said = f" (made with {others})" if others else ""
        if self._compared_s:
            said = f" (made from a dump: the step was compiled once more, to compare it, in {self._compared_s:.1f} s)"
        changes = self._manifest.get("changed", True)
        yield f"structure: {'applied' if changes else 'nothing to apply, the plan changes order only'}{said}"
        yield self._order
        yield _fusion_in_words(self._text, self._manifest["fusions"])

    def refusal(self, args: Any, kwargs: Any) -> str:
        """Which of these arguments the compiled step does not take; empty where nothing differs."""
        written = self._signature["arguments"]
        differs = _argument_difference(written, (args, kwargs), self._mesh, self._parameters)
        return f"other arguments came: {differs}; give the plan's, or tune a plan for these" if differs else ""

    def outdated(self, args: Any, kwargs: Any) -> str:
        """Why jit would run another program by now than the plan was made for; empty where it would not.

        It traces a step again under other settings of jax, and after its caches were cleared. Then it is lowered again
        here, once, and compared.
        """
        settings = _settings()
        if self._trace() is not None and settings == self._fits:
            return ""
        with _deciding:
            if self._trace() is None:
                self._changed.clear()
            if settings not in self._changed:
                if differs := self.refusal(args, kwargs):
                    return differs  # nothing can be compared by them
                self._changed[settings] = self._compare_again(settings, args, kwargs)
            self._fits = None if self._changed[settings] else settings
            return self._changed[settings]

    def _compare_again(self, settings: Any, args: Any, kwargs: Any) -> str:
        try:
            text = self._lower(args, kwargs)[1]
        except Exception as error:  # the original raises it too
            return f"it cannot be traced again ({_words(error)})"
        if hashlib.sha256(text.encode()).hexdigest() == self._text_hash:
            return ""
        if settings == self._planned:
            return (
                "jax's caches of it were cleared, and traced again it is another program than the plan was made for "
                "(by its code, or by what it reads beside its arguments): capture and tune it again"
            )
        now = _named_settings()
        others = [f"{name} is {now[name]} (was {was})" for name, was in self._named.items() if now[name] != was]
        what = ", ".join(others[:3]) or "the context that it is called in is another (a mesh, a device)"
        return (
            f"{what}, and under it jit makes another program than the plan was made for: call it as before, or capture "
            "and tune it so"
        )

    def _lower(self, args: Any, kwargs: Any) -> tuple[Any, str]:
        """The step as jit lowers it now, and its text. `_trace` is None from when jit forgets what it traced."""
        traced = self._step.trace(*args, **kwargs)
        try:
            self._trace: Callable[[], Any] = weakref.ref(traced.jaxpr.jaxpr)
        except (AttributeError, TypeError):  # this jax keeps traces elsewhere: cleared caches are not noticed
            self._trace = lambda: self
        lowered = traced.lower()
        return lowered, lowered.as_text(debug_info=False)


def jitted(
    name: str,
    signature: Mapping[str, Any],
    program: bytes,
    mesh: Any,
    weak: Sequence[bool],
    trees: tuple[Any, Any] | None = None,
) -> Any:
    """A jitted function whose body is the tuned program, one call on each device: of leaves, or of what `trees` says,
    the structure of its arguments and of its results."""
    arguments, results = signature["arguments"], signature["results"]
    tree = jax.tree_util.tree_structure(tuple(range(len(arguments))))
    tree, out_tree = trees or (tree, jax.tree_util.tree_structure(tuple(range(len(results)))))
    kept = [k for k, leaf in enumerate(arguments) if leaf["kept"]]
    shapes = [
        jax.core.ShapedArray(tuple(leaf["local_shape"]), jax.numpy.dtype(leaf["dtype"]), weak_type=weakly)
        for leaf, weakly in zip(results, weak, strict=True)
    ]
    primitive = _primitive(name, program, shapes)
    on_device: Any = jax.shard_map(
        lambda *local: tuple(primitive.bind(*local)),
        mesh=mesh,
        in_specs=tuple(_spec(arguments[k]) for k in kept),
        out_specs=tuple(_spec(leaf) for leaf in results),
        check_vma=False,
    )

    def run(*called: Any) -> Any:
        leaves = jax.tree_util.tree_leaves(called)
        return jax.tree_util.tree_unflatten(out_tree, on_device(*(leaves[k] for k in kept)))

    def lie(leaves: Sequence[Mapping[str, Any]]) -> list[Any]:
        return [jax.sharding.NamedSharding(mesh, _spec(leaf)) for leaf in leaves]

    run.__name__ = name
    donated = jax.tree_util.tree_unflatten(tree, [leaf["donated"] for leaf in arguments])
    return jax.jit(
        run,
        in_shardings=jax.tree_util.tree_unflatten(tree, lie(arguments)),
        out_shardings=jax.tree_util.tree_unflatten(out_tree, lie(results)),
        donate_argnums=tuple(k for k, argument in enumerate(donated) if any(jax.tree_util.tree_leaves(argument))),
    )


def _primitive(name: str, program: bytes, shapes: Sequence[Any]) -> Any:
    """A primitive whose lowering is a call of the program, put into the module that jit builds."""
    try:
        from jax._src import core
        from jax._src.interpreters import mlir
        from jax._src.lib.mlir import ir  # type: ignore[attr-defined]  # private in jax, and untyped
        from jax._src.lib.mlir.dialects import func
    except ImportError as error:
        raise Mismatch(
            f"jax {jax.__version__} has moved what is needed to run the plan ({error}): use a jax that Lapstrake names"
        ) from None
    primitive = core.Primitive(name)
    primitive.multiple_results = True
    primitive.def_abstract_eval(lambda *_: list(shapes))

    def lower(context: Any, *operands: Any) -> Any:
        into = context.module_context
        inlined = mlir.merge_mlir_modules(
            into.module, f"{name}_main", ir.Module.parse(program), dst_symtab=into.symbol_table
        )
        types = [ir.RankedTensorType.get(a.shape, mlir.dtype_to_ir_type(a.dtype)) for a in context.avals_out]
        return func.CallOp(types, ir.FlatSymbolRefAttr.get(inlined), operands).results

    mlir.register_lowering(primitive, lower)
    return primitive


def grouping() -> dict[str, str]:
    """Options with which compilers keep scheduling groups, beside what the job disables already."""
    disabled = re.findall(r"--xla_disable_hlo_passes=(\S+)", os.environ.get("XLA_FLAGS", ""))
    return {"xla_disable_hlo_passes": ",".join([*disabled[-1:], "legalize-scheduling-annotations"])}


def _callable(compiled: Any, names: Sequence[str], donated: Sequence[int]) -> Callable[..., Any]:
    """The compiled function as its step is called, with the last arguments by name; leaves that are donated, which it
    does not know of, are deleted after each call, as if it had reused them."""
    if not names and not donated:
        return compiled  # type: ignore[no-any-return]  # jax.stages.Compiled can be called

    def run(*args: Any, **kwargs: Any) -> Any:
        if sorted(kwargs) != names:
            raise TypeError("the arguments by name are others")
        args = (*args, *(kwargs[name] for name in names))
        results = compiled(*args)
        leaves = jax.tree_util.tree_leaves(args) if donated else ()
        for leaf in (leaves[number] for number in donated):
            if isinstance(leaf, jax.Array):
                leaf.delete()
        return results

    return run


def _donated(lowered: Any) -> tuple[int, ...]:
    """Which leaves of a lowered function's arguments give their buffers to results."""
    kept = lowered._lowering.compile_args["kept_var_idx"]
    main = re.search(r"@main\((.*?)\) -> ", lowered.as_text(), re.DOTALL)
    parts = re.split(r"%arg\d+: ", main[1])[1:] if main else []
    found = ("tf.aliasing_output" in part or "jax.buffer_donor" in part for part in parts)
    return tuple(number for number, donated in zip(sorted(kept), found, strict=True) if donated)


# --- order ---------------------------------------------------------------------------------------------------------

_DROPPED = (
    f"the scheduler hook of jaxlib {importlib.metadata.version('jaxlib')} makes compilers forget donation, which would "
    "cost more memory than an order gains: jaxlib 0.12 keeps both"
)
_FREED = ", donated arguments are freed after each step instead of reused in it (this jaxlib's hook forgets donation)"


class OrderHook:
    """Puts the instructions of one module into a chosen order, after the compiler has scheduled it."""

    def __init__(
        self, module: str, ranks: Mapping[str, int], platform: str, mark: str, manifest: Mapping[str, Any] | None = None
    ) -> None:
        """`mark` keeps what is compiled under the hook apart in the persistent cache; `manifest`, for `install`, says
        what the module has to be known by, whose instructions `ranks` then calls by their names."""
        self.__name__ = self._module = module
        self._ranks, self._platform, self.mark, self._manifest = ranks, platform, mark, manifest
        self.fired = 0
        self.installed = True
        self.problem = ""
        self.noted = ""
        """What is said of the order beside that it was applied."""

    def register(self, *, donates: bool = False) -> Callable[[], None]:
        """From now on compilers ask, until what is returned is called; `problem` says why this jax cannot do it.

        `donates` says whether the module has donated arguments, where no manifest does.
        """
        donates = donates or bool(self._manifest and self._manifest["scheduled"]["input_output_alias"] != "{}")
        if donates and _hook_forgets_donation(self._platform):
            if self._platform != "cpu":  # where everything can be tried and nothing is gained, memory matters less
                self.problem = _DROPPED
                return lambda: None
            self.noted = _FREED
        try:
            import jax.extend.xla as xla

            where: Any = {"stage": xla.PipelineStage.POST_SCHEDULER, "platforms": self._platform}
            xla.register_hlo_module_transformation(self._call, name=self.mark, **where)
        except Exception as error:
            self.problem = f"jax {jax.__version__} has no scheduler hook ({_words(error)}): use 0.10.2 or later"
            return lambda: None
        unmark = _mark_cache(self.mark)

        def unregister() -> None:
            xla.clear_hlo_module_transformation(self.mark, **where)
            unmark()

        return unregister

    def outcome(self) -> str:
        """For `install`: whether the compiler asked."""
        if not self.installed:
            return f"order: not installed, {self.problem}"
        if self.fired:
            others = f"; another module of this name keeps its own: {self.problem}" if self.problem else ""
            return f"order: applied to {self._module} ({len(self._ranks)} instructions){self.noted}{others}"
        if self.problem:
            return f"order: not applied, {self.problem}"
        return (
            f"order: the compiler has not asked for it; {self._module} was not compiled since it was installed, or "
            "came from the compilation cache, where only what was compiled under this plan is found"
        )

    def _call(self, serialised: bytes) -> bytes | None:
        try:
            return self._reorder(serialised)
        except Exception as error:  # it would fail the job's compilation
            self.problem = _words(error)
            log.warning("lapstrake: order not applied: %s", self.problem)
            return None

    def _reorder(self, serialised: bytes) -> bytes | None:
        from jax._src.lib import hlo  # type: ignore[attr-defined]  # private in jax, and untyped

        module = hlo.HloModule.from_serialized_hlo_module_proto(serialised)
        if module.name.partition(".")[0] != self._module.partition(".")[0]:
            return None
        if self._manifest:
            options = hlo.HloPrintOptions()
            options.print_large_constants, options.print_metadata = True, False
            found = known_by(module.to_string(options))
            if differs := _module_difference(self._manifest["scheduled"], found, self._manifest["signature"]):
                raise Mismatch(f"{module.name}, on each device: {differs}: capture and tune it again")
        schedule = module.schedule()
        if schedule is None:
            raise Mismatch(f"{module.name} was expected with a schedule, and came without: run another jaxlib")
        for computation in module.computations():
            try:
                sequence = list(schedule.sequence(computation))
            except (RuntimeError, LookupError):
                continue  # part of a fusion: it has no order of its own
            ranks = [
                self._ranks.get(i.name) if self._manifest else _rank_in_line(i.to_string(), self._ranks)
                for i in sequence
            ]
            if sum(rank is not None for rank in ranks) > 1:
                schedule.set_sequence(computation, [sequence[k] for k in _sorted_by(sequence, ranks)])
        schedule.verify()
        module.set_schedule(schedule)
        result: bytes = module.as_serialized_hlo_module_proto()
        self.fired += 1
        return result


@functools.cache
def _hook_forgets_donation(platform: str) -> bool:
    """Whether a module that goes through a hook is compiled without its aliases, as by jaxlib 0.10.2; tried on a small
    one."""

    def lapstrake_probe(a: Any) -> Any:
        return a + 1

    hook = OrderHook("jit_lapstrake_probe", {}, platform, "lapstrake_probe")
    argument = jax.device_put(np.zeros(8), jax.local_devices(backend=platform)[0])
    lowered = jax.jit(lapstrake_probe, donate_argnums=0).lower(argument)
    with _no_cache():  # from which it would come without the hook
        unregister = hook.register()
        text = str(lowered.compile().as_text())
        unregister()
    return bool(hook.fired) and "input_output_alias" not in text.partition("\n")[0]


def _rank_in_line(line: str, ranks: Mapping[str, int]) -> int | None:
    """Place in the plan of the instruction on a line of HLO text, by the last tag in its op_name."""
    name = re.search(r'op_name="((?:[^"\\]|\\.)*)"', line)
    tags = TAG.findall(name[1]) if name else []
    opcode = re.search(r" ([a-z][a-z0-9\-]*)\(", line.partition(" = ")[2])
    if not tags or opcode is None or opcode[1] in ("copy", "bitcast", "parameter", "get-tuple-element", "tuple"):
        return None
    end = opcode[1].rpartition("-")[2]
    if end in ("start", "done"):
        return ranks.get(f"{tags[-1]}/{end}", ranks.get(tags[-1]))
    # A compiler without asynchronous transfers does the whole where the plan starts it.
    return ranks.get(tags[-1], ranks.get(f"{tags[-1]}/start"))


def _sorted_by(sequence: Sequence[Any], ranks: Sequence[int | None]) -> list[int]:
    """A topological order by rank; what has none goes right before the first that needs it, else stays in turn."""
    at = {instruction.name: k for k, instruction in enumerate(sequence)}
    needs: dict[int, set[int]] = {}
    for k, instruction in enumerate(sequence):
        controls = getattr(instruction, "control_predecessors", tuple)  # not in every jaxlib
        needs[k] = {at[o.name] for o in (*instruction.operands(), *controls()) if o.name in at}
    keys = [float("inf") if rank is None else rank for rank in ranks]
    for k in reversed(range(len(sequence))):
        for before in needs[k]:
            if ranks[before] is None:
                keys[before] = min(keys[before], keys[k])
    sorter = graphlib.TopologicalSorter(needs)
    sorter.prepare()
    ready: list[tuple[float, int]] = []
    order: list[int] = []
    while sorter.is_active():
        for k in sorter.get_ready():
            heapq.heappush(ready, (keys[k], k))
        order.append(heapq.heappop(ready)[1])
        sorter.done(order[-1])
    return order


# --- what became of the order --------------------------------------------------------------------------------------


def standing(text: str, ranks: Mapping[str, int]) -> tuple[int, int, int, int]:
    """How many of the plan's instructions a compiled text has in the plan's order, elsewhere, inside fusions, not."""
    computations, fused = _computations(text)
    outside: set[int] = set()
    inside: set[int] = set()
    in_order = 0
    for name, lines in computations.items():
        places = [r for r in (_rank_in_line(line, ranks) for line in lines) if r is not None]
        if name in fused:
            inside |= set(places)
            continue
        fresh = [p for p in dict.fromkeys(places) if p not in outside]
        outside |= set(fresh)
        longest: list[int] = []  # ends of the longest increasing runs
        for place in fresh:
            at = bisect.bisect_left(longest, place)
            longest[at : at + 1] = [place]
        in_order += len(longest)
    # A done that the compiler has no instruction for went with its start.
    whole = {r for t, r in ranks.items() if t.endswith("/done") and ranks.get(t[:-5] + "/start") in outside} - outside
    gone = len(ranks) - len(outside | inside | whole)
    return in_order, len(outside) - in_order, len(inside - outside - whole), gone


def _computations(text: str) -> tuple[dict[str, list[str]], set[str]]:
    """Instruction lines of each computation of a module's text, and which computations are fusions' insides."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        header = re.match(r"(?:ENTRY )?%?([\w.\-]+) \(.*\{$", line)
        if header:
            lines = found.setdefault(header[1], [])
        elif " = " in line:
            lines.append(line)
    return found, set(re.findall(r" fusion\(.*?calls=%?([\w.\-]+)", text))


def order_in_words(in_order: int, elsewhere: int, fused: int, gone: int, problem: str) -> str:
    total = in_order + elsewhere + fused + gone
    if problem:
        return f"order: not applied, {problem}"
    if not in_order:
        return "order: not applied, the compiled text has none of the plan's instructions"
    if in_order == total:
        return f"order: applied ({total} of {total})"
    rest = ((elsewhere, "elsewhere"), (fused, "fused away"), (gone, "replaced by the compiler"))
    return f"order: partly applied ({in_order} of {total}, {', '.join(f'{n} {what}' for n, what in rest if n)})"


def _fusion_in_words(text: str, wanted: Sequence[Sequence[str]]) -> str:
    """How many of the plan's fusions the compiler made too; it decides them itself."""
    if not wanted:
        return "fusion: the plan has none"
    computations, fused = _computations(text)
    made = [set(TAG.findall("\n".join(computations[name]))) for name in fused if name in computations]
    kept = sum(any(set(tags) <= tagged for tagged in made) for tags in wanted)
    how = "applied" if kept == len(wanted) else "partly" if kept else "not applied"
    return f"fusion: {how} ({kept} of {len(wanted)}, by the compiler's own choice)"


# --- what is compared ----------------------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """What a plan depends on."""
    client = jax.devices()[0].client
    return {
        "jax": jax.__version__,
        "jaxlib": importlib.metadata.version("jaxlib"),
        "platform": client.platform,
        "platform_version": client.platform_version,
    }


def _named_settings() -> dict[str, Any]:
    """jax's settings, in this thread."""
    return {name: getattr(jax.config, name) for name in jax.config.values if hasattr(jax.config, name)}


def known_by(text: str) -> dict[str, str]:
    """What a module, printed without metadata, is known by: a hash of its text, and what its header says."""
    header, _, body = text.partition("\n")
    body = body[max(body.find("\n%"), body.find("\nENTRY") if "\n%" not in body else 0) :]
    said = {"sha256": hashlib.sha256(body.encode()).hexdigest()}
    for name in ("entry_computation_layout", "input_output_alias", "buffer_donor"):
        found = re.search(name + r"=(\{.*?\})(?=, [a-z_]+=|$)", header)
        said[name] = found[1] if found else "{}"
    return said


def _check_signature(written: Mapping[str, Any], lowered: Any, called: Any, names: Sequence[str]) -> Any:
    """The job's mesh, once every argument and result is known to be as written."""
    mesh = _mesh_of(lowered, called, written["mesh"])
    donated = [bool(info.donated) for info in jax.tree_util.tree_leaves(lowered.args_info)]
    results = [f"{r.dtype}{list(r.shape)}" for r in jax.tree_util.tree_leaves(lowered.out_info)]
    planned = [f"{r['dtype']}{r['shape']}" for r in written["results"]]
    differs = _argument_difference(written["arguments"], called, mesh, names, donated)
    if differs := differs or _unlike("result", range(len(results)), results, planned):
        either = "give it so, or " * (" is given by " in differs)
        raise Mismatch(f"{differs}: {either}capture and tune it again")
    if any(str(leaf["dtype"]).startswith("key<") for leaf in (*written["arguments"], *written["results"])):
        raise Mismatch("a typed PRNG key is among the arguments or results: pass its jax.random.key_data")
    return mesh


def _argument_difference(
    written: Sequence[Mapping[str, Any]], called: Any, mesh: Any, names: Sequence[str], donated: Sequence[bool] = ()
) -> str:
    """How the first argument that differs does, by its path; `donated` is not known of later calls."""
    plan = {leaf["path"]: leaf for leaf in written}
    there = {path: _described(f"{w['dtype']}{w['shape']}", _spec(w), w["donated"]) for path, w in plan.items()}
    here = {}
    for number, (keys, leaf) in enumerate(jax.tree_util.tree_flatten_with_path(called)[0]):
        path = jax.tree_util.keystr(keys)
        wanted = plan.get(path, {"spec": (), "donated": False, "kept": False})
        given = donated[number] if donated else wanted["donated"]
        here[path] = _described(_type(leaf), _place(leaf, wanted, mesh), given)
    for path in [path for path in here if path not in there]:
        other, way = _given_otherwise(path, names)
        if other in there and other not in here:
            del here[path]
            here[other], there[other] = f"given by {way}", f"one by {'position' if way == 'keyword' else 'keyword'}"
    paths = list(dict.fromkeys((*there, *here)))
    spoken = [_spoken(path, names) for path in paths]
    return _unlike("argument", spoken, [here.get(p, "missing") for p in paths], [there.get(p, "none") for p in paths])


def _given_otherwise(path: str, names: Sequence[str]) -> tuple[str, str]:
    """The path that an argument given by keyword has by position, or the reverse, and how the first gives it."""
    by_name, argument, rest = _parts(path)
    if by_name == "1":
        return f"[0][{names.index(argument)}]{rest}" if argument in names else "", "keyword"
    return f"[1]['{names[int(argument)]}']{rest}" if int(argument) < len(names) else "", "position"


def _described(type_: str, place: Any, donated: bool) -> str:
    return f"{type_} as {place}{', donated' * donated}"


def _type(leaf: Any) -> str:
    try:
        kind = jax.typeof(leaf)
    except TypeError:
        return type(leaf).__name__
    return f"{kind.dtype}{list(kind.shape)}"


def _place(leaf: Any, wanted: Mapping[str, Any], mesh: Any) -> Any:
    """A leaf's PartitionSpec: the plan's, where it does not matter or means the same."""
    sharding, spec = getattr(leaf, "sharding", None), _spec(wanted)
    if not isinstance(sharding, jax.sharding.NamedSharding) or not wanted["kept"]:
        return spec
    if sharding.is_equivalent_to(jax.sharding.NamedSharding(mesh, spec), leaf.ndim):
        return spec
    return sharding.spec if sharding.mesh == mesh else f"{sharding.spec} of other devices"


def _module_difference(
    expected: Mapping[str, str], found: Mapping[str, str], signature: Mapping[str, Any], names: Sequence[str] = ()
) -> str:
    """How a module, as one device runs it, is another than the plan's; empty where it is not."""
    expected = {"buffer_donor": found["buffer_donor"], **expected}  # older bundles do not say it
    here, there = _shapes(found), _shapes(expected)
    paths = [_spoken(leaf["path"], names) for leaf in signature["arguments"] if leaf["kept"]]
    differs = _unlike("argument", paths, here[0], there[0]) or _unlike("result", (), here[1], there[1])
    if differs:
        return differs
    headers = {"entry_computation_layout": "layout", "input_output_alias": "use of donated arguments"}
    for name, what in {**headers, "buffer_donor": "donation"}.items():
        if found[name] != expected[name]:
            return f"its {what} is {found[name]:.200}, the plan was made for {expected[name]:.200}"
    if found["sha256"] != expected["sha256"]:
        return "it has other instructions or constants than the module that the plan was made for"
    return ""


def _shapes(known: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Arguments and results in a module's header: `{(f32[8,8]{1,0}, …)->(…)}`, and which arguments are donated."""
    arguments, results = (
        re.findall(r"\w+\[[^\]]*\](?:\{[^{}]*\})?", side)
        for side in known["entry_computation_layout"][1:-1].split("->")
    )
    aliased = re.findall(r": \((\d+)", known["input_output_alias"])
    for number in (*aliased, *re.findall(r"\((\d+), \{", known.get("buffer_donor", ""))):
        arguments[int(number)] += ", donated"
    return arguments, results


def _unlike(kind: str, names: Sequence[Any], here: Sequence[str], there: Sequence[str]) -> str:
    """The first argument or result that is another than the plan's, and how many more are; empty where none is."""
    if len(here) != len(there):
        return f"it has {len(here)} {kind}s, the plan was made for {len(there)}"
    called = names if len(names) == len(here) else range(len(here))
    parts = [
        f"{kind} {name} is {one}, the plan was made for {other}"
        for name, one, other in zip(called, here, there, strict=True)
        if one != other
    ]
    others = f" (and {len(parts) - 1} other{'s' * (len(parts) > 2)})" if len(parts) > 1 else ""
    return "".join(parts[:1]) + others


def _mesh_of(lowered: Any, called: Any, written: Mapping[str, Any]) -> Any:
    """The mesh that the arguments lie on, or that the step was jitted for, if it is the one of the plan."""
    compile_args = getattr(getattr(lowered, "_lowering", None), "compile_args", {})
    leaves = jax.tree_util.tree_leaves(called)
    shardings = [*(getattr(leaf, "sharding", None) for leaf in leaves), *compile_args.get("in_shardings", ())]
    named = [s.mesh for s in shardings if isinstance(s, jax.sharding.NamedSharding)]
    meshes = [mesh for mesh in named if isinstance(mesh, jax.sharding.Mesh)]
    there = dict(zip(written["names"], written["sizes"], strict=True))
    size = int(np.prod(written["sizes"], dtype=int))
    if not meshes:
        raise Mismatch(f"no argument lies on a mesh, the plan was made for {there}: put them on it, or jit for it")
    mesh = next((m for m in meshes if m.size == size), meshes[0])
    here = _axes(mesh)
    if list(here.items()) != list(there.items()):
        raise Mismatch(f"the mesh is {here}, the plan was made for {there}: capture and tune it again")
    # Captured without devices, their order is not known; the plan's results do not depend on it.
    ids = [d.id for d in mesh.devices.flat]
    order = [sorted(ids).index(id_) for id_ in ids]
    if written["devices"] not in (None, order):
        raise Mismatch(
            f"the mesh has its devices in the order {order[:8]}, the plan was made for {written['devices'][:8]}"
            ": make the mesh alike, or capture and tune it again"
        )
    return mesh


def _axes(mesh: Any) -> dict[str, int]:
    return dict(zip(mesh.axis_names, mesh.axis_sizes, strict=True))


def _spec(leaf: Mapping[str, Any]) -> Any:
    return jax.sharding.PartitionSpec(*(tuple(p) if isinstance(p, list) else p for p in leaf["spec"]))


def _parameters(step: Any) -> list[str]:
    """What a step calls the arguments that it gets by place."""
    try:
        parameters = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


_PATH = re.compile(r"\[(\d)\]\['?(\w+)'?\](.*)", re.DOTALL)


def _parts(path: str) -> Sequence[str]:
    """Whether an argument is given by place (0) or by name (1), which one, and the path inside it."""
    found = _PATH.match(path)
    assert found is not None, path  # every leaf lies in the pair of args and kwargs
    return found.groups()


def _spoken(path: str, names: Sequence[str]) -> str:
    """An argument's path as its step writes it: `state['w']` for `[0][0]['w']`, in which arguments by place come
    first."""
    by_name, argument, rest = _parts(path)
    if by_name == "0" and int(argument) < len(names):
        argument = names[int(argument)]
    return f"{argument}{rest}{' (by name)' * (by_name == '1')}"


# --- what belongs to the whole process, or to all of the job's ------------------------------------------------------


def _mark_cache(text: str) -> Callable[[], None]:
    """Keep executables that were compiled with the hook apart from others in the persistent cache; returns the undo."""
    try:
        from jax._src import cache_key

        before = cache_key.custom_hook
        cache_key.custom_hook = lambda: f"{before()} lapstrake {text}"
        return lambda: setattr(cache_key, "custom_hook", before)
    except (ImportError, AttributeError):
        without = contextlib.ExitStack()
        without.enter_context(_no_cache())
        return without.close


@contextlib.contextmanager
def _no_cache() -> Iterator[None]:
    """Nothing is read from the persistent cache meanwhile, nor written to it."""
    from jax.experimental.compilation_cache import compilation_cache

    was = jax.config.jax_enable_compilation_cache  # type: ignore[attr-defined]  # defined at run time
    jax.config.update("jax_enable_compilation_cache", val=False)
    compilation_cache.reset_cache()  # jax remembers what it found set
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", val=was)
        compilation_cache.reset_cache()


@contextlib.contextmanager
def _cache_hits() -> Iterator[list[str]]:
    """The executables that come from the persistent cache meanwhile: hooks are not asked about them."""
    hits: list[str] = []

    def listen(event: str, **_: Any) -> None:
        if event.endswith("/cache_hits"):
            hits.append(event)

    jax.monitoring.register_event_listener(listen)
    try:
        yield hits
    finally:
        jax.monitoring.unregister_event_listener(listen)


def _agree(problem: str, state: str = "") -> str:
    """The first problem that any process of the job has; empty when none has and all are in the same state.

    Process 0 decides for all, so that one that comes late cannot end up with another verdict.
    """
    count, own, asked = jax.process_count(), jax.process_index(), 0
    if count == 1:
        return problem
    from jax._src.distributed import global_state

    client: Any = global_state.client
    if client is None:
        return problem or "the job's processes cannot agree: call jax.distributed.initialize"
    key, verdict, states = f"lapstrake/{next(_agreements)}", "", set()
    try:
        client.key_value_set(f"{key}/{own}", json.dumps([problem, state]))
        for asked in range(count) if own == 0 else ():
            theirs, state = json.loads(client.blocking_key_value_get(f"{key}/{asked}", PATIENCE_S * 1000))
            verdict = verdict or (f"process {asked}: {theirs}" if theirs else "")
            states.add(state)
        if len(states) > 1:
            verdict = verdict or f"the processes differ ({'; '.join(sorted(states))}): give all one bundle"
    except Exception as error:  # whatever is wrong with a plan must not stop the job
        verdict = f"process {asked} did not answer within {PATIENCE_S} s ({_words(error)}): wrap the step in all"
    try:
        if own == 0:
            client.key_value_set(f"{key}/verdict", verdict or "-")
        verdict = client.blocking_key_value_get(f"{key}/verdict", 2 * PATIENCE_S * 1000)
    except Exception as error:
        verdict = f"process 0 did not answer ({_words(error)}): look for why it ended"
    return problem or verdict.removeprefix("-")


def _words(error: BaseException) -> str:
    said = " ".join(str(error).split())
    return said if isinstance(error, Mismatch) else f"{type(error).__name__}: {said[:400]}"


if __name__ == "__main__":
    print(f"{sys.argv[0]} is imported by a job; see its first lines.")
