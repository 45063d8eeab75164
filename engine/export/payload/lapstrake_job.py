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

From the top: the bundle, the wrapped step, its plan, the program that runs, the order that the compiler is asked for,
what is said of it, how programs are compared, and what is all processes'.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
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
import math
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

try:  # all that jax keeps private; 0.10.2 and 0.12 have it here
    from jax._src import cache_key, core
    from jax._src.config import persistent_cache_min_compile_time_secs, trace_context
    from jax._src.distributed import global_state
    from jax._src.interpreters import mlir
    from jax._src.lib import hlo  # type: ignore[attr-defined]  # private in jax, and untyped
    from jax._src.lib.mlir import ir  # type: ignore[attr-defined]  # private in jax, and untyped
    from jax._src.lib.mlir.dialects import func

    MOVED = ""
except ImportError as error:
    MOVED = f"jax {jax.__version__} has moved what a plan needs of it ({error}): use a jax that Lapstrake names"

SCHEMA = 1
TAG = re.compile(r"lapstrake=([\w.\-]+)")
"""What instructions of the tuned module say in their op_name: their names there."""
PATIENCE_S = 600
"""How long the processes of a job wait for each other before the plan is given up."""
JAXLIB = importlib.metadata.version("jaxlib")
FORGETS_DONATION = tuple(int(part) for part in JAXLIB.split(".")[:2]) < (0, 12)
"""Whether what goes through a scheduler hook is compiled without its aliases: seen in jaxlib 0.10.2, not in 0.12."""
OBSTACLES = (
    (r"\w*python\w*callback|SendToHost|RecvFromHost|stablehlo\.(send|recv)\b", "it calls back to the host"),
    (r"!stablehlo\.token", "it has ordered effects"),
    (r'memory_kind = "(?!device)', "it uses a memory kind other than device"),
    (r"annotate_device_placement", "it moves data between memory kinds"),
    (r"_internal_pmap_axis_name|num_replicas = (?!1 )", "it is made by pmap"),
    (r"algorithm = <lhs_precision_type", "it chooses a dot algorithm, which the plan's format drops"),
)
"""Text of a lowered program → why no plan of it can run."""
SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
)
"""Settings of jax that make other programs, to be named where one is another."""

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
        self._uses: list[tuple[str, Callable[[], str]]] = []  # names, and how to say what became of each

    def wrap(self, step: Callable[..., Any], *, strict: bool = False, groups: bool = False) -> Wrapped:
        """A function that does what `step` does, the tuned way where the plan fits.

        With `groups` the compiler is asked to keep each transfer with the einsum that hides it, by XLA's scheduling
        groups: for TPU compilers where jax has no scheduler hook, which orders everything.
        """
        wrapped = Wrapped(self, step, strict=strict, groups=groups)
        self._uses.append((wrapped.__name__, wrapped.outcome))
        return wrapped

    def install(self, *, strict: bool = False) -> bool:
        """Have the compiler put one module's instructions in the plan's order; False, and a warning, where it cannot.

        `explain` says later whether the compiler asked. From here on the process has compilation-cache keys of its
        own: executables without the plan are not found, and jobs without the plan find none of these.
        """
        hook = None
        with _deciding, contextlib.ExitStack() as undo:
            problem = ""
            try:
                hook = self._order_hook()
                if hook.mark not in _installed:
                    undo.callback(hook.register())
            except Exception as error:  # whatever is wrong with a plan must not stop the job
                problem = _words(error)
            problem = _agree(problem)
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

    def _order_hook(self) -> OrderHook:
        manifest = self.manifest()
        if manifest["structure"]:
            raise Mismatch("the plan changes the program, not only its order: use load(…).wrap(step)")
        written = manifest["versions"]
        here = versions(written["platform"])
        for name in ("jaxlib", "platform", "platform_version"):
            if written[name] != here[name]:
                raise Mismatch(
                    f"the plan was made with {name} {written[name]}, this job has {here[name]}: an order belongs to "
                    "one compiler, so capture and tune it again"
                )
        donates = manifest["scheduled"]["input_output_alias"] != "{}"
        mark = manifest["digest"][:12]
        return OrderHook(manifest["module"], self.ranks(manifest), here["platform"], mark, donates, manifest)

    def explain(self) -> str:
        """One paragraph for the job's log: what of the plan runs."""
        parts = [outcome() for _, outcome in self._uses] or ["nothing was wrapped or installed"]
        if len(parts) > 1:
            parts = [f"{name}: {part}" for (name, _), part in zip(self._uses, parts, strict=True)]
        return f"lapstrake: {'. '.join(parts)}."

    def manifest(self) -> Mapping[str, Any]:
        """What the bundle says of itself, once it is known to be as it was written. Raises Mismatch."""
        try:
            content: dict[str, Any] = json.loads(self._bytes("manifest.json"))
            unsigned = {k: v for k, v in content.items() if k != "digest"}
            text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"))
            whole = content["digest"] == _sha256(text)
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
        """A file of the bundle, if it is the one that was written. Raises Mismatch."""
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


