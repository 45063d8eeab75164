"""Steps that jobs call in other ways than the training script does. Run on its own: `python steps.py CASE [BUNDLE]`.

Without a bundle the case's step is called once, for capture; with one it is called plain and wrapped, and both are
printed as one JSON line.
"""

from __future__ import annotations

import json
import logging
import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("NPROC", "16")

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def put(*shape: int, spec: Any) -> Any:
    values = np.random.RandomState(len(shape)).randn(*shape).astype(np.float32)
    return jax.device_put(values, NamedSharding(MESH, spec))


def einsum(a: Any, b: Any) -> Any:
    return jax.lax.with_sharding_constraint(a @ b, NamedSharding(MESH, P("x", None)))


def named_arguments() -> Any:
    """Arguments by name, one that jit drops, numbers from Python (their results stay weakly typed), one donated."""

    def step(state: Any, unused: Any, *, batch: Any, rate: Any) -> Any:
        return {"w": state["w"] - rate * einsum(batch, state["w"]), "n": state["n"] + 1}

    arguments = ({"w": put(64, 64, spec=P("x", None)), "n": 0}, np.ones(3, np.float32))
    return jax.jit(step, donate_argnames="state"), arguments, {"batch": put(64, 64, spec=P("x", None)), "rate": 0.5}


RATE = [0.5]
"""What `reads_around` reads beside its arguments."""


def reads_around() -> Any:
    """A step whose trace depends on jax's settings and on a global; jit chooses how results lie."""

    def step(w: Any, b: Any) -> Any:
        return w - RATE[0] * einsum(b, w), jnp.sum(w.astype(float))

    donated = () if os.environ.get("CHANGE") == "donation" else 0
    return jax.jit(step, donate_argnums=donated), (put(64, 64, spec=P("x", None)), put(64, 64, spec=P("x", None))), {}


def static_argument() -> Any:
    step = jax.jit(lambda w, b, times: times * einsum(b, w), static_argnums=2)
    return step, (put(64, 64, spec=P("x", None)), put(64, 64, spec=P("x", None)), 3), {}


def numbers_alone() -> Any:
    """Arguments that lie on no device: jit knows the mesh."""
    on = NamedSharding(MESH, P("x", None))
    step = jax.jit(einsum, in_shardings=(on, on), out_shardings=on)
    return step, (np.ones((64, 64), np.float32), np.ones((64, 64), np.float32)), {}


def dot_algorithm() -> Any:
    on = NamedSharding(MESH, P("x", None))

    def step(w: Any, b: Any) -> Any:
        made = jnp.dot(b, w, precision=jax.lax.DotAlgorithmPreset.F32_F32_F32)
        return jax.lax.with_sharding_constraint(made, on)

    return jax.jit(step), (put(64, 64, spec=P("x", None)), put(64, 64, spec=P("x", None))), {}


def host_memory() -> Any:
    on = NamedSharding(MESH, P("x", None))
    step = jax.jit(einsum, out_shardings=on.with_memory_kind("pinned_host"))
    return step, (put(64, 64, spec=P("x", None)), put(64, 64, spec=P("x", None))), {}


def pmapped() -> Any:
    return jax.pmap(lambda a: jax.lax.psum(a, "i"), axis_name="i"), (np.ones((8, 8), np.float32),), {}


CASES = {
    f.__name__: f
    for f in (
        named_arguments, reads_around, static_argument, numbers_alone, dot_algorithm, host_memory, pmapped
    )
}  # fmt: skip


def leaves(tree: Any) -> Any:
    return [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(tree)]


def about(tree: Any) -> Any:
    return [str((leaf.aval, leaf.sharding.spec, leaf.committed)) for leaf in jax.tree.leaves(tree)]


def deleted(tree: Any) -> list[bool]:
    return [leaf.is_deleted() for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]


