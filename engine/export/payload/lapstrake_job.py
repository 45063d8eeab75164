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
says why (`strict=True` raises instead). In a job of several processes all of them run the plan or none does. Under a
trace (grad, vmap, scan, an outer jit) the original runs. A bundle that was made from a bare dump knows its job only by
the module after partitioning: the step is compiled once more at its first call, to be compared with it. Plans that
change nothing but the order of a module that its compiler had scheduled are not wrapped: `load("bundle").install()`,
before the step is first called.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import heapq
import importlib
import importlib.metadata
import itertools
import json
import logging
import os
import pathlib
import re
import sys
import time
import types
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

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
_agreements = itertools.count()


class Mismatch(Exception):
    """The job is not the one that the plan was made for, or this jax cannot run it; says what differs."""


def load(path: str) -> Bundle:
    """The bundle in a folder or .zip. Nothing is read before a wrapped step's first call, or `install`."""
    return Bundle(path)


class Bundle:
    """A plan on disk, and what became of it in this process."""

    def __init__(self, path: str) -> None:
        self.path = pathlib.Path(path)
        self.said: list[Callable[[], str]] = []

    def wrap(self, step: Callable[..., Any], *, strict: bool = False, groups: bool = False) -> Wrapped:
        """A function that does what `step` does, the tuned way where the plan fits.

        With `groups` the compiler is asked to keep each transfer with the einsum that hides it, by XLA's scheduling
        groups: for TPU compilers where jax has no scheduler hook, which orders everything.
        """
        return Wrapped(self, step, strict, groups)

    def install(self, *, strict: bool = False) -> bool:
        """Have the compiler put one module's instructions in the plan's order; False, and a warning, where it cannot.

        `explain` says later whether the compiler asked. From here on the process has compilation-cache keys of its
        own: executables without the plan are not found, and jobs without the plan find none of these.
        """
        hook, problem = None, ""
        try:
            hook = self._order_hook()
        except Exception as reason:  # whatever is wrong with a plan must not stop the job
            problem = _words(reason)
        problem = _agree(problem)
        if hook is not None and not problem:
            hook.drops_donation = not _hook_keeps_donation(hook.platform)
            hook.register()
            problem = hook.problem
        if hook is None or problem:
            self.say(f"order: not installed, {problem}")
            log.warning("lapstrake: order not installed: %s", problem)
            if strict:
                raise Mismatch(problem)
            return False
        self.said.append(hook.outcome)
        return True

    def _order_hook(self) -> OrderHook:
        manifest = self.manifest()
        if manifest["structure"]:
            raise Mismatch("the plan changes the program, not only its order: use load(…).wrap(step)")
        written, here = manifest["versions"], versions()
        for name in ("jaxlib", "platform", "platform_version"):
            if written[name] != here[name]:
                raise Mismatch(f"the plan was made with {name} {written[name]}, this job has {here[name]}")
        mark = manifest["digest"][:12]
        return OrderHook(manifest["module"], self.ranks(manifest), here["platform"], mark, manifest["scheduled"])

    def explain(self) -> str:
        """One paragraph for the job's log: what of the plan runs."""
        return "lapstrake: " + ("; ".join(part() for part in self.said) or "nothing was run yet") + "."

    def say(self, text: str) -> None:
        self.said.append(lambda: text)

    def manifest(self) -> Mapping[str, Any]:
        try:
            content: dict[str, Any] = json.loads(self._bytes("manifest.json"))
            unsigned = {k: v for k, v in content.items() if k != "digest"}
            text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"))
            whole = content["digest"] == hashlib.sha256(text.encode()).hexdigest()
        except (OSError, KeyError, ValueError, TypeError, AttributeError, zipfile.BadZipFile) as error:
            raise Mismatch(f"{self.path} is no bundle that can be read ({_words(error)})") from None
        if not whole:
            raise Mismatch(f"{self.path}/manifest.json was changed after it was written")
        if content["schema"] != SCHEMA:
            raise Mismatch(f"the bundle has schema {content['schema']}, this file reads {SCHEMA}")
        return content

    def read(self, name: str, manifest: Mapping[str, Any]) -> bytes:
        """A file of the bundle, if it is the one that was written."""
        try:
            content = self._bytes(name)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise Mismatch(f"{self.path}/{name} cannot be read ({_words(error)})") from None
        if hashlib.sha256(content).hexdigest() != manifest["files"].get(name):
            raise Mismatch(f"{self.path}/{name} was changed after it was written")
        return content

    def ranks(self, manifest: Mapping[str, Any]) -> dict[str, int]:
        """Tag, or instruction name, → place in the plan's order."""
        orders = json.loads(self.read("order.json", manifest))
        return {tag: place for place, tag in enumerate(dict.fromkeys(t for order in orders.values() for t in order))}

    def _bytes(self, name: str) -> bytes:
        if self.path.is_dir():
            return (self.path / name).read_bytes()
        with zipfile.ZipFile(self.path) as archive:
            return archive.read(name)