# --- the wrapped step ----------------------------------------------------------------------------------------------

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
        self._plan: _Plan | None = None
        self._refusal = ""
        """Why no call runs the plan."""
        self._passed_by: dict[str, tuple[int, str]] = {}
        """Kind of the calls that the plan was not for → how many, and the first's reason."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not MOVED and not core.trace_state_clean():
            return self._pass_by("trace", _TRACED, args, kwargs)
        plan = self._plan
        if plan is None and not self._refusal:
            if debugging := _debugging():
                return self._pass_by(debugging, debugging, args, kwargs)
            plan = self._decide(args, kwargs)
        if plan is None:
            if self._strict:
                raise Mismatch(self._refusal)
            return self._step(*args, **kwargs)
        if reason := plan.outdated(args, kwargs):
            return self._pass_by(reason, reason, args, kwargs)
        try:
            return plan.run(*args, **kwargs)
        except (TypeError, ValueError) as error:
            # Compiled functions refuse other structures, shapes, types and shardings before they run anything.
            reason = plan.unlike(args, kwargs) or f"other arguments came: {_words(error)}"
        return self._pass_by("arguments", reason, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        # lower, trace, clear_cache and the like are the original's
        return getattr(object.__getattribute__(self, "_step"), name)

    def outcome(self) -> str:
        ran, runs = ("it raised", "it raises") if self._strict else ("the original ran", "the original runs")
        said = [f"{runs}: {self._refusal}"] if self._refusal else []
        said += self._plan.outcome() if self._plan else []
        for count, reason in self._passed_by.values():
            said.append(f"{ran} {count} time{'s' * (count > 1)}: {reason}")
        return "; ".join(said) or "the wrapped step was not called yet"

    def _decide(self, args: Any, kwargs: Any) -> _Plan | None:
        """The plan, ready to run; None, and `_refusal`, where it does not fit."""
        with _deciding:
            if self._plan or self._refusal:  # by another thread, meanwhile
                return self._plan
            plan = _Plan(self._bundle, self._step, self._groups)
            # Compilers of several processes may work together: none is started before all have come so far.
            for stage in (plan.check, plan.recognise, plan.compile):
                state, problem = "", ""
                try:
                    state = stage(args, kwargs)
                except Exception as error:  # whatever is wrong with a plan must not stop the job
                    problem = _words(error)
                self._refusal = _agree(problem, state)
                if self._refusal:
                    if not self._strict:
                        log.warning("lapstrake: the original runs: %s", self._refusal)
                    return None
            self._plan = plan
            return plan

    def _pass_by(self, kind: str, reason: str, args: Any, kwargs: Any) -> Any:
        count, first = self._passed_by.get(kind, (0, reason))
        self._passed_by[kind] = (count + 1, first)
        if self._strict:
            raise Mismatch(reason)
        if not count:
            log.warning("lapstrake: the original runs: %s", reason)
        return self._step(*args, **kwargs)


# --- its plan ------------------------------------------------------------------------------------------------------


class _Plan:
    """A plan for one step: checked, recognised and compiled, in this order; outdated where jit would trace it anew.

    Each of the three raises Mismatch where the plan does not fit, and returns what has to be alike in all processes.
    """

    def __init__(self, bundle: Bundle, step: Any, groups: bool) -> None:
        self._bundle, self._step, self._groups, self._parameters = bundle, step, groups, _parameters(step)
        self._recognised = ""

    def check(self, args: Any, kwargs: Any) -> str:
        """What can be told without a compiler; the bundle's digest."""
        if MOVED:
            raise Mismatch(MOVED)
        step, manifest = self._step, self._bundle.manifest()
        if not manifest["structure"]:
            raise Mismatch("the plan changes only the order of instructions: use load(…).install()")
        if manifest["fingerprint"]["kind"] == "scheduled":
            raise Mismatch(
                "the plan was made from a dump of what a compiler had scheduled, which no job can be compared with: "
                "dump the module after partitioning, or capture the step"
            )
        if not hasattr(step, "lower") or inspect.isfunction(step):
            raise Mismatch(
                f"a function from jax.jit was expected, {type(step).__name__} {step!r:.60} came (it may be made by "
                "pmap, or wrapped in another): wrap the jitted function itself"
            )
        traced, lowered, text = self._lower(args, kwargs)
        if jax.tree_util.tree_structure((args, kwargs)) != lowered.in_tree:
            raise Mismatch("the step has static arguments, which a plan cannot carry: bind them before jax.jit")
        for pattern, why in OBSTACLES:
            if re.search(pattern, text):
                raise Mismatch(f"no plan can run this step, because {why}: leave that out of it, or run it as it is")
        leaves = jax.tree_util.tree_leaves((lowered.args_info, lowered.out_info))
        if any(str(leaf.dtype).startswith("key<") for leaf in leaves):
            raise Mismatch("a typed PRNG key is among the arguments or results: pass its jax.random.key_data")
        self._manifest, self._lowered, self._text_hash = manifest, lowered, _sha256(text)
        self._weak = [bool(result.weak_type) for result in traced.jaxpr.out_avals]
        self._signature = manifest["signature"]
        if self._signature is not None:
            self._mesh = _mesh_of(lowered, (args, kwargs), self._signature["mesh"])
            if manifest["fingerprint"]["sha256"] != self._text_hash:
                raise Mismatch(self._another_program(args, kwargs))
        self._settings = _settings()
        self._fits: Any = _context()
        self._verdicts: dict[Any, str] = {self._fits: ""}
        """What jit was called in → why it makes another program there; empty where it does not."""
        self._ranks = self._bundle.ranks(manifest)
        self._program = self._bundle.read("grouped.mlirbc" if self._groups else "tuned.mlirbc", manifest)
        return str(manifest["digest"])

    def _another_program(self, args: Any, kwargs: Any) -> str:
        """What makes it another than the captured one."""
        donated = [bool(info.donated) for info in jax.tree_util.tree_leaves(self._lowered.args_info)]
        written, made = self._signature["arguments"], self._manifest["versions"].get("jax")
        lowering = "" if made in (None, jax.__version__) else f", or jax: {jax.__version__} for {made}"
        what = _argument_difference(written, (args, kwargs), self._mesh, self._parameters, donated) or (
            "the program is another than the captured one, for the same arguments (by its code, a constant, a sharding "
            f"inside it{lowering})"
        )
        under = _settings_apart(self._manifest["settings"])
        return f"{under}{what}: call it as then, or capture and tune it again"

    def recognise(self, args: Any, kwargs: Any) -> str:
        """Compile the step as it is, to see whether it is the one that was dumped; nothing to do for a captured one."""
        if self._signature is not None:
            return ""
        capture, begun = self._capture(), time.monotonic()
        with persistent_cache_min_compile_time_secs(math.inf):  # it is not kept
            # Dumps are also made with the compiler's own decomposition switched off, where it has one.
            for whole in (False, True)[: 1 + capture.leaves_whole(self._lowered)]:
                compiled, found = capture.partitioned(self._lowered, whole=whole)
                signature = capture.signature(self._lowered, compiled)
                differs = _module_difference(self._manifest["fingerprint"], found, signature, self._parameters)
                if not differs:
                    break
        if differs:
            raise Mismatch(f"the step after partitioning, on each device: {differs}: dump and tune it again")
        self._signature, self._mesh = signature, _mesh_of(self._lowered, (args, kwargs), signature["mesh"])
        spent = time.monotonic() - begun
        self._recognised = f" (made from a dump: the step was compiled once more, to compare it, in {spent:.1f} s)"
        return ""

    def _capture(self) -> Any:
        """The module lapstrake_capture, which bundles made from dumps bring: theirs, also where the job has a copy."""
        sys.path.insert(0, str(self._bundle.path))
        try:
            return importlib.import_module("lapstrake_capture")
        except ImportError:
            raise Mismatch(f"{self._bundle.path}/lapstrake_capture.py is not found: copy the bundle whole") from None
        finally:
            sys.path.remove(str(self._bundle.path))

    def compile(self, args: Any, kwargs: Any) -> str:
        """Compile once, with the order hook on where this jax has one; what became of the order, in words."""
        digest, platform = self._manifest["digest"][:12], self._mesh.devices.flat[0].platform
        name = re.sub(r"\W", "_", f"{getattr(self._step, '__name__', 'step')}_lapstrake_{digest}")
        self._names = sorted(kwargs)
        arguments = (*args, *(kwargs[name] for name in self._names))
        trees = jax.tree_util.tree_structure(arguments), self._lowered.out_tree
        lowered = jitted(name, self._signature, self._program, self._mesh, self._weak, trees).lower(*arguments)
        own = getattr(getattr(self._lowered, "_lowering", None), "_compiler_options_kvs", ())  # what it was jitted with
        options = dict(own) | (grouping() if self._groups else {})
        donated = _donated(lowered, self._signature)
        hook = OrderHook(f"jit_{name}", self._ranks, platform, name, donates=bool(donated))
        hits: list[str] = []  # what comes from the persistent cache, which hooks are not asked about

        def listen(event: str, **_: Any) -> None:
            hits.extend([event] * event.endswith("/cache_hits"))

        with contextlib.ExitStack() as until_compiled:
            try:
                until_compiled.callback(hook.register())
            except Mismatch as reason:
                hook.problem = str(reason)
            jax.monitoring.register_event_listener(listen)
            until_compiled.callback(jax.monitoring.unregister_event_listener, listen)
            self._compiled = lowered.compile(options or None)
        if not (hook.problem or hook.fired or hits):
            hook.problem = f"jax took a hook for {platform}, but its compiler did not ask for it"
        self._text = str(self._compiled.as_text())
        self._order = f"order: not applied, {hook.problem}"
        if self._groups or not hook.problem:
            by = f" by scheduling groups alone: {hook.problem}" if hook.problem else ""
            self._order = _order_in_words(self._text, self._ranks) + by
        # Where the compiler forgot which arguments are donated, each call frees them.
        self._freed = () if "input_output_alias" in self._text.partition("\n")[0] else donated
        self.run: Callable[..., Any] = self._run if self._names or self._freed else self._compiled
        self._lowered = None  # what is cleared from caches can be freed
        return self._order

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """As the compiled function: raises TypeError or ValueError, before anything runs, for other arguments."""
        if sorted(kwargs) != self._names:
            raise TypeError("other arguments are given by name")
        args += tuple(kwargs[name] for name in self._names)
        results = self._compiled(*args)
        if self._freed:
            leaves = jax.tree_util.tree_leaves(args)
            for leaf in (leaves[number] for number in self._freed):
                if isinstance(leaf, jax.Array):
                    leaf.delete()
        return results

    def unlike(self, args: Any, kwargs: Any) -> str:
        """Which of these arguments the plan is not for; empty where nothing differs."""
        differs = _argument_difference(self._signature["arguments"], (args, kwargs), self._mesh, self._parameters)
        return f"other arguments came: {differs}; give the plan's, or tune a plan for these" if differs else ""

    def outdated(self, args: Any, kwargs: Any) -> str:
        """Why jit would run another program by now than the plan was made for; empty where it would not.

        It traces a step again under other settings of jax, and after its caches were cleared. Then it is lowered again
        here, once, and compared. Raises Mismatch where the processes of a job come to run one the plan, one not.
        """
        context = _context()
        if context == self._fits and self._trace() is not None:
            return ""
        with _deciding:
            if self._trace() is None:
                self._verdicts.clear()
            why, was_fit = self._verdicts.get(context), self._fits is not None
            if why is None or bool(why) == was_fit:
                if unlike := self.unlike(args, kwargs):
                    return unlike  # nothing is compared by them; they may also be of this process alone
                if why is None:
                    why = self._verdicts[context] = self._compare_again(args, kwargs)
            if bool(why) == was_fit:
                self._turn(why)
            self._fits = None if why else context
            return why

    def _compare_again(self, args: Any, kwargs: Any) -> str:
        if why := _debugging():
            return why
        try:
            text = self._lower(args, kwargs)[2]
        except Exception as error:  # the original raises it too
            return f"it cannot be traced again ({_words(error)})"
        if _sha256(text) == self._text_hash:
            return ""
        apart = _settings_apart(self._settings)
        why = "" if apart else " (by its code, or by what it reads beside its arguments)"
        return (
            f"{apart}traced again it is another program than the plan was made for{why}: call it as before, or capture "
            "and tune it again"
        )

    def _turn(self, why: str) -> None:
        """From the plan to the original, or back, in all processes at the same call.

        A job's processes launch the same programs in turn, so what turns one turns all. Where it does not, they would
        wait for each other in other collectives without end, or mix their data up: better the job ends with a reason.
        """
        to = f"the original is to run, because {why}" if why else "the plan is to run again"
        if problem := _agree("", "the original" if why else "the plan"):
            raise Mismatch(f"from here on {to}; but {problem}")

    def _lower(self, args: Any, kwargs: Any) -> tuple[Any, Any, str]:
        """The step as jit traces and lowers it now, and its text. `_trace` is None from when jit forgets the trace."""
        traced = self._step.trace(*args, **kwargs)
        self._trace: Callable[[], Any] = weakref.ref(traced.jaxpr.jaxpr)
        lowered = traced.lower()
        return traced, lowered, lowered.as_text(debug_info=False)

    def outcome(self) -> Iterator[str]:
        """Structure, order and fusion, each in words."""
        written, here = self._manifest["versions"], versions()
        others = ", ".join(f"{k} {written[k]}" for k in ("jax", "jaxlib") if written.get(k, here[k]) != here[k])
        said = self._recognised or (f" (made with {others})" if others else "")
        applied = "applied" if self._manifest["changed"] else "nothing to apply, the plan changes order only"
        yield f"structure: {applied}{said}"
        yield self._order
        yield _fusion_in_words(self._text, self._manifest["fusions"])