def compare(case: str, bundle: str) -> None:
    sys.path.insert(0, bundle)
    import lapstrake_job  # type: ignore[import-not-found]  # it comes with the bundle

    said: dict[str, Any] = {}
    step, args, kwargs = CASES[case]()
    plain = step(*args, **kwargs)
    said |= {"plain": leaves(plain), "plain about": about(plain), "plain deleted": deleted((args, kwargs))}
    step, args, kwargs = CASES[case]()
    plan = lapstrake_job.load(bundle)
    wrapped = plan.wrap(step)
    tuned = wrapped(*args, **kwargs)
    said |= {"tuned": leaves(tuned), "tuned about": about(tuned), "tuned deleted": deleted((args, kwargs))}
    said["said"] = plan.explain()
    if case == "named_arguments":
        _, args, kwargs = CASES[case]()
        said["traced"] = leaves(jax.jit(lambda state: wrapped(state, args[1], **kwargs))(args[0]))
        jax.jit(lambda: wrapped(*args, **kwargs)).lower()  # nothing runs, although the arguments are arrays
        said["traced deleted"] = deleted(args)
        _, args, kwargs = CASES[case]()
        said["other"] = leaves(wrapped(args[0], np.ones(4, np.float32), **kwargs))
        said["said of other"] = plan.explain()
        _, args, kwargs = CASES[case]()
        said["said of traced"], said["strict"] = traced_alone(lapstrake_job, bundle, step, args, kwargs)
    if case == "reads_around":
        said["again"], said["logged"] = retraced(lapstrake_job, bundle)
    print(json.dumps(said))


def retraced(lapstrake_job: Any, bundle: str) -> tuple[dict[str, Any], list[str]]:
    """Calls between which something changes that jit would trace the step again for: whether each does what the
    original does, and how often the original has run by then."""
    logged: list[str] = []

    def note(record: logging.LogRecord) -> bool:
        logged.append(record.getMessage())
        return False

    logging.getLogger("lapstrake").addFilter(note)
    step = CASES["reads_around"]()[0]
    plan = lapstrake_job.load(bundle)
    wrapped = plan.wrap(step)
    found: dict[str, Any] = {}

    def call(name: str, by_name: bool = False) -> None:
        _, args, _ = CASES["reads_around"]()
        _, given, _ = CASES["reads_around"]()
        plain = step(*args)
        tuned = wrapped(given[0], b=given[1]) if by_name else wrapped(*given)
        alike = all(a.dtype == b.dtype and np.allclose(a, b, 1e-4, 1e-4) for a, b in zip(plain, tuned, strict=True))
        found[name] = [alike, sum(count for count, _ in wrapped._passed_by.values())]

    call("first")
    for name, context in (
        ("precision", jax.default_matmul_precision("highest")),
        ("x64", jax.enable_x64(True)),
        ("nans", jax.debug_nans(True)),
        ("infs", jax.debug_infs(True)),
        ("mesh", MESH),
    ):
        with context:
            call(name)
    call("as before")
    call("by name", by_name=True)
    step.clear_cache()
    call("cleared")
    RATE[0] = 0.25
    call("not cleared")
    step.clear_cache()
    call("rate")
    call("rate again")
    RATE[0] = 0.5
    jax.clear_caches()
    call("rate as before")
    RATE[0] = 0.25
    jax.clear_caches()
    call("all cleared")
    with jax.enable_x64(True):
        _, args, _ = CASES["reads_around"]()
        try:
            lapstrake_job.load(bundle).wrap(step, strict=True)(*args)
        except lapstrake_job.Mismatch as error:
            found["x64 at first"] = [True, str(error)]
    warned = len(logged)
    _, args, _ = CASES["reads_around"]()
    try:
        plan.wrap(step, strict=True)(args[0], b=args[1])
    except lapstrake_job.Mismatch as error:
        found["strict"] = [len(logged) == warned, str(error)]
    return found, logged


def traced_alone(lapstrake_job: Any, bundle: str, step: Any, args: Any, kwargs: Any) -> tuple[list[str], list[str]]:
    """What is said of a step that is never called but under traces, and what it raises when it is strict."""
    explained, raised = [], []
    for strict in (False, True):
        plan = lapstrake_job.load(bundle)
        wrapped = plan.wrap(step, strict=strict)
        explained.append(plan.explain())
        for trace in (
            lambda *a, wrapped=wrapped: jax.eval_shape(lambda: wrapped(*a, **kwargs)),
            lambda *a, wrapped=wrapped: jax.lax.scan(lambda s, _: (wrapped(s, a[1], **kwargs), 0), a[0], length=2),
        ):
            try:
                trace(*args)
            except lapstrake_job.Mismatch as error:
                raised.append(str(error))
        explained.append(plan.explain())
    return explained, raised


def main(case: str, bundle: str = "") -> None:
    if bundle:
        compare(case, bundle)
        return
    step, args, kwargs = CASES[case]()
    step(*args, **kwargs)


if __name__ == "__main__":
    main(*sys.argv[1:])
