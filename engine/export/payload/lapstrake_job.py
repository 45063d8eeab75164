"""Run a plan made with Lapstrake inside a JAX job. This file and jax are all it needs.

    import sys
    sys.path.insert(0, "bundle")        # the folder, or the .zip, that `lapstrake tune` wrote
    import lapstrake_job

    step = lapstrake_job.load("bundle").wrap(step)

`step` is a function from `jax.jit`. It is called as before: same arguments, pytrees, shardings, donation. At the first
call everything is compared with what the plan was made for; whatever differs, the job runs its own function,
unchanged, and one warning says why (`strict=True` raises instead). In a job of several processes all of them run the
plan or none does. `install` is for plans that change nothing but the order of instructions.

Under a trace (grad, vmap, scan, an outer jit) the original runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import importlib.metadata
import itertools
import json
import logging
import pathlib
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

SCHEMA = 1
TAG = re.compile(r"lapstrake=([\w.\-]+)")
"""What every instruction of the tuned module says in its op_name: its name there."""

log = logging.getLogger("lapstrake")

_agreements = itertools.count()


class Mismatch(Exception):
    """The job is not the one that the plan was made for, or this jax cannot run it; says what differs."""


def load(path: str) -> Bundle:
    """The bundle in a folder or .zip. Nothing is checked before the first call of a wrapped step."""
    return Bundle(path)


class Bundle:
    """A plan on disk, and what became of it in this process."""

    def __init__(self, path: str) -> None:
        self.path = pathlib.Path(path)
        self._report: list[str] = []

    def wrap(self, step: Callable[..., Any], *, strict: bool = False) -> Wrapped:
        """A function that does what `step` does, the tuned way where the plan fits."""
        return Wrapped(self, step, strict)

    def install(self, *, strict: bool = False) -> bool:
        """Have the compiler put instructions in the plan's order, for plans that change nothing else.

        To be called before the step is compiled. Returns whether the order will be applied.
        """
        try:
            manifest = self.manifest()
            if manifest["structure"]:
                raise Mismatch("the plan changes the program, not only its order: use load(…).wrap(step)")
            self._check_versions(manifest["versions"], ("jaxlib", "platform_version"))
            orders = json.loads(self.read("order.json", manifest))
            hook = OrderHook(manifest["module"], orders, named=True)
            hook.register(manifest["versions"]["platform"])
            _mark_cache(self.digest(manifest))
        except Mismatch as reason:
            self.say(f"order not installed: {reason}")
            if strict:
                raise
            log.warning("lapstrake: %s", self._report[-1])
            return False
        self._hook = hook
        return True

    def explain(self) -> str:
        """One paragraph for the job's log: what of the plan runs."""
        hook = getattr(self, "_hook", None)
        said = [*self._report, *([] if hook is None else [hook.outcome()])]
        return "lapstrake: " + ("; ".join(said) if said else "nothing was run yet") + "."

    def say(self, text: str) -> None:
        self._report.append(text)

    # --- files ---------------------------------------------------------------------------------------------------

    def manifest(self) -> Mapping[str, Any]:
        try:
            content: dict[str, Any] = json.loads(self._bytes("manifest.json"))
            digest = content.pop("digest")
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise Mismatch(f"{self.path} is no bundle that can be read ({error})") from None
        if digest != hashlib.sha256(_canonical(content)).hexdigest():
            raise Mismatch(f"{self.path}/manifest.json was changed after it was written")
        if content["schema"] != SCHEMA:
            raise Mismatch(f"the bundle has schema {content['schema']}, this file reads {SCHEMA}")
        return content

    def read(self, name: str, manifest: Mapping[str, Any]) -> bytes:
        """A file of the bundle, if it is the one that was written."""
        try:
            content = self._bytes(name)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise Mismatch(f"{self.path}/{name} cannot be read ({error})") from None
        if hashlib.sha256(content).hexdigest() != manifest["files"].get(name):
            raise Mismatch(f"{self.path}/{name} was changed after it was written")
        return content

    def digest(self, manifest: Mapping[str, Any]) -> str:
        """A short name for exactly this plan."""
        return hashlib.sha256(_canonical(manifest)).hexdigest()[:12]

    def _bytes(self, name: str) -> bytes:
        if self.path.is_dir():
            return (self.path / name).read_bytes()
        with zipfile.ZipFile(self.path) as archive:
            return archive.read(name)

    def _check_versions(self, written: Mapping[str, str], names: Sequence[str]) -> None:
        here = versions()
        for name in names:
            if written[name] != here[name]:
                raise Mismatch(f"the plan was made with {name} {written[name]}, this job has {here[name]}")