def _context() -> tuple[Any, ...]:
    """What jit traces a step again for, and settings under which it checks results."""
    return trace_context(), jax.config.jax_debug_nans, jax.config.jax_debug_infs  # type: ignore[attr-defined]  # made at run time


def _debugging() -> str:
    """Which setting of jax keeps any plan from running now; empty where none does."""
    for name in ("jax_disable_jit", "jax_debug_nans", "jax_debug_infs"):
        if getattr(jax.config, name):
            how = "only compiled" if name == "jax_disable_jit" else "without its checks"
            return f"{name} is set, and a plan runs {how}: unset it"
    return ""


def _settings() -> dict[str, str]:
    return {name: str(getattr(jax.config, name, None)) for name in SETTINGS}


def _settings_apart(written: Mapping[str, str]) -> str:
    """Settings of jax that are others than they were, to begin a sentence with; empty where none is."""
    now = _settings().items()
    apart = [f"{name} is {value} (was {written[name]})" for name, value in now if written.get(name, value) != value]
    return f"{', '.join(apart)}, and " if apart else ""


# --- the program that runs -----------------------------------------------------------------------------------------


def jitted(
    name: str, signature: Mapping[str, Any], program: bytes, mesh: Any, weak: Sequence[bool], trees: Sequence[Any] = ()
) -> Any:
    """A jitted function whose body is the tuned program, one call on each device: of leaves, or of what `trees` says,
    the structure of its arguments and of its results."""
    arguments, results = signature["arguments"], signature["results"]
    tree, out_tree = trees or [jax.tree_util.tree_structure((0,) * len(side)) for side in (arguments, results)]
    kept = [number for number, leaf in enumerate(arguments) if leaf["kept"]]
    shapes = [
        jax.core.ShapedArray(tuple(leaf["local_shape"]), jax.numpy.dtype(leaf["dtype"]), weak_type=weakly)
        for leaf, weakly in zip(results, weak, strict=True)
    ]
    primitive = _primitive(name, program, shapes)
    on_device: Any = jax.shard_map(
        lambda *local: tuple(primitive.bind(*local)),
        mesh=mesh,
        in_specs=tuple(_spec(arguments[number]) for number in kept),
        out_specs=tuple(_spec(leaf) for leaf in results),
        check_vma=False,
    )

    def run(*called: Any) -> Any:
        leaves = jax.tree_util.tree_leaves(called)
        return jax.tree_util.tree_unflatten(out_tree, on_device(*(leaves[number] for number in kept)))

    run.__name__ = name
    lie = [[jax.sharding.NamedSharding(mesh, _spec(leaf)) for leaf in side] for side in (arguments, results)]
    donated = jax.tree_util.tree_unflatten(tree, [leaf["donated"] for leaf in arguments])
    return jax.jit(
        run,
        in_shardings=jax.tree_util.tree_unflatten(tree, lie[0]),
        out_shardings=jax.tree_util.tree_unflatten(out_tree, lie[1]),
        donate_argnums=tuple(k for k, argument in enumerate(donated) if any(jax.tree_util.tree_leaves(argument))),
    )