# --- wrapping a step -----------------------------------------------------------------------------------------------


class Wrapped:
    """A step that runs a plan where it fits, and the original everywhere else."""

    def __init__(self, bundle: Bundle, step: Callable[..., Any], strict: bool, groups: bool) -> None:
        self._bundle, self._step, self._strict, self._groups = bundle, step, strict, groups
        self._tuned: _Tuned | None = None
        self._refused = False
        self._others = 0
        self.__name__ = getattr(step, "__name__", "step")
        self.__doc__ = getattr(step, "__doc__", None)
        self.__wrapped__ = step

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._refused:
            return self._step(*args, **kwargs)
        leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        if self._tuned is None and not _traced(leaves):
            self._tuned = self._decide(args, kwargs)
        tuned = self._tuned
        if tuned is None:
            return self._step(*args, **kwargs)
        if tree != tuned.in_tree:
            return self._run_original("other arguments came, in another structure", args, kwargs)
        try:
            return jax.tree_util.tree_unflatten(tuned.out_tree, tuned.run(*leaves))
        except (TypeError, ValueError) as error:
            # Compiled functions refuse other shapes, types and shardings, and tracers, before they run anything.
            if _traced(leaves):
                return self._step(*args, **kwargs)
            return self._run_original(f"other arguments came: {_words(error)}", args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._step, name)  # lower, trace, clear_cache and the like are the original's

    def explain(self) -> str:
        """What of the plan runs; see `Bundle.explain`."""
        return self._bundle.explain()

    def _decide(self, args: Any, kwargs: Any) -> _Tuned | None:
        tuned = _Tuned(self._bundle, self._step, self._groups, args, kwargs)
        # Compilers of several processes may work together: none is started before all have come so far.
        for stage in (tuned.check, tuned.recognise, tuned.compile):
            state, problem = "", ""
            try:
                state = stage()
            except Exception as error:  # whatever is wrong with a plan must not stop the job
                problem = _words(error)
            problem = _agree(problem, state)
            if problem:
                self._refused = True
                self._bundle.say(f"the original runs: {problem}")
                log.warning("lapstrake: the original runs: %s", problem)
                if self._strict:
                    raise Mismatch(problem)
                return None
        for part in tuned.outcome():
            self._bundle.say(part)
        return tuned

    def _run_original(self, reason: str, args: Any, kwargs: Any) -> Any:
        if not self._others:
            self._bundle.said.append(lambda: f"the original ran {self._others} times: {reason}")
            log.warning("lapstrake: the original runs: %s", reason)
        if self._strict:
            raise Mismatch(reason)
        self._others += 1
        return self._step(*args, **kwargs)