class Wrapped:
    """A step that runs a plan where it fits, and the original everywhere else."""

    def __init__(self, bundle: Bundle, step: Callable[..., Any], strict: bool) -> None:
        self._bundle = bundle
        self._step = step
        self._strict = strict
        self._run: Callable[..., Any] | None = None
        self.__name__ = getattr(step, "__name__", "step")
        self.__wrapped__ = step

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        run = self._run
        if run is None:
            if _traced(args, kwargs):
                return self._step(*args, **kwargs)
            run = self._decide(args, kwargs)
        if run is self._step:
            return run(*args, **kwargs)
        try:
            return run(*args, **kwargs)
        except (TypeError, ValueError) as error:
            # Compiled functions refuse other shapes, types, shardings, trees, and traces before they run.
            if _traced(args, kwargs):
                return self._step(*args, **kwargs)
            return self._fall_back(Mismatch(f"other arguments came: {_first_line(error)}"), args, kwargs)

    def explain(self) -> str:
        """What of the plan runs; see `Bundle.explain`."""
        return self._bundle.explain()

    def _decide(self, args: Any, kwargs: Any) -> Callable[..., Any]:
        try:
            ready: _Ready | None = _Ready(self._bundle, self._step, args, kwargs)
            problem = ""
        except Mismatch as reason:
            ready, problem = None, str(reason)
        except Exception as error:  # whatever goes wrong in here must not stop the job
            ready, problem = None, f"{type(error).__name__}: {_first_line(error)}"
        problem = _agree(self._bundle, problem)
        if problem or ready is None:
            self._refuse(Mismatch(problem))
            self._run = self._step
            return self._step
        self._bundle.say(ready.outcome)
        if ready.hook is not None:
            self._bundle.say(ready.hook.outcome())
        self._run = ready.compiled
        return self._run

    def _fall_back(self, reason: Mismatch, args: Any, kwargs: Any) -> Any:
        self._refuse(reason)
        return self._step(*args, **kwargs)

    def _refuse(self, reason: Mismatch) -> None:
        text = f"the original runs: {reason}"
        if text not in self._bundle._report:
            self._bundle.say(text)
            log.warning("lapstrake: %s", text)
        if self._strict:
            raise reason


class _Ready:
    """A bundle checked against a step and its arguments, and compiled. Raises Mismatch."""

    def __init__(self, bundle: Bundle, step: Any, args: Any, kwargs: Any) -> None:
        manifest = bundle.manifest()
        if not manifest["structure"]:
            raise Mismatch("the plan changes only the order of instructions: use load(…).install()")
        if not hasattr(step, "lower"):
            raise Mismatch("the step is no function from jax.jit")
        lowered = step.lower(*args, **kwargs)
        signature = manifest["signature"]
        mesh = _check_signature(signature, lowered, args, kwargs)
        _check_fingerprint(manifest["fingerprint"], lowered)
        program = bundle.read("tuned.mlirbc", manifest)
        name = f"lapstrake_{bundle.digest(manifest)}"
        self.hook: OrderHook | None = None
        orders = json.loads(bundle.read("order.json", manifest))
        platform = mesh.devices.flat[0].platform
        tuned = _tuned_step(name, program, signature, lowered, mesh)
        with contextlib.ExitStack() as stack:
            if orders:
                hook = OrderHook(f"jit_{name}", orders)
                if hook.register(platform):
                    stack.callback(hook.unregister, platform)
                self.hook = hook
            self.compiled = tuned.lower(*args, **kwargs).compile()
        if self.hook is not None:
            self.hook.confirm(self.compiled)
        here = versions()
        other = [k for k in ("jax", "jaxlib") if manifest["versions"][k] != here[k]]
        made_with = ", ".join(f"{k} {manifest['versions'][k]}" for k in other)
        noted = f" (made with {made_with})" if other else ""
        self.outcome = f"structure applied{noted}, fusion left to the compiler"