def _primitive(name: str, program: bytes, shapes: Sequence[Any]) -> Any:
    """A primitive whose lowering is a call of the program, put into the module that jit builds."""
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


def _spec(leaf: Mapping[str, Any]) -> Any:
    return jax.sharding.PartitionSpec(*(tuple(p) if isinstance(p, list) else p for p in leaf["spec"]))


def grouping() -> dict[str, str]:
    """Options with which compilers keep scheduling groups, beside what the job disables already."""
    disabled = re.findall(r"--xla_disable_hlo_passes=(\S+)", os.environ.get("XLA_FLAGS", ""))
    return {"xla_disable_hlo_passes": ",".join([*disabled[-1:], "legalize-scheduling-annotations"])}


def _donated(lowered: Any, signature: Mapping[str, Any]) -> tuple[int, ...]:
    """Which leaves of a lowered function's arguments give their buffers to results, as its text says."""
    main = re.search(r"@main\((.*?)\) -> ", lowered.as_text(), re.DOTALL)
    parts = re.split(r"%arg\d+: ", main[1])[1:] if main else []
    kept = [number for number, leaf in enumerate(signature["arguments"]) if leaf["kept"]]
    gives = ["tf.aliasing_output" in part or "jax.buffer_donor" in part for part in parts]
    return tuple(number for number, given in zip(kept, gives, strict=True) if given)