class _Tuned:
    """A plan for one step and its arguments: checked, recognised and compiled, in this order.

    Each of these raises Mismatch where the plan does not fit, and returns what has to be alike in all processes.
    """

    def __init__(self, bundle: Bundle, step: Any, groups: bool, args: Any, kwargs: Any) -> None:
        self._bundle, self._step, self._groups, self._called = bundle, step, groups, (args, kwargs)
        self._seconds = 0.0
        self.run: Any = None

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
        if not hasattr(step, "lower") or isinstance(step, types.FunctionType):
            raise Mismatch("the step is no function from jax.jit (it may be made by pmap, or wrapped in another)")
        lowered = self._lowered = step.lower(*args, **kwargs)
        self.in_tree, self.out_tree = lowered.in_tree, lowered.out_tree
        self._leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise Mismatch("the step has static arguments, which a plan cannot carry")
        text = lowered.as_text(debug_info=False)
        for pattern, why in OBSTACLES:
            if re.search(pattern, text):
                raise Mismatch(f"no plan can run this step: {why}")
        self._signature = manifest["signature"]
        if self._signature is not None:
            self._mesh = _check_signature(self._signature, lowered, self._leaves)
            if manifest["fingerprint"]["sha256"] != hashlib.sha256(text.encode()).hexdigest():
                raise Mismatch("the program is another (its code, a constant or a sharding changed since its capture)")
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
        try:
            capture: Any = importlib.import_module("lapstrake_capture")  # bundles made from dumps bring it
        except ImportError:
            raise Mismatch(
                f"{self._bundle.path}/lapstrake_capture.py is not found: put the bundle on sys.path"
            ) from None
        begun = time.monotonic()
        with _no_cache():
            # Dumps are also made with the compiler's own decomposition switched off, where it has one.
            for whole in (False, True)[: 1 + capture.leaves_whole(self._lowered)]:
                compiled, found = capture.partitioned(self._lowered, whole=whole)
                problem = _difference(self._manifest["fingerprint"], found, "the step after partitioning")
                if not problem:
                    break
        if problem:
            raise Mismatch(problem)
        self._signature = capture.signature(self._lowered, compiled)
        self._mesh = _check_signature(self._signature, self._lowered, self._leaves)
        self._seconds = time.monotonic() - begun
        return ""

    def compile(self) -> str:
        """Compile once, with the order hook on where this jax has one; what became of the order, in words."""
        name = f"lapstrake_{self._manifest['digest'][:12]}"
        platform = self._mesh.devices.flat[0].platform
        lowered = jitted(name, self._signature, self._program, self._mesh, self._weak).lower(*self._leaves)
        donated = _donated(lowered)
        hook = OrderHook(f"jit_{name}", self._ranks, platform, name)
        hook.drops_donation = bool(donated) and not _hook_keeps_donation(platform)
        hook.register()
        try:
            with _cache_hits() as hits:
                compiled = lowered.compile(grouping() if self._groups else None)
        finally:
            hook.unregister()
        if not (hook.problem or hook.fired or hits):
            hook.problem = "the compiler did not ask for it"
        self._text = compiled.as_text()
        grouped = self._groups and bool(hook.problem)
        self._order = order_in_words(*standing(self._text, self._ranks), "" if grouped else hook.problem)
        self._order += f" by scheduling groups alone: {hook.problem}" if grouped else ""
        self.run, self._leaves, self._called = compiled, [], ((), {})
        if hook.drops_donation and not hook.problem:
            self._order += _FREED
            self.run = _freeing(compiled, donated)
        return self._order

    def outcome(self) -> Iterator[str]:
        """Structure, order and fusion, each in words."""
        written, here = self._manifest["versions"], versions()
        others = ", ".join(f"{k} {written[k]}" for k in ("jax", "jaxlib") if written.get(k, here[k]) != here[k])
        said = f" (made with {others})" if others else ""
        if self._seconds:
            said = f" (made from a dump: the step was compiled once more, to compare it, in {self._seconds:.1f} s)"
        yield f"structure: applied{said}"
        yield self._order
        yield _fusion_in_words(self._text, self._manifest["fusions"])


def jitted(name: str, signature: Mapping[str, Any], program: bytes, mesh: Any, weak: Sequence[bool]) -> Any:
    """A jitted function of the step's leaves whose body is the tuned program, one call on each device."""
    arguments, results = signature["arguments"], signature["results"]
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

    def run(*leaves: Any) -> Any:
        return on_device(*(leaves[k] for k in kept))

    run.__name__ = name
    return jax.jit(
        run,
        in_shardings=tuple(jax.sharding.NamedSharding(mesh, _spec(leaf)) for leaf in arguments),
        out_shardings=tuple(jax.sharding.NamedSharding(mesh, _spec(leaf)) for leaf in results),
        donate_argnums=tuple(k for k, leaf in enumerate(arguments) if leaf["donated"]),
    )


def grouping() -> dict[str, str]:
    """Options with which compilers keep scheduling groups, beside what the job disables already."""
    disabled = re.findall(r"--xla_disable_hlo_passes=(\S+)", os.environ.get("XLA_FLAGS", ""))
    return {"xla_disable_hlo_passes": ",".join([*disabled[-1:], "legalize-scheduling-annotations"])}


def _primitive(name: str, program: bytes, shapes: Sequence[Any]) -> Any:
    """A primitive whose lowering is a call of the program, put into the module that jit builds."""
    try:
        from jax._src import core
        from jax._src.interpreters import mlir
        from jax._src.lib.mlir import ir  # type: ignore[attr-defined]  # private in jax, and untyped
        from jax._src.lib.mlir.dialects import func
    except ImportError as error:
        raise Mismatch(f"jax {jax.__version__} has moved what is needed to run the plan ({error})") from None
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