def _tuned_step(name: str, program: bytes, signature: Mapping[str, Any], lowered: Any, mesh: Any) -> Any:
    """A jitted function of the step's own arguments whose body is the tuned program, one call on each device."""
    kept = [k for k, leaf in enumerate(signature["arguments"]) if leaf["kept"]]
    specs = [_spec(signature["arguments"][k]["spec"]) for k in kept]
    results = [_spec(leaf["spec"]) for leaf in signature["results"]]
    shapes = [(tuple(leaf["local_shape"]), leaf["dtype"]) for leaf in signature["results"]]
    primitive = _primitive(name, program, shapes)

    def run(*args: Any, **kwargs: Any) -> Any:
        leaves = jax.tree_util.tree_leaves((args, kwargs))
        body: Any = jax.shard_map(
            lambda *local: tuple(primitive.bind(*local)),
            mesh=mesh,
            in_specs=tuple(specs),
            out_specs=tuple(results),
            check_vma=False,
        )
        outputs = body(*(leaves[k] for k in kept))
        return jax.tree_util.tree_unflatten(lowered.out_tree, outputs)

    run.__name__ = name
    positional, named = lowered.args_info
    donated = tuple(k for k, part in enumerate(positional) if _all_donated(part))
    return jax.jit(
        run,
        in_shardings=_shardings(signature["arguments"], mesh, positional) if not named else None,
        out_shardings=jax.tree_util.tree_unflatten(
            lowered.out_tree, [jax.sharding.NamedSharding(mesh, s) for s in results]
        ),
        donate_argnums=donated,
    )


def _primitive(name: str, program: bytes, shapes: Sequence[tuple[tuple[int, ...], str]]) -> Any:
    """A primitive whose lowering is a call of the program, put into the module that jit builds."""
    try:
        from jax._src import core
        from jax._src.interpreters import mlir
        from jax._src.lib.mlir import ir  # type: ignore[attr-defined]  # private in jax, and untyped
        from jax._src.lib.mlir.dialects import func
        from jax.interpreters import mlir as public
    except ImportError as error:
        raise Mismatch(f"jax {jax.__version__} has moved what is needed to run the plan ({error})") from None
    primitive = core.Primitive(name)
    primitive.multiple_results = True
    primitive.def_abstract_eval(lambda *_: [core.ShapedArray(shape, np.dtype(dtype)) for shape, dtype in shapes])

    def lower(context: Any, *operands: Any) -> Any:
        module = ir.Module.parse(program)
        inlined = mlir.merge_mlir_modules(
            context.module_context.module, f"{name}_main", module, dst_symtab=context.module_context.symbol_table
        )
        types = [ir.RankedTensorType.get(a.shape, mlir.dtype_to_ir_type(a.dtype)) for a in context.avals_out]
        return func.CallOp(types, ir.FlatSymbolRefAttr.get(inlined), operands).results

    public.register_lowering(primitive, lower)
    return primitive


# --- order ---------------------------------------------------------------------------------------------------------