# --- the order that the compiler is asked for ----------------------------------------------------------------------


@dataclasses.dataclass(eq=False)
class OrderHook:
    """Puts the instructions of one module into a chosen order, after the compiler has scheduled it."""

    module: str
    ranks: Mapping[str, int]
    """The tag that an instruction carries → its place in the order; with a manifest, its name → its place."""
    platform: str
    mark: str
    """Keeps what is compiled under the hook apart in the persistent cache."""
    donates: bool
    manifest: Mapping[str, Any] | None = None
    """For `install`: says what the module has to be known by."""
    fired: int = 0
    problem: str = ""

    def register(self) -> Callable[[], None]:
        """From now on compilers ask, until what is returned is called. Raises Mismatch where this jax cannot do it."""
        if MOVED:
            raise Mismatch(MOVED)
        if self.donates and FORGETS_DONATION and self.platform != "cpu":  # where runs are trials, memory matters less
            raise Mismatch(
                f"the scheduler hook of jaxlib {JAXLIB} makes compilers forget donation, which would cost more memory "
                "than an order gains: jaxlib 0.12 keeps both"
            )
        try:
            import jax.extend.xla as xla

            where: Any = {"stage": xla.PipelineStage.POST_SCHEDULER, "platforms": self.platform}
            xla.register_hlo_module_transformation(self._call, name=self.mark, **where)
        except Exception as error:
            raise Mismatch(
                f"jax {jax.__version__} has no scheduler hook ({_words(error)}): use 0.10.2 or later"
            ) from None
        before = cache_key.custom_hook
        cache_key.custom_hook = lambda: f"{before()} lapstrake {self.mark}"

        def unregister() -> None:
            cache_key.custom_hook = before
            xla.clear_hlo_module_transformation(self.mark, **where)

        return unregister

    def outcome(self) -> str:
        """For `install`: whether the compiler asked."""
        if self.fired:
            others = f"; another module of this name keeps its own: {self.problem}" * bool(self.problem)
            return f"order: applied to {self.module} ({len(self.ranks)} instructions){others}"
        if self.problem:
            return f"order: not applied, {self.problem}"
        return (
            f"order: the compiler has not asked for it; {self.module} was not compiled since it was installed, or "
            "came from the compilation cache, where only what was compiled under this plan is found"
        )

    def _call(self, serialised: bytes) -> bytes | None:
        try:
            return self._reordered(serialised)
        except Exception as error:  # it would fail the job's compilation
            self.problem = _words(error)
            log.warning("lapstrake: order not applied: %s", self.problem)
            return None

    def _reordered(self, serialised: bytes) -> bytes | None:
        module = hlo.HloModule.from_serialized_hlo_module_proto(serialised)
        if module.name.partition(".")[0] != self.module.partition(".")[0]:
            return None
        if self.manifest:
            options = hlo.HloPrintOptions()
            options.print_large_constants, options.print_metadata = True, False
            found = known_by(module.to_string(options))
            if differs := _module_difference(self.manifest["scheduled"], found, self.manifest["signature"]):
                under = _settings_apart(self.manifest["settings"])
                raise Mismatch(f"{under}{module.name}, on each device: {differs}: capture and tune it again")
        schedule = module.schedule()
        for computation in module.computations():
            try:
                sequence = list(schedule.sequence(computation))
            except (RuntimeError, LookupError):
                continue  # part of a fusion: it has no order of its own
            ranks = [
                self.ranks.get(i.name) if self.manifest else _rank_in_line(i.to_string(), self.ranks) for i in sequence
            ]
            if sum(rank is not None for rank in ranks) > 1:
                schedule.set_sequence(computation, [sequence[k] for k in _sorted_by(sequence, ranks)])
        schedule.verify()
        module.set_schedule(schedule)
        result: bytes = module.as_serialized_hlo_module_proto()
        self.fired += 1
        return result


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