# --- order ---------------------------------------------------------------------------------------------------------


class OrderHook:
    """Puts the instructions of one module into a chosen order, after the compiler has scheduled it."""

    def __init__(
        self,
        module: str,
        ranks: Mapping[str, int],
        platform: str,
        mark: str,
        expected: Mapping[str, str] | None = None,
    ) -> None:
        """`mark` keeps what is compiled under the hook apart in the persistent cache; `expected`, for `install`, is
        what the module has to be known by, whose instructions `ranks` then calls by their names."""
        self._module, self._ranks, self._mark, self._expected = module, ranks, mark, expected
        self.platform = platform
        self.drops_donation = False
        """Whether this jaxlib forgets which arguments are donated where the module goes through a hook."""
        self.fired = 0
        self.problem = ""
        self._noted = ""
        self._undo: Callable[[], None] | None = None

    def register(self) -> None:
        """From now on compilers ask; `problem` says why this jax cannot do it."""
        if self._expected is None and not self._may_order():
            self.problem = _DROPPED
            return
        try:
            import jax.extend.xla as xla

            stage = xla.PipelineStage.POST_SCHEDULER
            xla.register_hlo_module_transformation(self._call, name=self._module, stage=stage, platforms=self.platform)
        except Exception as error:
            self.problem = f"this jax has no scheduler hook ({_words(error)})"
            return
        unmark = _mark_cache(self._mark)

        def undo() -> None:
            xla.clear_hlo_module_transformation(self._module, stage, platforms=self.platform)
            unmark()

        self._undo = undo

    def unregister(self) -> None:
        if self._undo is not None:
            self._undo()

    def _may_order(self) -> bool:
        """On CPU, where nothing is gained but everything can be tried, memory is no reason against it."""
        return not self.drops_donation or self.platform == "cpu"

    def outcome(self) -> str:
        """For `install`: whether the compiler asked."""
        if self.problem:
            return f"order: not applied, {self.problem}"
        if self.fired:
            return f"order: applied to {self._module} ({len(self._ranks)} instructions){self._noted}"
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
        if self._expected is not None:
            options = hlo.HloPrintOptions()
            options.print_large_constants, options.print_metadata = True, False
            found = known_by(module.to_string(options))
            if problem := _difference(self._expected, found, module.name):
                raise Mismatch(problem)
            if self.drops_donation and found["input_output_alias"] != "{}":
                if not self._may_order():
                    raise Mismatch(_DROPPED)
                self._noted = _FREED
        schedule = module.schedule()
        if schedule is None:
            raise Mismatch("the compiler's module has no schedule")
        for computation in module.computations():
            try:
                sequence = list(schedule.sequence(computation))
            except (RuntimeError, LookupError):
                continue  # part of a fusion: it has no order of its own
            ranks = [self._rank_of(instruction) for instruction in sequence]
            if sum(rank is not None for rank in ranks) > 1:
                schedule.set_sequence(computation, [sequence[k] for k in _sorted_by(sequence, ranks)])
        schedule.verify()
        module.set_schedule(schedule)
        result: bytes = module.as_serialized_hlo_module_proto()
        self.fired += 1
        return result

    def _rank_of(self, instruction: Any) -> int | None:
        if self._expected is not None:
            return self._ranks.get(instruction.name)
        return _rank_in_line(instruction.to_string(), self._ranks)


_DROPPED = (
    f"the scheduler hook of jaxlib {importlib.metadata.version('jaxlib')} makes compilers forget donation, which would "
    "cost more memory than an order gains"
)
_FREED = ", donated arguments are freed after each step instead of reused in it (this jaxlib's hook forgets donation)"


def _hook_keeps_donation(platform: str) -> bool:
    """Whether a module that goes through the hook is still compiled with its aliases: tried on a small one.

    jaxlib 0.10.2 loses them, 0.12 does not.
    """
    tried = jax.jit(lambda lapstrake_probe: lapstrake_probe + 1, donate_argnums=0)
    hook = OrderHook("jit__lambda", {}, platform, "probe")
    hook.register()
    try:
        text = str(tried.lower(jax.device_put(np.zeros(8), jax.local_devices()[0])).compile().as_text())
    finally:
        hook.unregister()
    return not hook.fired or "input_output_alias" in text.partition("\n")[0]