class OrderHook:
    """Puts the instructions of one module into a chosen order, after the compiler has scheduled it."""

    def __init__(self, module: str, orders: Mapping[str, Sequence[str]], named: bool = False) -> None:
        self._module = module
        self._rank = {tag: k for order in orders.values() for k, tag in enumerate(order)}
        self._named = named
        """Whether instructions are known by their own names rather than by the tags in their op_name."""
        self._fired = False
        self._applied = 0
        self._wanted = 0
        self._problem = ""

    def register(self, platform: str) -> bool:
        """Returns False, and remembers why, where this jax has no such hook."""
        try:
            import jax.extend.xla as xla

            xla.register_hlo_module_transformation(
                self._call, name=self._module, stage=xla.PipelineStage.POST_SCHEDULER, platforms=platform
            )
        except Exception as error:
            self._problem = f"this jax has no scheduler hook ({_first_line(error)})"
            return False
        return True

    def unregister(self, platform: str) -> None:
        import jax.extend.xla as xla

        xla.clear_hlo_module_transformation(self._module, xla.PipelineStage.POST_SCHEDULER, platforms=platform)

    def confirm(self, compiled: Any) -> None:
        """Read the order from the compiled text: also where a cache had the executable and the hook never fired."""
        if self._fired or self._problem:
            return
        names = [m for m in _tags_in_text(compiled.as_text()) if m in self._rank]
        self._wanted = len(self._rank)
        pairs = list(itertools.pairwise(names))
        self._applied = sum(self._rank[a] <= self._rank[b] for a, b in pairs) + bool(names)
        self._fired = bool(names)

    def outcome(self) -> str:
        if self._problem:
            return f"order not applied: {self._problem}"
        if not self._fired:
            return "order not applied: the compiler did not ask for it"
        if self._applied == self._wanted:
            return "order applied"
        return f"order partly applied ({self._applied} of {self._wanted} instructions)"

    def _call(self, serialised: bytes) -> bytes | None:
        # An exception in here would fail the job's compilation.
        try:
            return self._reorder(serialised)
        except Exception as error:
            self._problem = f"the compiler refused it ({_first_line(error)})"
            return None

    def _reorder(self, serialised: bytes) -> bytes | None:
        from jax._src.lib import hlo  # type: ignore[attr-defined]  # private in jax, and untyped

        module = hlo.HloModule.from_serialized_hlo_module_proto(serialised)
        if module.name.partition(".")[0] != self._module:
            return None
        self._fired = True
        schedule = module.schedule()
        if schedule is None:
            self._problem = "the compiler's module has no schedule"
            return None
        self._applied = self._wanted = 0
        for computation in module.computations():
            try:
                sequence = list(schedule.sequence(computation))
            except (RuntimeError, LookupError):
                continue  # part of a fusion: it has no order of its own
            ranks = [self._rank_of(instruction) for instruction in sequence]
            known = sum(r is not None for r in ranks)
            if known > 1:
                order = _sorted_by(sequence, ranks)
                schedule.set_sequence(computation, [sequence[k] for k in order])
                self._applied += known
        self._wanted = len(self._rank)
        schedule.verify()
        module.set_schedule(schedule)
        result: bytes = module.as_serialized_hlo_module_proto()
        return result

    def _rank_of(self, instruction: Any) -> int | None:
        if self._named:
            return self._rank.get(instruction.name)
        found = TAG.findall(_op_name(instruction.to_string()))
        if not found:
            return None
        part = {"-start": "/start", "-done": "/done"}
        text = str(instruction.opcode).lower()
        suffix = next((s for end, s in part.items() if text.endswith(end[1:])), "")
        return self._rank.get(found[-1] + suffix, self._rank.get(found[-1]))


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
    # An instruction without a rank inherits the least of those that wait for it, so that it comes when it is needed.
    keys: list[float] = [float("inf") if r is None else r for r in ranks]
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


def _op_name(text: str) -> str:
    found = re.search(r'op_name="((?:[^"\\]|\\.)*)"', text)
    return found[1] if found else ""


def _tags_in_text(text: str) -> Iterator[str]:
    for line in text.splitlines():
        tags = TAG.findall(_op_name(line))
        if tags:
            yield tags[-1]


def _mark_cache(digest: str) -> None:
    """Keep executables that were compiled with the hook apart from others in the persistent cache."""
    try:
        from jax._src import cache_key

        before = cache_key.custom_hook
        cache_key.custom_hook = lambda: f"{before()} lapstrake {digest}"
    except (ImportError, AttributeError):
        jax.config.update("jax_enable_compilation_cache", val=False)


# --- checks --------------------------------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """What a plan depends on."""
    backend = jax.extend.backend.get_backend() if hasattr(jax, "extend") else jax.devices()[0].client
    return {
        "jax": jax.__version__,
        "jaxlib": importlib.metadata.version("jaxlib"),
        "platform": backend.platform,
        "platform_version": backend.platform_version,
    }


def fingerprint(lowered: Any) -> str:
    """SHA-256 of the program before partitioning, constants in full; source lines do not matter."""
    return hashlib.sha256(lowered.as_text(debug_info=False).encode()).hexdigest()


def _check_fingerprint(written: Mapping[str, str], lowered: Any) -> None:
    if written["kind"] != "lowered":
        raise Mismatch(
            "the bundle was made from a bare dump, which does not say what program it belongs to: capture it"
        )
    if written["sha256"] != fingerprint(lowered):
        raise Mismatch("the program is another (its code or a constant changed since it was captured)")