# --- what is said of a plan ----------------------------------------------------------------------------------------


def _order_in_words(text: str, ranks: Mapping[str, int]) -> str:
    in_order, elsewhere, fused, gone = standing(text, ranks)
    total = in_order + elsewhere + fused + gone
    if not in_order:
        return "order: not applied, the compiled text has none of the plan's instructions"
    if in_order == total:
        return f"order: applied ({total} of {total})"
    rest = ((elsewhere, "elsewhere"), (fused, "fused away"), (gone, "replaced by the compiler"))
    return f"order: partly applied ({in_order} of {total}, {', '.join(f'{n} {what}' for n, what in rest if n)})"


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


def _fusion_in_words(text: str, wanted: Sequence[Sequence[str]]) -> str:
    """How many of the plan's fusions the compiler made too; it decides them itself."""
    if not wanted:
        return "fusion: the plan has none"
    computations, fused = _computations(text)
    made = [set(TAG.findall("\n".join(computations[name]))) for name in fused if name in computations]
    kept = sum(any(set(tags) <= tagged for tagged in made) for tags in wanted)
    how = "applied" if kept == len(wanted) else "partly" if kept else "not applied"
    return f"fusion: {how} ({kept} of {len(wanted)}, by the compiler's own choice)"


# --- how programs are compared ---------------------------------------------------------------------------------------