def _donated(lowered: Any) -> tuple[int, ...]:
    """Which of a lowered function's arguments give their buffers to results; numbers as it is called."""
    kept = lowered._lowering.compile_args["kept_var_idx"]
    main = re.search(r"@main\((.*?)\) -> ", lowered.as_text(), re.DOTALL)
    parts = re.split(r"%arg\d+: ", main[1])[1:] if main else []
    found = ("tf.aliasing_output" in part or "jax.buffer_donor" in part for part in parts)
    return tuple(number for number, donated in zip(sorted(kept), found, strict=True) if donated)


def _freeing(compiled: Any, donated: Sequence[int]) -> Callable[..., Any]:
    """The function with its donated arguments deleted after each call, as if it had reused them."""

    def run(*leaves: Any) -> Any:
        results = compiled(*leaves)
        for number in donated:
            if isinstance(leaves[number], jax.Array):
                leaves[number].delete()
        return results

    return run


def known_by(text: str) -> dict[str, str]:
    """What a module, printed without metadata, is known by: a hash of its text, and what its header says."""
    header, _, body = text.partition("\n")
    body = body[max(body.find("\n%"), body.find("\nENTRY") if "\n%" not in body else 0) :]
    said = {"sha256": hashlib.sha256(body.encode()).hexdigest()}
    for name in ("entry_computation_layout", "input_output_alias"):
        found = re.search(name + r"=(\{.*?\})(?=, [a-z_]+=|$)", header)
        said[name] = found[1] if found else "{}"
    return said


def _difference(expected: Mapping[str, str], found: Mapping[str, str], what: str) -> str:
    """How a module is another than the plan's; empty where it is not."""
    parts = (("entry_computation_layout", "arguments and results are"), ("input_output_alias", "donation is"))
    for name, part in parts:
        if expected[name] != found[name]:
            return f"{what}: its {part} {found[name]}, the plan was made for {expected[name]}"
    if expected["sha256"] != found["sha256"]:
        return f"{what} has other instructions or constants than the module that the plan was made for"
    return ""


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
    needs = [{at[o.name] for o in i.operands() if o.name in at} for i in sequence]
    for k, instruction in enumerate(sequence):
        controls = getattr(instruction, "control_predecessors", None)
        if callable(controls):
            needs[k] |= {at[c.name] for c in controls() if c.name in at}
    users: list[list[int]] = [[] for _ in sequence]
    for k, before in enumerate(needs):
        for b in before:
            users[b].append(k)
    keys: list[float] = [float("inf") if rank is None else rank for rank in ranks]
    for k in range(len(sequence) - 1, -1, -1):
        if ranks[k] is None:
            keys[k] = min((keys[u] for u in users[k]), default=float("inf"))
    missing = [len(before) for before in needs]
    ready = [(keys[k], k) for k in range(len(sequence)) if not missing[k]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, k = heapq.heappop(ready)
        order.append(k)
        for user in users[k]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (keys[user], user))
    return order


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

    def use(cache: bool) -> None:
        jax.config.update("jax_enable_compilation_cache", val=cache)
        compilation_cache.reset_cache()  # jax remembers what it found set

    use(cache=False)
    try:
        yield
    finally:
        use(cache=was)


@contextlib.contextmanager
def _cache_hits() -> Iterator[list[str]]:
    """The executables that come from the persistent cache meanwhile: hooks are not asked about them."""
    hits: list[str] = []
    listening = True

    def listen(event: str, **_: Any) -> None:
        if listening and event.endswith("/cache_hits"):
            hits.append(event)

    jax.monitoring.register_event_listener(listen)
    try:
        yield hits
    finally:
        listening = False


# --- checks --------------------------------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """What a plan depends on."""
    client = jax.devices()[0].client
    return {
        "jax": jax.__version__,
        "jaxlib": importlib.metadata.version("jaxlib"),
        "platform": client.platform,
        "platform_version": client.platform_version,
    }


def _check_signature(written: Mapping[str, Any], lowered: Any, leaves: Sequence[Any]) -> Any:
    """The job's mesh, once every argument and result is known to be as written."""
    infos = jax.tree_util.tree_flatten_with_path(lowered.args_info)[0]
    if len(infos) != len(written["arguments"]):
        raise Mismatch(f"the step has {len(infos)} arrays as arguments, the plan is for {len(written['arguments'])}")
    mesh = _mesh_of(lowered, leaves, written["mesh"])
    for leaf, (path, info), wanted in zip(leaves, infos, written["arguments"], strict=True):
        _check_leaf(jax.tree_util.keystr(path), leaf, info, wanted, mesh)
    outs = jax.tree_util.tree_leaves(lowered.out_info)
    if [(list(o.shape), str(o.dtype)) for o in outs] != [(r["shape"], r["dtype"]) for r in written["results"]]:
        raise Mismatch("the step's results have other shapes or types than the plan's")
    if any(str(a["dtype"]).startswith("key<") for a in (*written["arguments"], *written["results"])):
        raise Mismatch("a typed PRNG key is among the arguments or results: pass its jax.random.key_data")
    return mesh