def _check_signature(written: Mapping[str, Any], lowered: Any, args: Any, kwargs: Any) -> Any:
    """The job's mesh, once every argument and result is known to be as written."""
    leaves = jax.tree_util.tree_leaves((args, kwargs))
    infos = jax.tree_util.tree_flatten_with_path(lowered.args_info)[0]
    expected = written["arguments"]
    if len(infos) != len(expected):
        raise Mismatch(f"the step has {len(infos)} arrays as arguments, the plan was made for {len(expected)}")
    if len(leaves) != len(infos):
        raise Mismatch("the step has static arguments, which a plan cannot carry")
    mesh = _mesh_of(leaves, written["mesh"])
    for leaf, (path, info), wanted in zip(leaves, infos, expected, strict=True):
        name = jax.tree_util.keystr(path)
        _check_leaf(name, leaf, info, wanted, mesh)
    outs = jax.tree_util.tree_leaves(lowered.out_info)
    if [(list(o.shape), str(o.dtype)) for o in outs] != [(r["shape"], r["dtype"]) for r in written["results"]]:
        raise Mismatch("the step's results have other shapes or types than the plan's")
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
    if isinstance(sharding, jax.sharding.NamedSharding) and getattr(leaf, "committed", True):
        there = jax.sharding.NamedSharding(mesh, _spec(wanted["spec"]))
        if not sharding.is_equivalent_to(there, len(wanted["shape"])):
            raise Mismatch(f"argument {name}: its sharding is {sharding.spec}, the plan was made for {there.spec}")
        if sharding.memory_kind not in (None, "device", "unpinned_host", there.memory_kind):
            raise Mismatch(f"argument {name}: it lives in {sharding.memory_kind} memory, which a plan cannot carry")


def _mesh_of(leaves: Sequence[Any], written: Mapping[str, Any]) -> Any:
    """The mesh that the arguments lie on, if it is the one the plan was made for."""
    for leaf in leaves:
        sharding = getattr(leaf, "sharding", None)
        if isinstance(sharding, jax.sharding.NamedSharding) and sharding.mesh.size == np.prod(
            written["sizes"], dtype=int
        ):
            mesh = sharding.mesh
            break
    else:
        raise Mismatch(f"no argument lies on a mesh of {int(np.prod(written['sizes'], dtype=int))} devices")
    if list(mesh.axis_names) != written["names"] or list(mesh.devices.shape) != written["sizes"]:
        here = dict(zip(mesh.axis_names, mesh.devices.shape, strict=True))
        raise Mismatch(
            f"the mesh is {here}, the plan was made for {dict(zip(written['names'], written['sizes'], strict=True))}"
        )
    if [d.id for d in mesh.devices.flat] != written["devices"]:
        raise Mismatch("the mesh has its devices in another order than the plan's")
    return mesh


def _shardings(leaves: Sequence[Mapping[str, Any]], mesh: Any, tree: Any) -> Any:
    shardings = [jax.sharding.NamedSharding(mesh, _spec(leaf["spec"])) for leaf in leaves]
    return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(tree), shardings)


def _spec(written: Sequence[Any]) -> Any:
    return jax.sharding.PartitionSpec(*(tuple(p) if isinstance(p, list) else p for p in written))


def _all_donated(part: Any) -> bool:
    leaves = jax.tree_util.tree_leaves(part)
    return bool(leaves) and all(leaf.donated for leaf in leaves)


def _traced(args: Any, kwargs: Any) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves((args, kwargs)))


def _agree(bundle: Bundle, problem: str, timeout_s: int = 300) -> str:
    """The first problem that any process of the job has; empty when none has."""
    if jax.process_count() == 1:
        return problem
    try:
        from jax._src.distributed import global_state

        client: Any = global_state.client
        key = f"lapstrake/{bundle.path.name}/{next(_agreements)}"
        client.key_value_set(f"{key}/{jax.process_index()}", problem or "-")
        said = [client.blocking_key_value_get(f"{key}/{k}", timeout_s * 1000) for k in range(jax.process_count())]
    except Exception as error:
        return problem or f"the job's processes could not agree ({_first_line(error)})"
    others = [f"process {k}: {text}" for k, text in enumerate(said) if text != "-"]
    return problem or (others[0] if others else "")


def _canonical(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


if __name__ == "__main__":
    print(f"{sys.argv[0]} is imported by a job; see its first lines.")