def versions(platform: str | None = None) -> dict[str, str]:
    """What a plan depends on: of `platform` where jax has devices of it, its default or not; else of the default.

    A step is compiled for the devices of its mesh: on a machine with GPUs these may be the CPU's.
    """
    try:
        client = jax.devices(platform)[0].client
    except RuntimeError:  # jax knows no such platform here
        client = jax.devices()[0].client
    return {
        "jax": jax.__version__,
        "jaxlib": JAXLIB,
        "platform": client.platform,
        "platform_version": client.platform_version,
    }


def known_by(text: str) -> dict[str, str]:
    """What a module, printed without metadata, is known by: a hash of its text, and what its header says."""
    header, _, body = text.partition("\n")
    body = body[max(body.find("\n%"), body.find("\nENTRY") if "\n%" not in body else 0) :]
    said = {"sha256": _sha256(body)}
    for name in ("entry_computation_layout", "input_output_alias", "buffer_donor"):
        found = re.search(name + r"=(\{.*?\})(?=, [a-z_]+=|$)", header)
        said[name] = found[1] if found else "{}"
    return said


def _argument_difference(
    written: Sequence[Mapping[str, Any]], called: Any, mesh: Any, names: Sequence[str], donated: Sequence[bool] = ()
) -> str:
    """How the first argument that differs does, by what its step calls it; `donated` is not known of later calls."""

    def described(path: str, type_: str, place: Any, donated: bool) -> str:
        return f"{type_} as {place}{', donated' * donated}{', by keyword' * path.startswith('[1]')}"

    plan = {_spoken(leaf["path"], names): leaf for leaf in written}
    there = {
        name: described(leaf["path"], f"{leaf['dtype']}{leaf['shape']}", _spec(leaf), leaf["donated"])
        for name, leaf in plan.items()
    }
    here = {}
    for number, (keys, leaf) in enumerate(jax.tree_util.tree_flatten_with_path(called)[0]):
        name = _spoken(path := jax.tree_util.keystr(keys), names)
        wanted = plan.get(name, {"spec": (), "donated": False, "kept": False})
        given = donated[number] if donated else wanted["donated"]
        here[name] = described(path, _type(leaf), _place(leaf, wanted, mesh), given)
    return _difference("argument", here, there)


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
    return sharding.spec if sharding.mesh == mesh else f"{sharding.spec} of another mesh"


def _module_difference(
    expected: Mapping[str, str], found: Mapping[str, str], signature: Mapping[str, Any], names: Sequence[str] = ()
) -> str:
    """How a module, as one device runs it, is another than the plan's; empty where it is not."""
    paths = [_spoken(leaf["path"], names) for leaf in signature["arguments"] if leaf["kept"]]
    here, there = _shapes(found, paths), _shapes(expected, paths)
    for kind in ("argument", "result"):
        if differs := _difference(kind, here[kind], there[kind]):
            return differs
    if found["sha256"] != expected["sha256"]:
        return "it has other instructions or constants than the module that the plan was made for"
    headers = [name for name, value in found.items() if value != expected[name]]
    return "".join(f"its {n} is {found[n]:.200}, the plan was made for {expected[n]:.200}" for n in headers[:1])