def _check_leaf(name: str, leaf: Any, info: Any, wanted: Mapping[str, Any], mesh: Any) -> None:
    for what, here, there in (
        ("path", name, wanted["path"]),
        ("shape", list(info.shape), wanted["shape"]),
        ("type", str(info.dtype), wanted["dtype"]),
        ("donation", bool(info.donated), wanted["donated"]),
    ):
        if here != there:
            raise Mismatch(f"argument {name}: its {what} is {here}, the plan was made for {there}")
    sharding = getattr(leaf, "sharding", None)
    if isinstance(sharding, jax.sharding.NamedSharding) and wanted["kept"]:
        there = jax.sharding.NamedSharding(mesh, _spec(wanted))
        if not sharding.is_equivalent_to(there, len(wanted["shape"])):
            raise Mismatch(f"argument {name}: its sharding is {sharding.spec}, the plan was made for {there.spec}")


def _mesh_of(lowered: Any, leaves: Sequence[Any], written: Mapping[str, Any]) -> Any:
    """The mesh that the arguments lie on, or that the step was jitted for, if it is the one of the plan."""
    compile_args = getattr(getattr(lowered, "_lowering", None), "compile_args", {})
    shardings = [*(getattr(leaf, "sharding", None) for leaf in leaves), *compile_args.get("in_shardings", ())]
    meshes = [s.mesh for s in shardings if isinstance(s, jax.sharding.NamedSharding)]
    size = int(np.prod(written["sizes"], dtype=int))
    mesh = next((m for m in meshes if m.size == size), None)
    if mesh is None:
        raise Mismatch(f"no argument lies on a mesh of {size} devices")
    here = dict(zip(mesh.axis_names, mesh.devices.shape, strict=True))
    there = dict(zip(written["names"], written["sizes"], strict=True))
    if list(here.items()) != list(there.items()):
        raise Mismatch(f"the mesh is {here}, the plan was made for {there}")
    # Captured without devices, their order is not known; the plan's results do not depend on it.
    ids = [d.id for d in mesh.devices.flat]
    if written["devices"] not in (None, [sorted(ids).index(id_) for id_ in ids]):
        raise Mismatch("the mesh has its devices in another order than the plan's")
    return mesh


def _spec(leaf: Mapping[str, Any]) -> Any:
    return jax.sharding.PartitionSpec(*(tuple(p) if isinstance(p, list) else p for p in leaf["spec"]))


def _traced(leaves: Sequence[Any]) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)


def _agree(problem: str, state: str = "") -> str:
    """The first problem that any process of the job has; empty when none has and all are in the same state.

    Process 0 decides for all, so that one that comes late cannot end up with another verdict.
    """
    count, own = jax.process_count(), jax.process_index()
    if count == 1:
        return problem
    from jax._src.distributed import global_state

    client: Any = global_state.client
    if client is None:
        return problem or "the job's processes cannot agree without jax.distributed.initialize"
    key = f"lapstrake/{next(_agreements)}"
    client.key_value_set(f"{key}/{own}", json.dumps([problem, state]))
    if own == 0:
        client.key_value_set(f"{key}/verdict", _verdict(client, key, count) or "-")
    verdict: str = client.blocking_key_value_get(f"{key}/verdict", 2 * PATIENCE_S * 1000)
    return problem or verdict.removeprefix("-")


def _verdict(client: Any, key: str, count: int) -> str:
    states = set()
    for process in range(count):
        try:
            problem, state = json.loads(client.blocking_key_value_get(f"{key}/{process}", PATIENCE_S * 1000))
        except Exception as error:
            return f"process {process} did not answer ({_words(error)})"
        if problem:
            return f"process {process}: {problem}"
        states.add(state)
    return "" if len(states) == 1 else f"the processes differ: {'; '.join(sorted(states))}"


def _words(error: BaseException) -> str:
    said = " ".join(str(error).split())[:400]
    return said if isinstance(error, Mismatch) else f"{type(error).__name__}: {said}"


if __name__ == "__main__":
    print(f"{sys.argv[0]} is imported by a job; see its first lines.")