def _shapes(known: Mapping[str, str], names: Sequence[str]) -> dict[str, dict[Any, str]]:
    """Arguments, by these names if they are as many, and results in a module's header: `{(f32[8,8]{1,0}, …)->(…)}`;
    and which arguments are donated."""
    arguments, results = (
        re.findall(r"\w+\[[^\]]*\](?:\{[^{}]*\})?", side)
        for side in known["entry_computation_layout"][1:-1].split("->")
    )
    aliased = re.findall(r": \((\d+)", known["input_output_alias"])
    for number in (*aliased, *re.findall(r"\((\d+), \{", known["buffer_donor"])):
        arguments[int(number)] += ", donated"
    called = names if len(names) == len(arguments) else range(len(arguments))
    return {"argument": dict(zip(called, arguments, strict=True)), "result": dict(enumerate(results))}


def _difference(kind: str, here: Mapping[Any, str], there: Mapping[Any, str]) -> str:
    """The first argument or result that is another than the plan's, and how many more are; empty where none is."""
    differ = [name for name in dict.fromkeys((*there, *here)) if here.get(name) != there.get(name)]
    if not differ:
        return ""
    name, others = differ[0], len(differ) - 1
    more = f" (and {others} other{'s' * (others > 1)})" if others else ""
    return f"{kind} {name} is {here.get(name, 'missing')}, the plan was made for {there.get(name, 'none')}{more}"


def _mesh_of(lowered: Any, called: Any, written: Mapping[str, Any]) -> Any:
    """The mesh that the arguments lie on, or that the step was jitted for, if it is the one of the plan."""
    compile_args = getattr(getattr(lowered, "_lowering", None), "compile_args", {})
    leaves = jax.tree_util.tree_leaves(called)
    shardings = [*(getattr(leaf, "sharding", None) for leaf in leaves), *compile_args.get("in_shardings", ())]
    named = [s.mesh for s in shardings if isinstance(s, jax.sharding.NamedSharding)]
    meshes = [mesh for mesh in named if isinstance(mesh, jax.sharding.Mesh)]
    there = dict(zip(written["names"], written["sizes"], strict=True))
    if not meshes:
        raise Mismatch(f"no argument lies on a mesh, the plan was made for {there}: put them on it, or jit for it")
    mesh = next((m for m in meshes if m.size == math.prod(written["sizes"])), meshes[0])
    here = dict(zip(mesh.axis_names, mesh.axis_sizes, strict=True))
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


def _parameters(step: Any) -> list[str]:
    """What a step calls the arguments that it gets by place."""
    try:
        parameters = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _spoken(path: str, names: Sequence[str]) -> str:
    """An argument's path as its step writes it: `state['w']` for `[0][0]['w']`, in which arguments by place come
    first, or for `[1]['state']['w']`."""
    found = re.match(r"\[(\d)\]\['?(.+?)'?\](.*)", path, re.DOTALL)
    assert found is not None, path  # every leaf lies in the pair of args and kwargs
    by_name, argument, rest = found.groups()
    if by_name == "0" and int(argument) < len(names):
        argument = names[int(argument)]
    return f"{argument}{rest}"


# --- what is all processes' ---------------------------------------------------------------------------------------


def _agree(problem: str, state: str = "") -> str:
    """The first problem that any process of the job has; empty when none has and all are in the same state.

    The barrier fails for all or for none, also for a process that comes late, so that all come to one verdict.
    """
    if jax.process_count() == 1:
        return problem
    client: Any = None if MOVED else global_state.client
    if client is None:
        return problem or "the job's processes cannot agree: call jax.distributed.initialize"
    key = f"lapstrake/{next(_agreements)}"
    try:
        client.key_value_set(f"{key}/{jax.process_index()}", json.dumps([problem, state]))
        client.wait_at_barrier(key, PATIENCE_S * 1000)
        said = {int(path.rpartition("/")[2]): json.loads(text) for path, text in client.key_value_dir_get(key)}
    except Exception as error:  # whatever is wrong with a plan must not stop the job
        return problem or f"not every process came here within {PATIENCE_S} s ({_words(error)}): do alike in all"
    problems = [f"process {number}: {theirs}" for number, (theirs, _) in sorted(said.items()) if theirs]
    states = sorted({theirs for _, theirs in said.values()})
    if problem or problems:
        return problem or problems[0]
    return f"the processes differ ({'; '.join(states)}): give all one bundle, and do alike in all" * (len(states) > 1)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _words(error: BaseException) -> str:
    said = " ".join(str(error).split())
    return said if isinstance(error, Mismatch) else f"{type(error).__name__}: {said[:400]}"


if __name__ == "__main__":
    print(f"{sys.argv[0]} is imported by a job; see its first lines.")
